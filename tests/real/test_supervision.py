"""Who looks after the gateway, asked of a real systemd."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import need_release
from tests.helpers import support
from tests.helpers.real.gateways import end, free_port, sealed, until
from tests.helpers.real.systemd import Machine, systemd
from tools import releases

pytestmark = [pytest.mark.real, pytest.mark.wide]

LIKE_HERMES = """
import datetime, json, os, pathlib, sys, time
home = pathlib.Path(os.environ["HERMES_HOME"])
(home / "logs").mkdir(exist_ok=True)
def note(**facts):
    facts |= {"ts": datetime.datetime.now(datetime.UTC).isoformat(), "pid": os.getpid()}
    with (home / "logs/gateway-exit-diag.log").open("a") as diary:
        diary.write(json.dumps(facts) + "\\n")
note(tag="gateway.start")
with (home / "gateway-starts.log").open("a") as starts:
    starts.write(f"{time.time()}\\n")
if status := os.environ.get("STATUS"):
    note(tag="asyncio.run.SystemExit", code=int(status))
    sys.exit(int(status))
time.sleep(1000)
"""
"""Has the command line of a gateway, keeps its diary, and ends as it is told."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """One systemd for all tests of this file; each has its own unit and home."""
    with systemd(tmp_path_factory.mktemp("machine") / "user") as made:
        made.linger(True)
        yield made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with settings only: these checks ask for no more."""
    return bare(tmp_path / "home")


def bare(home: Path) -> Path:
    """Such a home."""
    support.put(home / "config.yaml", support.CONFIG)
    return home


@pytest.fixture
def hermes(tmp_path: Path) -> Path:
    """What looks like the command of Hermes."""
    return support.put(tmp_path / "bin" / "hermes", LIKE_HERMES)


def unit(home: Path, hermes: Path, *more: str, start: str = "", program: str = "") -> str:
    """A unit as Hermes writes it, with other or further lines."""
    program = program or f"{sys.executable} {hermes} gateway run"
    said = {line.partition("=")[0] for line in more}
    lines = [
        line
        for line in (
            "Type=simple",
            f"ExecStart={program}",
            f"WorkingDirectory={home}",
            "Restart=always",
            "RestartSec=100ms",
            "RestartForceExitStatus=75",
            "RestartPreventExitStatus=78",
            "KillMode=mixed",
            "ExecReload=/bin/kill -USR1 $MAINPID",
            "TimeoutStopSec=60",
        )
        if line.partition("=")[0] not in said
    ]
    return "\n".join(
        [
            "[Unit]",
            "Description=Hermes Agent Gateway - Messaging Platform Integration",
            start or "StartLimitIntervalSec=0",
            "[Service]",
            f'Environment="HERMES_HOME={home}"',
            *lines,
            *more,
            "[Install]",
            "WantedBy=default.target",
            "",
        ]
    )


def look(machine: Machine, home: Path, **env: str) -> support.Done:
    """What the checks of the service say; the look changes nothing in the home."""
    args = ("check", "--json", "--home", home, "--only", "supervision")
    done = machine.doctor(*args, env=env)
    assert done.code in (0, 1), done.err
    assert not [c for c in done.json["checks"] if c["status"] == "crashed"], done.json["checks"]
    return done


def codes(done: support.Done) -> list[str]:
    """The findings that an operator must act on."""
    return sorted(f["code"] for f in done.json["findings"] if f["severity"] != "info")


def status(done: support.Done, id: str) -> str:
    """How a check ended."""
    return str({check["id"]: check["status"] for check in done.json["checks"]}[id])


def start(machine: Machine, name: str, text: str, **drop_ins: str) -> None:
    """Install a unit, switch it on and start it."""
    machine.install(name, text, **drop_ins)
    machine.systemctl("enable", name)
    machine.run("systemctl", "--user", "start", name)


