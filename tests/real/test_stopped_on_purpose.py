"""What a person stopped stays stopped, and what ran until the shutdown starts again.

With real gateways that answer messages, under a real systemd and in a real Docker.
"""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes.process_stat import boot_time
from tests.conftest import need_release
from tests.helpers import support
from tests.helpers.fake_provider import serving
from tests.helpers.real.containers import engine, project_of
from tests.helpers.real.gateways import free_port, sealed, until
from tests.helpers.real.systemd import Machine, systemd
from tools import releases

pytestmark = [pytest.mark.real, pytest.mark.wide]  # 6 starts of a gateway: 90 s
VERSION = "0.19.0"
NAME = "hermes-bot.service"
"""Not the name that Hermes gives: it would write the unit again as its installer does."""
CONFIG = """\
model: {{provider: relay, default: small, context_length: 131072}}
providers: {{relay: {{base_url: "{url}", key_env: RELAY_KEY}}}}
"""
READY = {"choices": [{"message": {"role": "assistant", "content": "ready"}}]}
UNIT = """
[Service]
ExecStart={hermes} gateway run
Environment=HERMES_HOME={home}
Restart={restart}
RestartSec=1
[Install]
WantedBy=default.target
"""
STOPPED = ("stopped", "info", "the gateway was stopped on purpose")
HEAL = ("watch", "--once", "--heal", "--after", "1")


@dataclass(frozen=True)
class Bot:
    """A home with an API server, whose gateway a unit runs."""

    machine: Machine
    outside: Path
    """The home as the tests see it."""
    port: int

    def install(self, restart: str) -> None:
        """Write the unit with this restart setting; it is not enabled."""
        hermes = releases.python_of(VERSION).parent / "hermes"
        home = self.machine.user / ".hermes"
        self.machine.install(NAME, UNIT.format(hermes=hermes, home=home, restart=restart))

    def doctor(self, command: str, *args: str) -> support.Done:
        """Run the command in there; it does not wait long for a gateway to stay up."""
        env = {"HERMES_DOCTOR_SETTLE": "0", "PATH": f"{releases.python_of(VERSION).parent}:/bin"}
        home = str(self.machine.user / ".hermes")
        return self.machine.doctor(command, *args, "--home", home, env=os.environ | env)

    def check(self) -> support.Done:
        """What an operator's look finds."""
        return self.doctor("check", "--json")

    def wait(self) -> None:
        """Wait until the gateway of the unit runs."""
        until(
            lambda: state(self.outside) == (self.machine.main_pid(NAME), "running"), "the gateway"
        )


def state(home: Path) -> tuple[int, str]:
    """The process and the state that a gateway wrote."""
    try:
        told = json.loads((home / "gateway_state.json").read_bytes())
    except (OSError, ValueError):
        return 0, ""
    return told["pid"], told["gateway_state"]


