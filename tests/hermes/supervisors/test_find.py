"""Who looks after a gateway, told from recorded words of managers that no test machine has."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook, Gateway
from hermes_doctor.core.system import commands, root_parent
from hermes_doctor.hermes.processes import lineage
from hermes_doctor.hermes.supervisors import docker, find as supervisors_find, launchd, s6, systemd
from tests.helpers import support

ID = "4f" * 32
PID = 4242


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/hermes-gateway.service\n",
            lineage.ControlGroup("hermes-gateway.service", 1000),
        ),
        (
            "0::/system.slice/hermes-gateway.service\n",
            lineage.ControlGroup("hermes-gateway.service"),
        ),
        (
            "0::/system.slice/hermes-gateway.service/sub\n",
            lineage.ControlGroup("hermes-gateway.service"),
        ),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", lineage.ControlGroup()),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/tmux-spawn-1.scope\n",
            lineage.ControlGroup(),
        ),
        ("0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", lineage.ControlGroup()),
        (f"0::/system.slice/docker-{ID}.scope\n", lineage.ControlGroup(container=ID)),
        (f"12:pids:/x\n1:name=systemd:/docker/{ID}\n0::/\n", lineage.ControlGroup(container=ID)),
        (f"0::/machine.slice/libpod-{ID}.scope/container\n", lineage.ControlGroup(container=ID)),
        (f"0::/kubepods/burstable/pod1-2/{ID}\n", lineage.ControlGroup(container=ID)),
        (
            "4:memory:/elsewhere/x.service\n1:name=systemd:/system.slice/h.service\n0::/\n",
            lineage.ControlGroup("h.service"),
        ),
        ("0::/\n", lineage.ControlGroup()),
        ("", lineage.ControlGroup()),
        ("no such thing", lineage.ControlGroup()),
    ],
)
def test_control_groups(text: str, place: lineage.ControlGroup) -> None:
    """Services, logins, terminals and containers, in both hierarchies of the kernel."""
    assert lineage.parse_control_group(text) == place


SHOWN = """Restart=always
TimeoutStopUSec=1min 30s
MainPID=4242
Result=success
NRestarts=2
User=alice
Id=hermes-gateway.service
LoadState=loaded
ActiveState=active
SubState=running
FragmentPath=/etc/systemd/system/hermes-gateway.service
UnitFileState=enabled

Restart=no
MainPID=0
Id=hermes.service
LoadState=not-found
ActiveState=inactive
"""


def test_what_systemctl_shows() -> None:
    """One answer for several units."""
    told = systemd.parse_properties(SHOWN)

    assert told["hermes-gateway.service"]["MainPID"] == "4242"
    assert told["hermes.service"]["LoadState"] == "not-found"
    assert systemd.parse_properties("") == {}
    assert systemd.parse_properties("nonsense\n\n=\n") == {}


def test_services_of_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An ordinary user may not ask for them, and is told so; nothing is run."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    scope = systemd.Scope(4242, "alice", tmp_path, (tmp_path,))

    with pytest.raises(CouldNotLook, match="only alice or root"):
        systemd.ask_systemd(scope, ["hermes-gateway.service"])
    monkeypatch.setattr(root_parent, "is_separate", lambda: True)
    with pytest.raises(CouldNotLook, match="services of alice are not listed, because root looks"):
        systemd.ask_systemd(scope, ["hermes-gateway.service"])


class World:
    """A machine of which only what a test says is there."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch = patch
        self.answers: dict[str, commands.CommandOutput] = {}
        self.asked: list[tuple[str, ...]] = []
        patch.setattr(commands, "ask", self.ask)
        patch.setattr(lineage, "_MARKS", ())
        patch.setattr(supervisors_find, "_has_ended", lambda pid: False)

    def ask(self, *command: str, **options: Any) -> commands.CommandOutput:
        """Answer as recorded."""
        self.asked.append(command)
        for words, answer in self.answers.items():
            if words in " ".join(command):
                return answer
        raise CouldNotLook(f"{command[0]} could not be run")

    def says(self, words: str, out: str = "", code: int = 0, err: str = "") -> None:
        """What a command prints whose line holds these words."""
        self.answers[words] = commands.CommandOutput(code, out, err)

    def group(self, text: str) -> None:
        """The control group of the gateway."""
        self.patch.setattr(
            supervisors_find, "control_group_of", lambda pid: lineage.parse_control_group(text)
        )

    def above(self, *names: str) -> None:
        """The ancestors of the gateway, the nearest first."""
        chain = [lineage.Ancestor(len(names) - n, name) for n, name in enumerate(names)]
        self.patch.setattr(supervisors_find, "ancestors", lambda pid: chain)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Such a machine."""
    return World(monkeypatch)


def find(home: Path, *pids: int) -> supervisors_find.Supervision:
    """Who looks after the gateway with this process id."""
    return supervisors_find.find_supervisor(Home(home), gateways(*pids))


def gateways(*pids: int) -> Callable[[], list[Gateway]]:
    return lambda: [Gateway(pid, datetime.now(UTC)) for pid in pids]


# -- units of the machine --------------------------------------------------------------------------


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the machine's units."""
    folder = tmp_path / "etc"
    scope = systemd.system_scope()._replace(folders=(folder,))
    monkeypatch.setattr(systemd, "scopes", lambda uids: [scope])
    monkeypatch.setattr(systemd, "_SOCKETS", ("/",))
    return folder