def test_active(machine: Machine, home: Path, hermes: Path) -> None:
    """A gateway that its unit runs is looked after; nothing to say but the usual low limit."""
    name = "hermes-gateway-active.service"
    start(machine, name, unit(home, hermes))
    machine.wait_for(name, ActiveState="active")
    until(lambda: (home / "gateway-starts.log").exists(), "the start")
    before = support.tree(home)

    done = look(machine, home)

    assert codes(done) == []
    assert support.tree(home) == before
    assert status(done, "service-restart") == "ok"
    low = support.finding(done, "GW-FD-LIMIT-LOW")
    assert low["subject"] == name
    assert "1024" in low["title"]


@pytest.mark.parametrize(
    ("ends", "code", "more"),
    [
        (1, "GW-CRASH-LOOP", ""),
        (75, "GW-EXIT75-LOOP", ""),
        (78, "GW-EXIT78", ""),
        (78, "GW-EXIT78", "RestartPreventExitStatus="),
    ],
)
def test_ends_at_once(
    machine: Machine, home: Path, hermes: Path, ends: int, code: str, more: str
) -> None:
    """Started over and over, or given up on, by the status that it ends with."""
    name = f"hermes-gateway-ends{ends}{len(more)}.service"
    start(machine, name, unit(home, hermes, f"Environment=STATUS={ends}", more))
    if ends == 78 and not more:
        machine.wait_for(name, ActiveState="failed")
    else:
        until(lambda: int(machine.show(name, "NRestarts")) >= 4, "some restarts")

    done = look(machine, home)

    machine.systemctl("stop", name)
    finding = support.finding(done, code)
    assert codes(done) == [code]
    assert (finding["subject"], finding["severity"]) == (name, "error")
    assert f"status {ends}" in str(finding["evidence"])


def test_one_planned_restart_is_none(machine: Machine, home: Path, hermes: Path) -> None:
    """A single end with status 75, and even some over the years, are no loop."""
    name = "hermes-gateway-planned.service"
    once = support.put(home.parent / "once", "")
    script = f"test -e {once} && rm {once} && exit 75; exec {sys.executable} {hermes} gateway run"
    start(machine, name, unit(home, hermes, program=f"/bin/sh -c '{script}'"))
    until(lambda: machine.show(name, "NRestarts") == "1", "one restart")
    machine.wait_for(name, ActiveState="active")

    assert codes(look(machine, home)) == []


def test_start_limit(machine: Machine, home: Path, hermes: Path) -> None:
    """systemd gives up on a unit with a limit."""
    name = "hermes-gateway-limit.service"
    limits = "StartLimitIntervalSec=60\nStartLimitBurst=3"
    start(machine, name, unit(home, hermes, "Environment=STATUS=1", start=limits))
    machine.wait_for(name, ActiveState="failed")

    done = look(machine, home)

    finding = support.finding(done, "GW-STARTLIMIT")
    assert codes(done) == ["GW-STARTLIMIT"]
    assert finding["subject"] == name
    assert finding["since"]


def test_failed_without_restart(machine: Machine, home: Path, hermes: Path) -> None:
    """A unit that is not to be restarted stays failed."""
    name = "hermes-gateway-once.service"
    start(machine, name, unit(home, hermes, "Environment=STATUS=3", "Restart=no"))
    machine.wait_for(name, ActiveState="failed")

    assert codes(look(machine, home)) == ["GW-UNIT-FAILED"]


def test_stopped(machine: Machine, home: Path, hermes: Path) -> None:
    """A unit that was stopped has nothing wrong with it."""
    name = "hermes-gateway-stopped.service"
    start(machine, name, unit(home, hermes))
    machine.systemctl("stop", name)

    done = look(machine, home)

    assert codes(done) == []
    assert status(done, "service-state") == "ok"


