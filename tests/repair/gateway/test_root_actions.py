"""What root does for a process that repairs another user's home, and what it refuses."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.backup.records import last_ask
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system import (
    open_files,
    open_files as open_files_module,
    privileges,
    root_parent,
    separate_process,
)
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.diagnosis.probes import root_actions as looks
from hermes_doctor.hermes.processes import process_stat
from hermes_doctor.hermes.supervisors.systemd import system_scope
from hermes_doctor.repair.gateway import root_actions, startup_proof
from hermes_doctor.repair.gateway.detached import Detached
from tests.diagnosis.probes.test_probes import pretender
from tests.diagnosis.probes.test_root_actions import Swapper
from tests.helpers import budget, crash_server, loaded, support
from tests.helpers.crash_server import STRANGER
from tests.helpers.fake_managers import straw
from tests.helpers.real.gateways import end

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to do")
USER = privileges.Privileges(STRANGER, STRANGER, (STRANGER,), Path("/"), can_reach=True)
UNIT = """[Service]
Environment=HERMES_HOME={home}
ExecStart=/opt/hermes/bin/python -m hermes_cli.main gateway run
"""


@pytest.fixture
def theirs() -> Iterator[Path]:
    """A home of a stranger that its owner can reach."""
    with support.reachable_folder() as folder:
        yield crash_server.chown(support.healthy(folder / "home"))


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that only write down how they were called; the file that they write to."""
    log = tmp_path / "called"
    for name in ("systemctl", "loginctl", "docker"):
        script = f'#!/bin/sh\necho "{name} $*" >> {log}\n'
        script += 'case "$*" in *"{{.Id}}"*) echo 0b2;; "ps --all"*) echo 0b2;; esac\n'
        support.put(tmp_path / "bin" / name, script, 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    units = tmp_path / "units"
    units.mkdir()
    scope = system_scope()._replace(folders=(units,))
    monkeypatch.setattr(root_actions, "system_scope", lambda: scope)
    return log


REFUSED = (
    ("sh", "-c", "true"),
    ("systemctl", "--system", "poweroff"),
    ("systemctl", "--system", "edit", "hermes-gateway.service"),
    ("systemctl", "--system", "stop", "ssh.service", "hermes-gateway.service"),
    ("systemctl", "--system", "start", "--root=/x", "hermes-gateway.service"),
    ("systemctl", "--user", "stop", "hermes-gateway.service"),
    ("systemctl", "--system", "stop", "multi-user.target"),
    ("loginctl", "terminate-user", "root"),
    ("docker", "rm", "0a1"),
    ("docker", "run", "0a1"),
    ("docker", "exec", "0a1", "sh"),
    ("docker", "update", "--restart", "always", "0a1"),
    ("docker", "stop", "0a1", "0b2"),
    ("s6-svc", "-x", "/run/service/gateway-default"),
    ("s6-svc", "-d", "/run/service/../../etc"),
)


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_other_commands_are_refused(theirs: Path, programs: Path, words: tuple[str, ...]) -> None:
    """A program, a command or an option that is not on the list; nothing is run."""
    for action in ("run", "begin"):
        more = (1.0,) if action == "run" else ()
        with pytest.raises(CannotFix, match="root does not run"):
            root_actions.actions(theirs, STRANGER)[action]([*words], *more)
    assert not programs.exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("systemctl", "--system", "stop", "--no-block", "ssh.service"), "not found"),
        (("systemctl", "--system", "enable", "hermes-gateway-other.service"), "not found"),
        (("loginctl", "enable-linger", "root"), "not found"),
        (("docker", "stop", "--time", "1", "web"), "only about containers"),
        (("s6-svc", "-d", "/run/service/gateway-other"), "not found"),
    ],
    ids=lambda words: " ".join(words),
)
def test_what_is_not_of_the_home(
    theirs: Path, programs: Path, words: tuple[str, ...], why: str
) -> None:
    """A service, a user, a container or a slot that root has not found itself to be of it."""
    other = UNIT.format(home="/somewhere/else")
    support.put(programs.parent / "units" / "hermes-gateway-other.service", other)

    with pytest.raises((CannotFix, CouldNotLook), match=why):
        root_actions.actions(theirs, STRANGER)["run"]([*words], 5.0)

    ran = programs.read_text() if programs.exists() else ""
    assert not any(verb in ran for verb in ("stop", "enable", "-d"))


