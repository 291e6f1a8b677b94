"""A gateway that refuses to start, again and again: seen at once, repaired between two starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_doctor.core.home import BACKGROUND_LOG, Home
from hermes_doctor.core.system import limits
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.conftest import need_release
from tests.helpers import support
from tests.helpers.real import chat_partner, gateways, qq
from tests.helpers.real.chat_partner import Chat
from tests.helpers.real.containers import engine, project_of
from tests.helpers.real.controlled_gateways import SOONER, VERSION, Ward
from tests.helpers.real.gateways import until
from tests.helpers.real.release_homes import MakeHome, machine
from tests.helpers.real.systemd import Machine, systemd
from tools import real_home, releases

pytestmark = [pytest.mark.real, pytest.mark.wide]
CODE = "AUTHZ-OPEN-REFUSE"
OPEN = """
platforms:
  qqbot:
    extra:
      dm_policy: open
"""
"""With this, Hermes refuses to start, because a list of users is set, too."""
LOOP = """
while :; do
  hermes gateway run
  echo ended >>$HOME/ends
  sleep 1
done
"""
NAME = "hermes-gateway.service"
UNIT = """
[Unit]
StartLimitIntervalSec=0
[Service]
ExecStart={program} gateway run
Restart=always
RestartSec=4
{environment}
[Install]
WantedBy=default.target
"""
BROKEN = "[Service]\nExecStartPre=/bin/false\nRestartSec=100ms\n"
STEADY = {"HERMES_DOCTOR_STEADY": "3"}


def refusing(home: Path, platform: qq.Qq) -> None:
    """Set up the bot of a home for that platform, with a policy that prevents every start."""
    chat_partner.set_up(home, platform)
    with (home / "config.yaml").open("a") as file:
        file.write(OPEN)


def gateway_line(done: support.Done) -> str:
    """The line about the gateway on the screen of a check; the container may just be starting."""
    parts = done.json["states"].get("gateway") or [{"text": ""}]
    return str(parts[0]["text"])


def seen(done: support.Done) -> str:
    """The same of a check that was quick enough, while the gateway waits for its start."""
    report = done.json
    [loop] = [one for one in report["checks"] if one["id"] == "gateway-loop"]
    busy = limits.stretch(2) > 2
    if busy and loop["status"] == "unknown":
        return ""  # it met the short life of a process
    assert loop["status"] == "skipped", loop
    assert report["seconds"] < 2 or busy
    assert report["summary"]["verdict"] == "not working"
    return str(report["states"]["gateway"][0]["text"])


def repaired(done: support.Done) -> str:
    """The notes of the one repair, which must hold."""
    assert done.code == 0, done.out + done.err
    [run] = done.json["repair"]["runs"]
    [item] = run["items"]
    assert (item["code"], item["outcome"], run["gateway"]) == (CODE, "verified", "started"), run
    return " ".join(item["notes"])


def answered(platform: qq.Qq) -> None:
    """What a person would check: a message is answered."""
    platform.tell("model answer")
    chat = Chat(platform)
    before = chat.heard().count("Yes.")
    chat.say("Are you there?")
    until(lambda: chat.heard().count("Yes.") > before, "an answer", chat_partner.PATIENCE)


@contextmanager
def shell_loop(home: Path, platform: qq.Qq) -> Iterator[subprocess.Popen[bytes]]:
    """A loop that starts the gateway whenever it has ended."""
    folder = releases.python_of(VERSION).parent
    environment = real_home.environment(home) | gateways.sealed(gateways.free_port())
    environment |= machine(home.parent, folder) | qq.through(platform)
    environment["HERMES_GATEWAY_MAX_STARTS"] = "2"  # the third start waits for 10 s
    loop = subprocess.Popen(
        ["sh", "-c", LOOP],
        env=environment,
        cwd=home.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield loop
    finally:
        loop.kill()
        loop.wait()
        for found in Probes(Home(home.resolve())).gateway.running():
            os.kill(found.pid, signal.SIGKILL)


def test_in_a_shell_loop(hermes_home: MakeHome, tmp_path: Path) -> None:
    """Nothing can stop the loop, so the repair uses the gap and lets the loop start the gateway."""
    home = hermes_home(VERSION)
    one = Ward(VERSION, home)
    with qq.platform(tmp_path) as platform:
        refusing(home, platform)
        with shell_loop(home, platform) as loop:
            ends = home.parent / "ends"
            until(lambda: ends.exists() and len(ends.read_text().split()) == 2, "two failed starts")
            until(lambda: bool(Probes(Home(home)).gateway.running()), "the third start")
            until(lambda: "Hermes waits 10 s before its next try" in seen(one.check()), "its wait")

            done = _fix(one)

            notes = repaired(done)
            assert "it has been running for 3 s" in notes and "connected: " in notes
            pid = one.pid
            assert _parent(pid) == loop.pid, "the loop has started it, not we"
            assert not (home / BACKGROUND_LOG).exists()
            answered(platform)
            again = _fix(one)
            assert (again.code, again.json["repair"]["runs"], one.pid) == (0, [], pid)
            assert len(ends.read_text().split()) == 2, "nothing has stopped it"

            (home / "gateway.lock").unlink()
            restarted = one.fix("GW-LOCK-LOST")
            assert restarted.code == 0, restarted.out
            assert one.pid != pid and _parent(one.pid) == loop.pid, "also without a crash loop"

            failed = len(ends.read_text().split())
            run = done.json["repair"]["runs"][0]["run"]
            undone = one.doctor("undo", run, "--yes")
            assert undone.code == 0, undone.out + undone.err
            assert "still runs and starts it again" in undone.out, undone.out
            assert "The gateway is stopped" not in undone.out
            assert OPEN in (home / "config.yaml").read_text()
            until(lambda: len(ends.read_text().split()) > failed + 1, "the loop, as before")


def _fix(one: Ward) -> support.Done:
    options = ("--apply", "--yes", "--json", "--home", str(one.home))
    return support.doctor("fix", CODE, *options, env=one.env | STEADY, timeout=300, settings=SOONER)


def _parent(pid: int) -> int:
    """The parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.long