def system_unit(home: Path, *more: str) -> str:
    """A unit as `hermes gateway install --system` writes it."""
    return "\n".join(
        [
            "[Service]",
            "User=root",
            "ExecStart=/opt/hermes/bin/python -m hermes_cli.main gateway run",
            f'Environment="HERMES_HOME={home}"',
            "Restart=always",
            *more,
            "",
        ]
    )


def test_system_unit(home: Path, etc: Path, world: World) -> None:
    """The machine's manager is asked once, and its main process is the gateway."""
    support.put(etc / "hermes-gateway.service", system_unit(home))
    world.group("0::/system.slice/hermes-gateway.service\n")
    world.says("systemctl show", SHOWN)

    found = find(home, PID)

    assert found.owner is not None
    assert (found.owner.kind, found.owner.pid, found.owner.user) == ("systemd-system", PID, "alice")
    assert (found.revives, found.linger, found.unsure) == (True, None, ())
    assert len(world.asked) == 1
    assert "--user" not in world.asked[0]


def test_not_its_main_process(home: Path, etc: Path, world: World) -> None:
    """A gateway in the group of a unit whose main process is another one is not the unit's."""
    support.put(etc / "hermes-gateway.service", system_unit(home))
    world.group("0::/system.slice/hermes-gateway.service\n")
    world.above("bash", "systemd")
    world.says("systemctl show", SHOWN)

    found = find(home, 99)

    assert found.owner is None
    assert found.revives is False
    assert [unit.name for unit in found.units] == ["hermes-gateway.service"]


def test_it_has_just_ended(home: Path, etc: Path, world: World) -> None:
    """A gateway that crashes and is restarted again and again is seen, and gone a moment later."""
    support.put(etc / "hermes-gateway.service", system_unit(home))
    world.group("0::/\n")  # the kernel says nothing about a process that is gone
    world.says("systemctl show", SHOWN)
    assert find(home, 99).revives is False

    world.patch.setattr(supervisors_find, "_has_ended", lambda pid: True)
    found = find(home, 99)

    assert found.owner is not None and found.owner.name == "hermes-gateway.service"
    assert found == find(home)


def test_manager_is_silent(home: Path, etc: Path, world: World) -> None:
    """The kernel's word still tells whose it is; what the manager thinks is unknown."""
    support.put(etc / "hermes-gateway.service", system_unit(home))
    world.group("0::/system.slice/hermes-gateway.service\n")

    found = find(home, PID)

    assert found.owner is not None
    assert found.owner.state == "unknown"
    assert found.revives is True
    assert len(found.unsure) == 1


def test_masked_and_foreign_units(home: Path, etc: Path, world: World) -> None:
    """A masked unit is none, a dashboard is no gateway, another home's is another's."""
    etc.mkdir()
    (etc / "hermes-gateway.service").symlink_to("/dev/null")
    support.put(etc / "hermes-dashboard.service", "[Service]\nExecStart=/x/hermes dashboard\n")
    support.put(etc / "other.service", system_unit(home / "other"))

    found = find(home)

    assert found.units == ()
    assert [unit.name for unit in found.others] == ["other.service"]
    assert world.asked == []