def test_a_service_of_the_home(theirs: Path, programs: Path) -> None:
    """One whose file, which is root's, names the home."""
    unit = "hermes-gateway.service"
    support.put(programs.parent / "units" / unit, UNIT.format(home=theirs))
    run = root_actions.actions(theirs, STRANGER)["run"]

    assert run(["systemctl", "--system", "stop", "--no-block", unit], 5.0) == [0, ""]
    assert run(["systemctl", "--system", "daemon-reload"], 5.0) == [0, ""]

    assert programs.read_text().splitlines() == [
        f"systemctl --system stop --no-block {unit}",
        "systemctl --system daemon-reload",
    ]


def test_only_gateways_of_the_home_are_signalled(theirs: Path) -> None:
    """No other process, whatever number is asked for."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        with pytest.raises(CannotFix, match="not a gateway of this home"):
            root_actions.actions(theirs, STRANGER)["signal_gateway"](process.pid, 1, 15)
        assert process.poll() is None
    finally:
        end(process)


def test_a_gateway_is_started_as_the_owner(theirs: Path) -> None:
    """In the home, with its own limits: it may use sudo, which the separate process may not."""
    status = theirs / "status"
    command = ["/bin/sh", "-c", "grep -E 'Uid|NoNewPrivs' /proc/self/status; pwd; echo $NAME"]

    def work() -> int | None:
        folder = os.open(theirs, os.O_RDONLY)
        output = os.open(status, os.O_WRONLY | os.O_CREAT)
        given = (command, {"NAME": "value", "PATH": "/usr/bin:/bin"}, 0o027)
        pid = root_parent.ask_root("start_gateway", *given, descriptors=(folder, output))
        code: int | None = root_parent.ask_root("exit_code", pid, 30.0)
        return code

    assert separate_process.run_as(USER, work, root_actions.actions(theirs, STRANGER)) == 0

    lines = status.read_text().split()
    assert lines == ["Uid:", *[str(STRANGER)] * 4, "NoNewPrivs:", "0", str(theirs), "value"]


@pytest.mark.wide
def test_a_gateway_without_a_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stopped and started from the process of its owner, and runs as that user."""
    monkeypatch.setattr(startup_proof, "CONNECTING", 0.0)
    loaded.load_everything()
    with support.reachable_folder() as folder:
        made = straw(folder)
        crash_server.chown(folder / "home")
        (folder / "bin").chmod(0o755)
        command = ["/usr/bin/python3", str(made.program), "gateway", "run"]
        monkeypatch.setattr(Detached, "_command", lambda _: command)

        def work() -> list[int]:
            service = Detached(made.home, None)
            pids = []
            for _ in range(2):
                service.start(30)
                pid = service.running()
                assert pid is not None
                pids.append(os.stat(f"/proc/{pid}").st_uid)
                service.stop(60)
                assert service.running() is None
            return pids

        looking = looks.actions(made.home.path, STRANGER)
        actions = {**looking, **root_actions.actions(made.home.path, STRANGER)}
        assert separate_process.run_as(USER, work, actions) == [STRANGER, STRANGER]


def give(theirs: Path, path: Path, folder: Path, *, name: str = "") -> None:
    """Let root give a file to the owner of the home, from a process that names what it likes."""
    expect = [*snapshot(path)]

    def work() -> None:
        fds = (os.open(folder, os.O_PATH), os.open(path, os.O_PATH))
        given = (name or path.name, STRANGER, STRANGER, True, expect)
        root_parent.ask_root("give", *given, descriptors=fds)

    separate_process.run_as(USER, work, root_actions.actions(theirs, STRANGER))