def ask(port: int) -> str:
    """Send one message, and return the answer."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        data=json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode(),
        headers={"Authorization": "Bearer not-a-key-but-long-enough"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=120) as answer:
        content: str = json.load(answer)["choices"][0]["message"]["content"]
        return content


def set_up(home: Path, url: str) -> int:
    """Write the settings of a bot with a model at that address; return the port of its API."""
    port = free_port()
    support.put(home / "config.yaml", CONFIG.format(url=url))
    settings = sealed(port) | {"RELAY_KEY": "sk-0123456789", "HERMES_GATEWAY_MAX_STARTS": "0"}
    support.put(home / ".env", "".join(f"{name}={value}\n" for name, value in settings.items()))
    return port


@contextmanager
def booted(user: Path, port: int) -> Iterator[Bot]:
    """The machine of the bot with a systemd that has just started."""
    with systemd(user, inside=Path("/run/home/alice")) as machine:
        machine.linger(True)
        yield Bot(machine, user / ".hermes", port)


def down(done: support.Done) -> tuple[str, str, str]:
    """The verdict, and how severe it is that no gateway runs."""
    finding = support.finding(done, "GW-DOWN")
    return done.json["summary"]["verdict"], finding["severity"], finding["title"]


def test_systemctl_stop(tmp_path: Path) -> None:
    """Whatever Restart= says: what crashed comes back, and what was stopped stays stopped."""
    need_release(VERSION)
    with serving(200, READY) as provider:
        port = set_up(tmp_path / "user/.hermes", provider.url)
        with booted(tmp_path / "user", port) as bot:
            machine = bot.machine
            bot.install("no")
            machine.systemctl("start", NAME)
            bot.wait()
            assert ask(port) == "ready"
            machine.run("kill", "-KILL", str(machine.main_pid(NAME)))
            machine.wait_for(NAME, ActiveState="failed")
            assert "healed GW-DOWN" in bot.doctor(*HEAL).out
            assert ask(port) == "ready"

            machine.systemctl("stop", NAME)

            assert machine.show(NAME, "Result") == "exit-code", "as after a crash"
            for restart in ("no", "on-failure", "always"):
                bot.install(restart)
                assert down(bot.check()) == STOPPED
            assert bot.doctor(*HEAL).code == bot.doctor("fix", "--apply", "--yes").code == 0
            assert machine.main_pid(NAME) == 0
            assert not Probes(Home(bot.outside)).gateway.running()


def end_before_the_boot(home: Path) -> None:
    """Let the exit log say that its gateway ended a minute before this machine was started."""
    log = home / "logs/gateway-exit-diag.log"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    last = datetime.fromisoformat(lines[-1]["ts"])
    moved = timedelta(seconds=boot_time() - 60 - last.timestamp())
    for line in lines:
        line["ts"] = (datetime.fromisoformat(line["ts"]) + moved).isoformat()
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _next_start_fails(bot: Bot) -> None:
    """A policy that only the next start refuses does not make a bot silent that answers."""
    config, env = bot.outside / "config.yaml", bot.outside / ".env"
    kept = {path: path.read_bytes() for path in (config, env)}
    config.write_bytes(kept[config] + b"weixin: {dm_policy: open}\n")
    env.write_bytes(kept[env] + b"WEIXIN_ACCOUNT_ID=abc\nWEIXIN_TOKEN=abcdef\n")

    summary = bot.check().json["summary"]

    assert summary["verdict"] == "limited"
    assert summary["headline"].startswith(
        "Your bot is working now, but its next start will fail: Weixin is open to everyone"
    )
    assert ask(bot.port) == "ready"
    for path, data in kept.items():
        path.write_bytes(data)


def test_a_reboot_of_a_unit_that_is_not_enabled(tmp_path: Path) -> None:
    """A warning before the reboot, an error after it; the fix enables and starts the unit."""
    need_release(VERSION)
    with serving(200, READY) as provider:
        port = set_up(tmp_path / "user/.hermes", provider.url)
        with booted(tmp_path / "user", port) as bot:
            bot.install("always")
            bot.machine.systemctl("start", NAME)
            bot.wait()
            assert ask(port) == "ready"
            warned = support.finding(bot.check(), "GW-NOT-ENABLED")
            assert (warned["severity"], warned["fix"]["id"]) == ("warning", "enable-service")
            _next_start_fails(bot)
            [gateway] = Probes(Home(bot.outside)).gateway.running()
            bot.machine.run("systemctl", "--user", "exit")
            until(lambda: not Path(f"/proc/{gateway.pid}").exists(), "the shutdown")
        end_before_the_boot(tmp_path / "user/.hermes")

        with booted(tmp_path / "user", port) as bot:
            machine = bot.machine
            done = bot.check()
            verdict, severity, _ = down(done)
            assert (verdict, severity) == ("not working", "error")
            cause = f"{NAME} is not enabled, so it did not start"
            assert cause in done.json["summary"]["headline"]

            repaired = bot.doctor("fix", "--apply", "--yes")
            assert repaired.code == 0, repaired.out
            assert machine.run("systemctl", "--user", "is-enabled", NAME).out == "enabled\n"
            assert ask(port) == "ready"
            assert not {"GW-DOWN", "GW-NOT-ENABLED"} & {*bot.check().codes}


def test_docker_stop(tmp_path: Path) -> None:
    """Whatever the restart policy is: a container that was stopped stays stopped."""
    need_release(VERSION)
    with serving(200, READY) as provider, engine() as docker:
        project = project_of(docker, tmp_path, VERSION)
        port = set_up(project.home, provider.url)
        file = project.folder / "compose.yaml"
        file.write_text(file.read_text().replace("unless-stopped", '"no"'))
        project.up()
        os.kill(int(docker.inspect(project.container, "{{.State.Pid}}")), signal.SIGKILL)
        until(lambda: not project.holds_gateway, "the crash")
        plan = project.doctor("fix", "GW-DOWN").out
        assert f"(`docker start {project.container}`)" in " ".join(plan.split())
        assert "healed GW-DOWN" in project.doctor(*HEAL).out
        assert project.holds_gateway and ask(port) == "ready"
        assert project.doctor("check", "--json").json["hermes"]["version"] == VERSION

        docker.docker("stop", project.container)

        why = f"A command stopped the container {project.container}, so Docker leaves it stopped."
        for policy in ("no", "on-failure", "unless-stopped"):
            docker.docker("update", "--restart", policy, project.container)
            done = project.doctor("check", "--json")
            assert down(done) == STOPPED
            assert support.finding(done, "GW-DOWN")["detail"] == why
        assert done.json["hermes"]["version"] == VERSION, "the label of the image"
        assert project.doctor(*HEAL).code == 0
        assert docker.inspect(project.container, "{{.State.Status}}") == "exited"