@pytest.mark.parametrize(
    ("line", "number"), [("program", "203"), ("WorkingDirectory=/nowhere/at/all", "200")]
)
def test_wrong_path(machine: Machine, home: Path, hermes: Path, line: str, number: str) -> None:
    """A program or a folder that is gone is named, with what systemd said of it."""
    name = f"hermes-gateway-path{number}.service"
    gone = home.parent / "venv/bin/python"
    program = f"{gone} -m hermes_cli.main gateway run" if line == "program" else ""
    more = () if line == "program" else (line,)
    limits = "StartLimitIntervalSec=60\nStartLimitBurst=2"
    start(machine, name, unit(home, hermes, *more, start=limits, program=program))
    machine.wait_for(name, ActiveState="failed")

    done = look(machine, home)

    finding = support.finding(done, "GW-UNIT-BAD-PATH")
    assert codes(done) == ["GW-UNIT-BAD-PATH"]
    seen = {one["where"]: one["what"] for one in finding["evidence"]}
    assert seen[str(gone) if line == "program" else "/nowhere/at/all"] == "does not exist"
    assert number in seen[name]


def test_program_removed_under_a_running_gateway(
    machine: Machine, home: Path, hermes: Path
) -> None:
    """It runs, and would not start again: a warning."""
    name = "hermes-gateway-removed.service"
    python = home.parent / "python"
    python.symlink_to(sys.executable)
    start(machine, name, unit(home, hermes, program=f"{python} {hermes} gateway run"))
    machine.wait_for(name, ActiveState="active")
    until(lambda: (home / "gateway-starts.log").exists(), "the start")
    python.unlink()

    done = look(machine, home)

    assert support.finding(done, "GW-UNIT-BAD-PATH")["severity"] == "warning"
    assert codes(done) == ["GW-UNIT-BAD-PATH"]


def test_two_units(machine: Machine, home: Path, hermes: Path) -> None:
    """Two that start by themselves on one home."""
    for name in ("hermes-gateway-two.service", "hermes.service"):
        machine.install(name, unit(home, hermes))
        machine.systemctl("enable", name)

    done = look(machine, home)

    finding = support.finding(done, "GW-DUP-UNITS")
    assert codes(done) == ["GW-DUP-UNITS"]
    assert (finding["subject"], finding["severity"]) == (
        "hermes-gateway-two.service, hermes.service",
        "warning",
    )
    machine.systemctl("disable", "hermes.service")
    assert codes(look(machine, home)) == []


def test_system_unit_beside(machine: Machine, home: Path, hermes: Path) -> None:
    """A unit of the machine counts, though no manager of the machine runs here."""
    folder = machine.root / "etc/systemd/system"
    user = "hermes-gateway-both.service"
    machine.install(user, unit(home, hermes))
    machine.systemctl("enable", user)
    (folder / "hermes-gateway.service").write_text(unit(home, hermes, "User=root"))
    wants = folder / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "hermes-gateway.service").symlink_to("/etc/systemd/system/hermes-gateway.service")
    try:
        done = look(machine, home)
    finally:
        (wants / "hermes-gateway.service").unlink()
        (folder / "hermes-gateway.service").unlink()

    assert codes(done) == ["GW-DUP-UNITS"]
    assert status(done, "service-restart") == "unknown"


def test_drop_in(machine: Machine, home: Path, hermes: Path) -> None:
    """What is laid over a unit counts: limits and variables."""
    name = "hermes-gateway-over.service"
    proxy = {"HTTPS_PROXY": "http://proxy.example:3128"}
    start(machine, name, unit(home, hermes))
    assert "PROXY-SERVICE" in look(machine, home, **proxy).codes

    machine.install(
        name,
        unit(home, hermes),
        limits="[Service]\nLimitNOFILE=65536\n",
        proxy="[Service]\nEnvironment=HTTPS_PROXY=http://proxy.example:3128\n",
    )
    machine.systemctl("restart", name)
    until(lambda: machine.show(name, "LimitNOFILESoft") == "65536", "the limit")

    assert look(machine, home, **proxy).codes == []


def test_older_unit(machine: Machine, home: Path, hermes: Path) -> None:
    """Less time to end than work may take is a warning."""
    name = "hermes-gateway-older.service"
    support.put(home / "config.yaml", support.CONFIG + "agent:\n  restart_drain_timeout: 120\n")
    package = home / "hermes-agent/venv/lib/python3.11/site-packages/hermes_agent-0.19.0.dist-info"
    package.mkdir(parents=True)
    start(machine, name, unit(home, hermes, "TimeoutStopSec=45"))

    finding = support.finding(look(machine, home), "GW-STALE-UNIT")

    assert finding["severity"] == "warning"
    assert "45 s" in finding["evidence"][0]["what"]