@pytest.mark.parametrize(
    ("program", "profile"),
    [
        ("/v/bin/python -m hermes_cli.main --profile coder gateway run", "profiles/coder"),
        ("/v/bin/hermes -p coder gateway run", "profiles/coder"),
        ("/bin/bash -lc 'hermes -p coder gateway run'", "profiles/coder"),
        ("/usr/bin/env hermes gateway", ""),
        ("/usr/bin/sudo -u alice /v/bin/hermes gateway run", ""),
        ("/usr/local/bin/uv run hermes gateway run", ""),
    ],
)
def test_homes_of_units(home: Path, etc: Path, world: World, program: str, profile: str) -> None:
    """The home is what is set and the profile that is asked for, through wrappers too."""
    support.put(
        etc / "bot.service",
        f"[Service]\nExecStart={program}\nEnvironment=HERMES_HOME={home}\n",
    )
    world.says("systemctl show", "Id=bot.service\nActiveState=inactive\n")

    assert [unit.name for unit in find(home / profile).units] == ["bot.service"]


def test_by_hand(home: Path, etc: Path, world: World) -> None:
    """In a terminal or under nohup nobody looks after it; under supervisord somebody does."""
    world.group("0::/user.slice/user-1000.slice/session-3.scope\n")
    world.above("bash", "tmux: server", "systemd")
    assert find(home, PID).revives is False

    world.above("bash", "supervisord", "systemd")
    found = find(home, PID)
    assert found.owner is not None
    assert (found.owner.kind, found.owner.name, found.revives) == ("other", "supervisord", True)

    world.above("bash", "sshd", "supervisord")
    assert find(home, PID).owner is None


def test_unseen(home: Path, etc: Path) -> None:
    """A gateway that may not be seen is not said to be nobody's."""

    def closed() -> list[Gateway]:
        raise CouldNotLook("process 7 may not be seen")

    found = supervisors_find.find_supervisor(Home(home), closed)

    assert (found.owner, found.revives) == (None, None)
    assert found.unsure == ("process 7 may not be seen",)


# -- containers ------------------------------------------------------------------------------------


def inspected(policy: str, **state: object) -> str:
    """What `docker inspect` prints, as far as it matters."""
    return json.dumps(
        [
            {
                "Id": ID,
                "Name": "/hermes",
                "RestartCount": 0,
                "State": {"Status": "running", "Running": True, "OOMKilled": False, "Pid": PID}
                | state,
                "HostConfig": {"RestartPolicy": {"Name": policy, "MaximumRetryCount": 0}},
                "Config": {
                    "User": "",
                    "Env": ["TELEGRAM_BOT_TOKEN=zQcanaryKx9pLm2Tw", "HERMES_HOME=/opt/data"],
                    "Labels": {
                        "com.docker.compose.project": "bots",
                        "com.docker.compose.service": "hermes",
                        "com.docker.compose.project.working_dir": "/srv/bots",
                    },
                },
            }
        ]
    )


@pytest.mark.parametrize(
    ("policy", "revives"),
    [("unless-stopped", True), ("always", True), ("on-failure", True), ("no", False), ("", False)],
)
def test_container(
    home: Path, etc: Path, world: World, policy: str, revives: bool, monkeypatch: Any
) -> None:
    """Seen from outside: the engine tells of its policy."""
    monkeypatch.setattr(docker, "engine", lambda: "docker")
    world.group(f"0::/system.slice/docker-{ID}.scope\n")
    world.says(f"docker inspect --type container {ID}", inspected(policy))

    found = find(home, PID)

    assert found.owner is not None
    assert (found.owner.kind, found.owner.name, found.revives) == ("docker", "hermes", revives)
    assert found.owner.settings["Project"] == "bots"
    assert "zQcanary" not in f"{found.why} {found.owner.settings}"


@pytest.mark.parametrize("traces", [True, False])
def test_container_that_stands_still(
    home: Path, etc: Path, world: World, monkeypatch: pytest.MonkeyPatch, traces: bool
) -> None:
    """The engine knows whose volume the home is, also if the container has written nothing."""
    monkeypatch.setattr(docker, "engine", lambda: "podman")
    if traces:
        support.put(home / "logs/container-boot.log", "reconcile\n")
    world.says("ps --all", f"{ID}\n")
    stopped = inspected("no", Status="exited", ExitCode=137, OOMKilled=True, Pid=0)
    mounts = [{"Source": str(home), "Destination": "/opt/data", "RW": True}]
    world.says("{{json .Mounts}}", "\t".join(map(json.dumps, (ID, mounts, None, None))))
    world.says(f"podman inspect --type container {ID}", stopped)

    found = find(home)

    assert found.owner is not None
    assert (found.owner.state, found.owner.pid, found.revives) == ("inactive", None, False)
    assert found.owner.settings["OOMKilled"] == "yes"