def test_under_systemd(tmp_path: Path) -> None:
    """The job is stopped for the repair and started again; what else fails is said, not undone."""
    need_release(VERSION)
    user = tmp_path / "user"
    with systemd(user) as here, qq.platform(tmp_path) as platform:
        home = real_home.make(VERSION, user / ".hermes")
        refusing(home, platform)
        sick = (home / "config.yaml").read_bytes()
        here.install(NAME, _unit(user, platform))
        here.systemctl("enable", NAME)
        here.systemctl("start", "--no-block", NAME)
        until(lambda: int(here.show(NAME, "NRestarts")) >= 3, "the loop")
        until(lambda: "systemd restarts it in " in seen(here.check(home)), "a pause")

        notes = repaired(_fix_there(here, home))

        assert "it has been running for 3 s" in notes
        pid = here.main_pid(NAME)
        state = json.loads((home / "gateway_state.json").read_bytes())
        assert (state["pid"], state["gateway_state"]) == (pid, "running")
        assert here.show(NAME, "NRestarts") == "0"
        answered(platform)
        again = _fix_there(here, home)
        assert (again.code, again.json["repair"]["runs"]) == (0, [])
        assert here.main_pid(NAME) == pid

        here.systemctl("stop", NAME)
        (home / "config.yaml").write_bytes(sick)
        here.install(NAME, _unit(user, platform), broken=BROKEN)
        here.systemctl("start", "--no-block", NAME)
        until(lambda: int(here.show(NAME, "NRestarts")) >= 1, "the loop")
        done = _fix_there(here, home)
        assert done.code == 1
        [item] = done.json["repair"]["runs"][0]["items"]
        assert item["outcome"] == "not-connected"
        assert item["reason"].startswith("the gateway still stops: "), item
        assert done.json["summary"]["verdict"] == "not working", done.out
        assert b"dm_policy: open" not in (home / "config.yaml").read_bytes(), "the repair stays"
        here.systemctl("stop", NAME)


def _unit(user: Path, platform: qq.Qq) -> str:
    """A unit that runs the gateway of a user's home."""
    folder = releases.python_of(VERSION).parent
    variables = real_home.environment(user / ".hermes") | gateways.sealed(gateways.free_port())
    variables |= machine(user, folder) | qq.through(platform) | {"HERMES_GATEWAY_MAX_STARTS": "0"}
    lines = [f'Environment="{name}={value}"' for name, value in variables.items()]
    return UNIT.format(program=folder / "hermes", environment="\n".join(lines))


def _fix_there(here: Machine, home: Path) -> support.Done:
    command = ("fix", CODE, "--apply", "--yes", "--json", "--home", home)
    env = STEADY | {"NO_COLOR": "1"}
    return here.run(sys.executable, "-m", "hermes_doctor", *command, env=env, timeout=300)


@pytest.mark.long
def test_in_docker(tmp_path: Path) -> None:
    """Repaired while Hermes waits, from the host; and a volume of another user is named."""
    need_release(VERSION)
    with engine() as docker, qq.platform(tmp_path) as platform:
        project = project_of(docker, tmp_path, VERSION)
        name, home = project.container, project.home
        refusing(home, platform)
        project.write(**qq.through(platform), HERMES_GATEWAY_MAX_STARTS="2")
        docker.docker("compose", "up", "-d", cwd=project.folder)
        check = ("check", "--json")
        until(lambda: "Hermes waits " in gateway_line(project.doctor(*check)), "its wait")

        words = ("fix", CODE, "--apply", "--yes", "--json")
        notes = repaired(project.doctor(*words, **STEADY))

        assert "it has been running for 3 s" in notes
        assert project.holds_gateway
        assert docker.inspect(name, "{{.RestartCount}}") == "0"
        answered(platform)

        docker.docker("stop", "--time", "20", name)
        file = project.folder / "compose.yaml"
        file.write_text(file.read_text().replace("    command", "    user: '10000'\n    command"))
        docker.docker("compose", "up", "-d", cwd=project.folder)
        until(lambda: int(docker.inspect(name, "{{.RestartCount}}")) > 1, "the loop")
        found = support.finding(project.doctor("check", "--json"), "PERM-OWNER")
        shown = " ".join(f"{one['where']} {one['what']}" for one in found["evidence"])
        assert (found["severity"], found["subject"]) == ("error", "the home")
        assert "runs as 10000" in shown and "Permission denied" in shown, shown
        sessions = platform.sessions()
        subprocess.run(["chown", "-R", "10000", home], check=True)  # as `next` says
        until(lambda: platform.sessions() > sessions, "the bot", 120)
        answered(platform)
        docker.docker("stop", "--time", "20", name)