def test_linger(machine: Machine, home: Path, hermes: Path) -> None:
    """A user's service that starts by itself needs a user who lingers."""
    name = "hermes-gateway-linger.service"
    machine.install(name, unit(home, hermes))
    machine.systemctl("enable", name)
    machine.linger(False)
    try:
        done = look(machine, home)
    finally:
        machine.linger(True)

    assert codes(done) == ["GW-LINGER"]
    assert support.finding(done, "GW-LINGER")["subject"] == name


def by_hand(machine: Machine, home: Path, hermes: Path) -> subprocess.Popen[bytes]:
    """A gateway that somebody started in a shell."""
    process = subprocess.Popen(
        machine.command(sys.executable, hermes, "gateway", "run"),
        env=machine.environment | {"HERMES_HOME": str(home)},
        stdin=subprocess.DEVNULL,
    )
    until(lambda: (home / "gateway-starts.log").exists(), "the start")
    return process


def test_by_hand(machine: Machine, home: Path, hermes: Path) -> None:
    """Nobody looks after it, whether or not a unit is there for it."""
    process = by_hand(machine, home, hermes)
    try:
        alone = support.finding(look(machine, home), "GW-UNSUPERVISED")
        machine.install("hermes-gateway-idle.service", unit(home, hermes))
        beside = look(machine, home)
    finally:
        end(process)

    assert alone["severity"] == "warning"
    assert codes(beside) == ["GW-UNSUPERVISED"]
    assert "hermes-gateway-idle.service" in support.finding(beside, "GW-UNSUPERVISED")["next"]
    assert codes(look(machine, home)) == []


def test_bystander(machine: Machine, home: Path, hermes: Path) -> None:
    """A gateway that something else's service happened to start is nobody's."""
    script = support.put(
        home.parent / "job",
        f"#!/bin/sh\nexport HERMES_HOME={home}\n{sys.executable} {hermes} gateway run & wait\n",
        0o755,
    )
    daemon = support.put(home.parent / "daemon", f"#!/bin/sh\n{script} & wait\n", 0o755)
    machine.install("cron.service", f"[Service]\nRestart=always\nExecStart={daemon}\n")
    machine.systemctl("start", "cron.service")
    until(lambda: (home / "gateway-starts.log").exists(), "the start")

    done = look(machine, home)

    machine.systemctl("stop", "cron.service")
    assert codes(done) == ["GW-UNSUPERVISED"]


def test_a_unit_of_any_name(machine: Machine, home: Path, hermes: Path) -> None:
    """What the kernel says counts, not the name."""
    machine.install("my-bot.service", unit(home, hermes))
    machine.systemctl("enable", "--now", "my-bot.service")
    until(lambda: (home / "gateway-starts.log").exists(), "the start")

    done = look(machine, home)

    assert codes(done) == []
    assert support.finding(done, "GW-FD-LIMIT-LOW")["subject"] == "my-bot.service"


def test_another_home(machine: Machine, home: Path, hermes: Path, tmp_path: Path) -> None:
    """A unit of another home is none of this one's, and is not blamed on it."""
    other = bare(tmp_path / "other")
    name = "hermes-gateway-other.service"
    start(machine, name, unit(other, hermes, "Environment=STATUS=1"))
    until(lambda: int(machine.show(name, "NRestarts")) >= 4, "some restarts")

    assert look(machine, home).codes == []
    assert codes(look(machine, other)) == ["GW-CRASH-LOOP"]
    machine.systemctl("stop", name)