@pytest.mark.parametrize(
    ("user", "ids"),
    [
        ("10000:20000", (10000, 20000)),
        ("10000", (10000, 10000)),
        ("hermes", (1234, 5678)),
        ("hermes:other", (1234, 5678)),
        ("her", None),
        ("root", None),
        (None, None),
    ],
)
def test_user_of_a_container(
    home: Path, world: World, monkeypatch: pytest.MonkeyPatch, user: str, ids: tuple[int, int]
) -> None:
    """A name is looked up in the container's own list, which the engine gives as an archive."""
    monkeypatch.setattr(docker, "engine", lambda: "docker")
    users = "passwd\0\0root:x:0:0::/root:/bin/sh\nhermes:x:1234:5678::/opt/data:/bin/sh\n\0"
    world.says(f"docker cp {ID}:/etc/passwd -", users)
    unit = docker.read_inspect(inspected("no"), home)
    assert unit is not None

    assert docker.user_ids(unit._replace(user=user)) == ids


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("Traceback:\n  File\nPermissionError: [Errno 13]: '/opt'\nbye\n", "PermissionError"),
        ("one\ntwo\n\n", "two"),
        ("", ""),
    ],
)
def test_output_of_a_container(
    home: Path, world: World, monkeypatch: pytest.MonkeyPatch, output: str, shown: str
) -> None:
    """Its last error, or its last line."""
    monkeypatch.setattr(docker, "engine", lambda: "docker")
    world.says(f"docker logs --tail 40 {ID}", err=output)
    unit = docker.read_inspect(inspected("no"), home)
    assert unit is not None

    assert docker.last_output(unit).startswith(shown)