def test_a_file_of_root_in_the_home_is_given(theirs: Path) -> None:
    """What a plan has seen there."""
    path = support.put(theirs / "new.json", "{}")
    assert path.stat().st_uid == 0

    give(theirs, path, theirs)

    assert path.stat().st_uid == STRANGER


def test_no_other_file_of_root_is_given(theirs: Path) -> None:
    """Not one elsewhere, whatever folder and name come with it, nor one with a second name."""
    outside = support.put(theirs.parent / "shadow", "root's", 0o644)
    support.put(theirs / "shadow", "{}")
    os.link(outside, theirs / "second")
    for path, folder, name in (
        (outside, theirs, ""),
        (outside, theirs.parent, ""),
        (outside, theirs, "../shadow"),
        (theirs / "second", theirs, ""),
    ):
        with pytest.raises((CouldNotLook, Trouble)):
            give(theirs, path, folder, name=name)
        assert outside.stat().st_uid == 0


def test_a_changed_file_is_not_given(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root compares the open file with what the plan saw."""
    path = support.put(theirs / "new.json", "{}")
    other = snapshot(path)._replace(size=17)
    monkeypatch.setattr(f"{__name__}.snapshot", lambda _: other)

    with pytest.raises(Trouble, match="another program changed"):
        give(theirs, path, theirs)

    assert path.stat().st_uid == 0


def test_an_open_file_of_the_owner(theirs: Path) -> None:
    """A process of root may be the only one that still has it; the owner's process gets it."""
    path = support.put(theirs / "state.db-wal", "rows")
    os.chown(path, STRANGER, STRANGER)
    path.chmod(0o600)
    with open(path) as held:
        path.unlink()
        root, number = os.getpid(), str(held.fileno())

        def work() -> str:
            fd = open_files.open_file_of_process(root, number, theirs / "state.db")
            with pytest.raises(OSError):
                os.write(fd, b"more")
            return os.read(fd, 100).decode()

        assert separate_process.run_as(USER, work, root_actions.actions(theirs, STRANGER)) == "rows"
    assert not [
        one
        for one in open_files_module.descriptors(os.getpid()) or ()
        if "state.db-wal" in one.target
    ]


def test_no_other_open_file(theirs: Path, tmp_path: Path) -> None:
    """Neither a file of root's, nor a pipe or a folder of the owner's, nor one that is closed."""
    os.mkfifo(theirs / "fifo")
    os.chown(theirs / "fifo", STRANGER, STRANGER)
    secret = support.put(tmp_path / "secret", "of root", 0o600)
    held = [os.open(one, os.O_RDWR | os.O_NONBLOCK) for one in (secret, theirs / "fifo")]
    held.append(os.open(theirs, os.O_RDONLY))
    root = os.getpid()

    def work() -> list[str]:
        said = []
        for fd in (*held, 9999):
            with pytest.raises(CannotFix) as refused:
                open_files.open_file_of_process(root, str(fd), theirs / "state.db")
            said.append(str(refused.value))
        return said

    try:
        said = separate_process.run_as(USER, work, root_actions.actions(theirs, STRANGER))
    finally:
        for fd in held:
            os.close(fd)
    assert said[:3] == [f"Root opens only files of the owner of the home (uid {STRANGER})."] * 3
    assert "has closed the file" in said[3]


def test_numbers_are_no_open_files(theirs: Path) -> None:
    """A process that passes none cannot name one of root's own."""
    support.put(theirs / "new.json", "{}")

    def work() -> None:
        root_parent.ask_root("give", "new.json", STRANGER, STRANGER, True, [], 0, 1)

    with pytest.raises(CouldNotLook, match="root could not do it"):
        separate_process.run_as(USER, work, root_actions.actions(theirs, STRANGER))


OWN = "hermes-gateway-own.service"
GIVEN: dict[str, list[object]] = {
    "run": [["systemctl", "--system", "stop", OWN], 5.0],
    "begin": [["systemctl", "--system", "start", OWN]],
    "start_gateway": [["/bin/sh", "-c", "id -u"], {"PATH": "/usr/bin:/bin"}, 0o077],
    "run_as_owner": [["/bin/sh", "-c", "id -u"], {"PATH": "/usr/bin:/bin"}, 5.0, "/"],
    "exit_code": [1, 0.0],
    "give": ["auth.json", STRANGER, STRANGER, True],
    "had_owner": [0, 0],
    "keep_last_ask": ["{}"],
}
"""What the process asks for."""


@pytest.mark.parametrize("name", [*GIVEN, "signal_gateway", "open_of_process"])
def test_a_home_that_is_swapped_at_any_moment(
    name: str, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No service and no gateway of root's own home is touched, and no file of it is given."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    dice = budget.chance(43)
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(support.reachable_folder())
        home = support.healthy(place / "user" / "home")
        crash_server.chown(home.parent)
        os.chown(home / "auth.json", 0, 0)
        own = support.healthy(tmp_path / "own")
        support.put(programs.parent / "units" / OWN, UNIT.format(home=own))
        output = stack.enter_context((tmp_path / "output").open("wb"))
        pid = stack.enter_context(
            pretender(tmp_path / "hermes", {"HERMES_HOME": str(own)}, lock=own / "gateway.lock")
        )
        started = process_stat.stat(pid)
        assert started is not None
        given = GIVEN | {"signal_gateway": [pid, started.start_time, int(signal.SIGKILL)]}
        lock = next(
            one for one in open_files_module.descriptors(pid) or () if one.path.endswith(".lock")
        )
        given["open_of_process"] = [pid, lock.number]
        assert {*given} == {*root_actions.actions(home, STRANGER)}
        before = support.tree(own)
        swapper = Swapper(home, own, dice)
        swapper.start()
        try:
            for _ in range(budget.tries(10, 200)):
                time.sleep(dice.uniform(0, 0.005))
                with contextlib.suppress(*REFUSALS):
                    _ask(home, name, given[name], output.fileno())
        finally:
            swapper.over.set()
            swapper.join()
        assert swapper.swaps
        assert support.tree(own) == before
        assert process_stat.stat(pid) == started or Path(f"/proc/{pid}").exists()
    assert OWN not in (programs.read_text() if programs.exists() else "")
    assert {*(tmp_path / "output").read_text().split()} <= {str(STRANGER)}


REFUSALS = (CannotFix, CouldNotLook, Trouble, OSError, KeyError)


def _ask(home: Path, name: str, given: list[object], output: int) -> None:
    """Let root do an action, with files that are opened while the home is swapped."""
    action, files = root_actions.actions(home, STRANGER)[name], []
    try:
        if name in ("give", "start_gateway"):
            files.append(os.open(home, os.O_PATH))
        if name in ("give", "had_owner"):
            files.append(os.open(home / "auth.json", os.O_PATH))
        if name == "give":
            given = [*given, [*snapshot(home / "auth.json")]]
        passed = (*files, output) if name == "start_gateway" else tuple(files)
        pid = action(*given, **({"descriptors": passed} if passed else {}))
        assert name != "open_of_process", "a file of root was opened"
        if name in ("begin", "start_gateway"):
            os.waitpid(pid, 0)
    finally:
        for fd in files:
            os.close(fd)


def test_the_last_question_is_root_s_own(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root keeps what it understands, and nothing else."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    keep = root_actions.actions(theirs, STRANGER)["keep_last_ask"]

    for document in ("{", "[]", "{}"):
        with pytest.raises((ValueError, TypeError, KeyError)):
            keep(document)
    assert keep('{"schema": "another"}') == "it is not valid"

    assert last_ask.load(Home(theirs)) is None