@pytest.fixture
def alice() -> Iterator[tuple[Machine, Path, Path]]:
    """A machine with a user of her own who has a gateway that fails, and her home."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        user = Path(folder) / "alice"
        with systemd(user, uid=12345) as machine:
            home = bare(user / ".hermes")
            hermes = support.put(user / "bin" / "hermes", LIKE_HERMES)
            machine.units.mkdir(parents=True)
            for path in [*user.rglob("*")]:
                os.chown(path, 12345, 12345)
            yield machine, home, hermes


def test_of_another_user(alice: tuple[Machine, Path, Path]) -> None:
    """Root asks the manager of whom the home belongs to, with that user's rights."""
    machine, home, hermes = alice
    name = "hermes-gateway.service"
    program = f"/bin/false {hermes} gateway run"
    machine.install(name, unit(home, hermes, program=program))
    machine.systemctl("enable", name)
    machine.run("systemctl", "--user", "start", name)
    until(lambda: int(machine.show(name, "NRestarts")) >= 4, "some restarts")
    machine.install(name, unit(home, hermes, "RestartSec=1h", program=program))
    machine.wait_for(name, SubState="auto-restart", RestartUSec="1h")

    done = machine.doctor(
        *("check", "--json", "--home", home, "--only", "supervision"),
        env={"HOME": "/root", "XDG_RUNTIME_DIR": "/run/user/0"},
    )
    assert codes(done) == ["GW-CRASH-LOOP", "GW-LINGER"]
    machine.systemctl("stop", name)


def test_no_manager(alice: tuple[Machine, Path, Path]) -> None:
    """Without a manager the unit cannot run, which is told, and not that it is stopped."""
    machine, home, hermes = alice
    name = "hermes-gateway.service"
    machine.install(name, unit(home, hermes))
    machine.systemctl("enable", name)
    machine.run("sh", "-c", "rm -r /run/user/12345/systemd /run/user/12345/bus", uid=0)

    done = machine.doctor("check", "--json", "--home", home, "--only", "supervision")

    assert codes(done) == ["GW-LINGER", "GW-NO-USER-BUS"]


# -- a real Hermes, with the unit that its own installer writes ------------------------------------


def test_hermes_under_its_own_unit(tmp_path: Path) -> None:
    """Looked after and well; a kill and one planned restart are no loop; an old unit is told."""
    need_release("0.19.0")
    folder = releases.python_of("0.19.0").parent
    user = tmp_path / "user"
    with systemd(user, inside=Path("/run/home/alice")) as machine:
        machine.linger(True)
        settings = sealed(free_port())
        bare(user / ".hermes")
        lines = [f"{name}={value}" for name, value in settings.items()]
        lines.append(f"OPENROUTER_API_KEY=sk-or-v1-{'0a1b' * 16}")
        support.put(user / ".hermes/.env", "\n".join(lines) + "\n")
        env = {"PATH": f"{folder}:{os.environ['PATH']}"}
        home, name = machine.user / ".hermes", "hermes-gateway.service"

        done = machine.run(folder / "hermes", "gateway", "install", env=env | settings)
        assert done.code == 0, done
        assert machine.units.joinpath(name).exists(), done.out
        machine.systemctl("start", name)
        seen = [_up(machine, user / ".hermes", name)]
        healthy = machine.doctor("check", "--json", "--home", home, env=env)
        assert codes(healthy) == [], healthy.json["findings"]
        assert status(healthy, "service-restart") == "ok"
        assert status(healthy, "service-age") == "ok"

        for signal in ("KILL", "USR1"):
            machine.run("kill", f"-{signal}", str(seen[-1]), uid=0)
            seen.append(_up(machine, user / ".hermes", name, seen[-1]))
        assert codes(look(machine, home, **env)) == []
        assert len(set(seen)) == 3

        text = (machine.units / name).read_text().replace("StartLimitIntervalSec=0\n", "")
        machine.install(name, text)
        old = look(machine, home, **env)
        assert codes(old) == ["GW-STALE-UNIT"]


def _up(machine: Machine, home: Path, name: str, before: int = 0) -> int:
    """The gateway of a unit once it says that it runs, another than before."""

    def runs() -> bool:
        try:
            state = json.loads((home / "gateway_state.json").read_bytes())
        except (OSError, ValueError):
            return False
        pid = machine.main_pid(name)
        return pid not in (0, before) and (state["pid"], state["gateway_state"]) == (pid, "running")

    until(runs, f"{name} to run the gateway")
    return machine.main_pid(name)