def test_output_of_a_container_that_the_engine_does_not_know(
    home: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one of Docker, where only Podman may be asked."""
    monkeypatch.setattr(docker, "engine", lambda: "podman")
    world.says(f"podman inspect --type container {ID}", code=125)
    unit = docker.of_process(ID, home)

    assert unit.silence == "podman does not know its container"
    assert docker.last_output(unit) == ""


def test_engine_out_of_reach(
    home: Path, etc: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the container comes back is unknown."""
    monkeypatch.setattr(docker, "engine", lambda: None)
    world.group(f"0::/system.slice/docker-{ID}.scope\n")

    found = find(home, PID)

    assert found.owner is not None
    assert found.revives is None
    assert found.unsure


@pytest.mark.parametrize("text", ["", "[]", "{}", "[1]", '[{"State": 5}]', "null"])
def test_odd_engine(text: str, home: Path) -> None:
    """Words that are not understood are said to be so."""
    with pytest.raises(CouldNotLook):
        docker.read_inspect(text, home)


def test_inside(home: Path, etc: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """From inside a policy cannot be seen; what `docker exec` started is nobody's."""
    monkeypatch.setattr(lineage, "_MARKS", ("/",))
    monkeypatch.setattr(lineage, "_MOUNTED", ("/",))
    monkeypatch.setattr(docker, "command_line", lambda pid: ["sh", "/entrypoint.sh"])
    world.group("0::/\n")
    world.above("sh", "tini")
    found = find(home, PID)
    assert found.owner is not None
    assert (found.owner.kind, found.revives) == ("docker", None)

    world.above()
    assert find(home, PID).owner is None
    world.above("bash", "python", "tini")
    assert find(home, PID).owner is None


@pytest.mark.parametrize(
    ("status", "state", "pid"),
    [
        ("up (pid 4242) 86 seconds", "active", 4242),
        ("up (pid 4242 pgid 4242) 86 seconds, ready 80 seconds", "active", 4242),
        ("down (exitcode 0) 12 seconds, normally up", "inactive", None),
        ("down (exitcode 1) 1 seconds, want up", "activating", None),
        ("down (exitcode 78) 9 seconds, normally up", "failed", None),
        ("down (signal SIGKILL) 9 seconds, normally up", "failed", None),
        ("unable to read status", "unknown", None),
    ],
)
def test_slots(home: Path, world: World, status: str, state: str, pid: int | None) -> None:
    """What s6-svstat prints of a slot."""
    scanned = home.parent / "service"
    (scanned / "gateway-default").mkdir(parents=True)
    (scanned / "dashboard").mkdir()
    world.patch.setattr(s6, "SCANNED", scanned)
    world.patch.setattr(s6, "_VARIABLES", home.parent)
    support.put(home.parent / "HERMES_HOME", str(home))
    world.patch.setattr(supervisors_find, "name_of", lambda pid: "s6-svscan")
    world.above("s6-supervise", "s6-svscan")
    world.says("/command/s6-svstat", status + "\n")

    found = find(home, *([pid] if pid else []))

    assert found.owner is not None
    assert (found.owner.name, found.owner.state, found.owner.pid) == ("gateway-default", state, pid)


# -- macOS -----------------------------------------------------------------------------------------

PLIST = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
<key>Label</key><string>ai.hermes.gateway</string>
<key>ProgramArguments</key><array><string>/opt/venv/bin/python</string><string>-m</string>
<string>hermes_cli.main</string><string>gateway</string><string>run</string>
<string>--replace</string></array>
<key>WorkingDirectory</key><string>{home}</string>
<key>EnvironmentVariables</key><dict><key>HERMES_HOME</key><string>{home}</string></dict>
<key>RunAtLoad</key><true/>
<key>KeepAlive</key>{keep}
</dict></plist>
"""
PRINTED = """gui/501/ai.hermes.gateway = {
\tactive count = 1
\tpath = /Users/alice/Library/LaunchAgents/ai.hermes.gateway.plist
\tstate = running

\tprogram = /opt/venv/bin/python
\truns = 3
\tpid = 4242
\tlast exit code = 75: EX_TEMPFAIL
\tspawn type = daemon (3)
\tproperties = keepalive | runatload
}
"""


@pytest.fixture
def mac(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a Mac's jobs."""
    folder = tmp_path / "LaunchAgents"
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(launchd, "folders", lambda: [folder])
    return folder


def put_job(mac: Path, home: Path, keep: str = "<true/>") -> None:
    """A job of Hermes'."""
    text = PLIST.format(home=home, keep=keep)
    support.put(mac / "ai.hermes.gateway.plist", text)


def test_launchd(home: Path, mac: Path, world: World) -> None:
    """A job at work, by launchd's word."""
    put_job(mac, home)
    world.says("launchctl print", PRINTED)

    found = find(home, PID)

    assert found.owner is not None
    assert (found.owner.kind, found.owner.pid, found.revives) == ("launchd", PID, True)
    assert found.owner.settings["ExecMainStatus"] == "75"
    assert found.owner.folder == home


def test_launchd_not_loaded(home: Path, mac: Path, world: World) -> None:
    """Its file is there, launchd does not know it."""
    put_job(mac, home)
    text = 'Bad request.\nCould not find service "ai.hermes.gateway" in domain for user gui: 501\n'
    world.says("launchctl print", code=113, err=text)

    found = find(home)

    assert found.owner is not None
    assert (found.owner.state, found.revives) == ("inactive", False)
    assert found.owner.settings["Loaded"] == "no"


def test_launchd_old(home: Path, mac: Path, world: World) -> None:
    """The job of an older release."""
    put_job(mac, home, "<dict><key>SuccessfulExit</key><false/></dict>")
    world.says("launchctl print", PRINTED)

    found = find(home, PID)

    assert found.owner is not None
    assert found.owner.declared["KeepAlive"] == "unless-clean"


@pytest.mark.parametrize("data", [b"", b"gateway", b"<plist>gateway", b"bplist00gateway"])
def test_launchd_odd(home: Path, mac: Path, world: World, data: bytes) -> None:
    """A file that is no job is passed over."""
    support.put(mac / "ai.hermes.gateway.plist", data)

    assert find(home).units == ()


# -- asking ----------------------------------------------------------------------------------------


def test_a_command_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up on."""
    monkeypatch.setattr(commands, "LIMIT", 0.2)

    with pytest.raises(CouldNotLook, match="did not answer"):
        commands.ask("sleep", "60")


def test_a_command_that_is_not_there() -> None:
    """That is said."""
    with pytest.raises(CouldNotLook, match="could not be run"):
        commands.ask("no-such-command-here")
