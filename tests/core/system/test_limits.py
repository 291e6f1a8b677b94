"""Limits in the seconds of an idle machine: more by the clock where processors are shared."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import commands, limits
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.core.system.files import MEGABYTE
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import busy_machine, hung_drive, support


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """A machine with two processors; how many processes want to run there can be set."""
    machine = {"runnable": 1.0}
    monkeypatch.setattr(limits, "_FRESH", -1.0)
    monkeypatch.setattr(limits, "_count", lambda: 2.0)
    monkeypatch.setattr(limits, "_small_share", lambda: 1.0)
    monkeypatch.setattr(limits, "_runnable", lambda: machine["runnable"])
    return machine


def test_factor(running: dict[str, float]) -> None:
    """As many times slower as processes share a processor, within bounds."""
    for runnable, expected in ((0, 1), (2, 1), (3, 1.5), (10, 5), (1000, limits.MOST)):
        running["runnable"] = runnable
        assert limits.factor() == expected
        assert limits.stretch(2.0) == 2.0 * expected


def test_a_share_of_a_processor(running: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """A container that is allowed a tenth of a processor has ten times as long."""
    monkeypatch.setattr(limits, "_small_share", lambda: 10.0)
    assert limits.factor() == 10.0


def test_a_clock_that_was_ahead(running: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """A factor that was measured later than now is not used."""
    running["runnable"] = 6.0
    monkeypatch.setattr(limits, "_FRESH", 0.05)
    monkeypatch.setattr(limits, "_measured", (time.monotonic() + 600, 1.0))
    assert limits.factor() == 3.0


def test_a_real_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Busy processes on one processor are seen at once; the other processors stay free."""
    allowed = os.sched_getaffinity(0)
    monkeypatch.setattr(limits, "_count", lambda: 1.0)
    monkeypatch.setattr(limits, "_FRESH", -1.0)
    os.sched_setaffinity(0, {min(allowed)})  # the busy processes inherit it
    try:
        with busy_machine.machine(4):
            assert limits.factor() >= 4
    finally:
        os.sched_setaffinity(0, allowed)


def test_what_hangs_ends(running: dict[str, float]) -> None:
    """However busy the machine, a limit grows by a minute at most."""
    running["runnable"] = 1000.0
    assert limits.stretch(30.0) == 30.0 + limits.EXTRA
    clock = limits.Stopwatch(time.monotonic() - 30.0 - limits.EXTRA)
    assert clock.read() >= 30.0


def test_stopwatch(running: dict[str, float]) -> None:
    """It counts slowly for as long as the machine is busy, and no longer."""
    running["runnable"] = 20.0
    clock = limits.Stopwatch(time.monotonic() - 5.0)
    assert 0.5 <= clock.read() < 1.0
    running["runnable"] = 1.0
    time.sleep(0.05)
    assert clock.read() > 0.54


def test_waiting_ends(running: dict[str, float]) -> None:
    """A wait ends when the event comes, or when the limit is over, however busy the machine."""
    running["runnable"] = 6.0
    never, soon = threading.Event(), threading.Event()
    soon.set()
    began = time.monotonic()
    assert limits.Stopwatch().wait(soon, 60)
    assert not limits.Stopwatch().wait(never, 0.1)
    assert 0.3 <= time.monotonic() - began < 20


class Slow(Probes):
    """Takes six times its limit by the clock, so that a real load changes nothing."""

    looks = 0

    @once(limit=0.2)
    def slow(self) -> str:
        """Answers, but slowly."""
        self.looks += 1
        time.sleep(1.2)
        return "here"


def test_a_look_on_a_busy_machine(running: dict[str, float], home: Path) -> None:
    """What would hang on an idle machine is waited for on a busy one."""
    with pytest.raises(CouldNotLook):
        Slow(Home(home)).slow()
    running["runnable"] = 40.0
    assert Slow(Home(home)).slow() == "here"


def test_late_callers_do_not_wait_again(
    home: Path, running: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that hung costs its limit once, not once for each check that asks for it."""
    probes = Slow(Home(home))
    with pytest.raises(CouldNotLook):
        probes.slow()
    waits: list[float | None] = []
    [cell] = probes.cache.calls.values()
    monkeypatch.setattr(cell, "done", Counted(waits))
    with pytest.raises(CouldNotLook):
        probes.slow()
    assert waits == [] and probes.looks == 1


class Counted(threading.Event):
    """An event that never comes, and counts who waits for it."""

    def __init__(self, waits: list[float | None]) -> None:
        super().__init__()
        self.waits = waits

    def wait(self, timeout: float | None = None) -> bool:
        """Count the wait, and do not wait."""
        self.waits.append(timeout)
        return False


def test_a_command_on_a_busy_machine(running: dict[str, float]) -> None:
    """So with commands; what was written to one is written once."""
    with pytest.raises(CouldNotLook, match=r"did not answer within 0\.2 s"):
        commands.ask("sh", "-c", "sleep 0.6; cat", stdin=b"hello", limit=0.2)
    running["runnable"] = 40.0
    assert commands.ask("sh", "-c", "sleep 0.6; cat", stdin=b"hello", limit=0.2).out == "hello"


def test_processors() -> None:
    """Those of the machine, as the runnable processes are counted."""
    assert limits._count() == os.cpu_count()


@pytest.mark.parametrize(
    ("load", "now", "factor"),
    [(0.0, 1.0, 1.0), (1.0, 1.0, 1.0), (2.0, 1.0, 2.0), (0.0, 2.5, 2.5), (9.0, 1.0, 3.0)],
)
def test_patience(monkeypatch: pytest.MonkeyPatch, load: float, now: float, factor: float) -> None:
    """The load of the last minute, or of this moment, gives a command more time, within bounds."""
    monkeypatch.setattr(limits, "_count", lambda: 1.0)
    monkeypatch.setattr(limits, "factor", lambda: now)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))

    assert limits.patience.__wrapped__() == factor


ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the process of these tests had no more memory than a command."""
    monkeypatch.setattr(limits, "_data", lambda: 0)


def soft() -> int:
    """The limit that applies now."""
    return resource.getrlimit(resource.RLIMIT_DATA)[0]


def test_what_the_process_had_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of others that calls this tool keeps its own memory."""
    monkeypatch.setattr(limits, "_data", lambda: 460 * MEGABYTE)

    with limits.limited():
        assert soft() == limits.COMMAND + 400 * MEGABYTE


def test_the_lowest_limit_counts() -> None:
    """Limits may overlap; the last one that ends restores the limit from before."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    outer, inner = limits.limited(), limits.limited(limits.CHECKS)
    outer.__enter__()
    assert soft() == limits.COMMAND
    inner.__enter__()
    assert soft() == limits.CHECKS
    outer.__exit__(None, None, None)
    assert soft() == limits.CHECKS
    inner.__exit__(None, None, None)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_a_map_of_a_large_file(tmp_path: Path) -> None:
    """A private map counts for the kernel, but it is no memory: only the rest is limited."""
    program = (
        "import mmap, sys; from hermes_doctor.backup.vault import blocks\n"
        "from hermes_doctor.core.system import limits\n"
        "with limits.limited(), open(sys.argv[1], 'rb') as file:\n"
        "    made = blocks._map(file.fileno())\n"
        "    try:\n"
        "        bytearray(limits.COMMAND)\n"
        "    except MemoryError:\n"
        "        print(len(made) > 2 * limits.COMMAND)\n"
    )
    large = tmp_path / "large"
    with open(large, "wb") as file:
        file.truncate(2 * limits.COMMAND + 1)
    done = subprocess.run([sys.executable, "-c", program, large], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_lower_limit_of_the_operator() -> None:
    """It is kept."""
    _, hard = before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (limits.CHECKS - MEGABYTE, hard))
    try:
        with limits.limited():
            assert soft() == limits.CHECKS - MEGABYTE
        assert soft() == limits.CHECKS - MEGABYTE
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def test_the_kernel_enforces_it() -> None:
    """Too much memory is an exception, not the end of another program."""
    with limits.limited(), pytest.raises(MemoryError):
        bytes(limits.COMMAND)


def test_a_command_that_needs_too_much() -> None:
    """It says so in one line and exits with 2."""
    code = (
        "from hermes_doctor.cli import main, quick_args\n"
        "quick_args.parse = lambda words: lambda: len(bytes(1 << 30))\n"
        "main.main()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, "list"],
        cwd=ROOT,
        env=support.environ(None),
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    assert done.stderr == "hermes-doctor: This command needs more than 360 MB of memory.\n"


def test_a_large_stack(home: Path) -> None:
    """Threads with stacks of `ulimit -s` would use up the memory before they do anything."""
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    large = 1024 * MEGABYTE
    if hard != resource.RLIM_INFINITY and hard < large:
        pytest.skip("the limit of stacks cannot be raised here")

    done = support.spawned(
        "check",
        "--home",
        home,
        "--json",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (large, hard)),
    )

    assert "could not start a thread" not in done.out
    assert "of memory" not in done.out


def test_stacks_are_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the limit has ended."""
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    soft_stacks = [64 * MEGABYTE, hard]
    sizes: list[int] = []

    def set_limit(kind: int, limits: tuple[int, int]) -> None:
        if kind == resource.RLIMIT_STACK:
            soft_stacks[0] = limits[0]

    monkeypatch.setattr(resource, "setrlimit", set_limit)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft_stacks[0], hard))
    monkeypatch.setattr("threading.stack_size", sizes.append)
    with limits.limited(), limits.limited(limits.CHECKS):
        assert soft_stacks[0] == sizes[-1] == limits.STACK
    assert soft_stacks[0] == 64 * MEGABYTE
    assert sizes[-1] == 0


def test_limits_that_are_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container or a hardened service may refuse the system call; then there is no limit."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(resource, "getrlimit", refuse)
    monkeypatch.setattr(resource, "setrlimit", refuse)
    with limits.limited(), limits.limited(limits.CHECKS):
        pass


def test_no_thread_near_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused at once, because Python would wait forever for its start."""
    with limits.limited():
        monkeypatch.setattr(limits, "_data", lambda: limits.COMMAND - MEGABYTE)
        with pytest.raises(RuntimeError, match="could not start a thread"):
            limits.start_thread(lambda: None, "x")


@pytest.mark.parametrize(
    "words", [("fix",), ("undo",), ("backup", "list"), ("rollback",), ("mutes",), ("watch",)]
)
def test_every_command(words: tuple[str, ...]) -> None:
    """All have the limit, also those that write; only programs of others are started without it."""
    code = (
        "import resource\n"
        "from hermes_doctor.cli import main, quick_args\n"
        "from hermes_doctor.repair.gateway.manager_commands import run_command\n"
        "def show():\n"
        "    print(resource.getrlimit(resource.RLIMIT_DATA)[0])\n"
        "    print(run_command(['sh', '-c', 'ulimit -d']).text)\n"
        "    print(resource.getrlimit(resource.RLIMIT_DATA)[0])\n"
        "quick_args.parse = lambda words: show\n"
        "main.main()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=ROOT,
        env=support.environ(None),
        capture_output=True,
        text=True,
    )

    limit = str(limits.COMMAND)
    before = resource.getrlimit(resource.RLIMIT_DATA)[0]
    usual = "unlimited" if before == resource.RLIM_INFINITY else str(before // 1024)
    assert done.stdout.split() == [limit, usual, limit], done.stderr


def test_limits_that_are_lifted() -> None:
    """Whatever starts a program of others lifts the limits while it does, and only then."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with limits.limited():
        with limits.lifted(), limits.limited(limits.CHECKS):
            assert resource.getrlimit(resource.RLIMIT_DATA) == before
        assert soft() == limits.COMMAND
    with limits.lifted():
        assert resource.getrlimit(resource.RLIMIT_DATA) == before


def failing(home: Path, patch: str, *words: str) -> support.Done:
    """Run a command in which something takes a gigabyte."""
    modules = "from hermes_doctor.cli import main\nfrom hermes_doctor.repair.transaction import run"
    code = f"{modules}\n{patch}\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nmain.main()", *words, "--home", str(home)],
        cwd=ROOT,
        env=support.environ(None),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return support.Done(done.returncode, done.stdout, done.stderr)


BEFORE_THE_CHANGE = "run.stage = lambda *given: bytes(1 << 30)"
AFTER_THE_CHANGE = (
    "real = run.commit\n"
    "def commit(*given):\n"
    "    real(*given)\n"
    "    bytes(1 << 30)\n"
    "run.commit = commit"
)


@pytest.mark.parametrize("patch", [BEFORE_THE_CHANGE, AFTER_THE_CHANGE])
def test_a_repair_that_needs_too_much(home: Path, patch: str) -> None:
    """It changes nothing or is rolled back, and says why."""
    (home / ".env").chmod(0o644)
    before = support.contents(home)

    done = failing(home, patch, "fix", "--apply", "--yes")

    assert done.code == 2
    assert "This command needs more than 360 MB of memory. Nothing was changed." in done.err
    assert support.contents(home) == before
    assert support.doctor("fix", "--apply", "--yes", "--home", home).code == 0


ROOT = Path(__file__).parents[3]
COMMAND = """\
import sys
sys.argv[0] = "hermes-doctor"
from hermes_doctor.cli import main
from hermes_doctor.core.system import limits
limits.OFTEN, limits.ANSWER_WITHIN = 0.2, 1.0
main.main()
"""


def first_line(drive: Path, *words: str | Path) -> tuple[str, int]:
    """The first line that a command says while the drive hangs, and its process id."""
    if os.geteuid() or not hung_drive.DEVICE.exists():
        pytest.skip("only root can mount a drive, and only where the kernel offers FUSE")
    with hung_drive.mounted(drive):
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *map(str, words)],
            cwd=ROOT,
            env=support.environ(None),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        said = process.stderr.readline()
        process.kill()
    process.communicate()
    return said, process.pid


@pytest.mark.parametrize("command", ["fix", "timeline"])
def test_a_home_on_a_hung_drive(tmp_path: Path, command: str) -> None:
    """One line says what the command waits for, and how to end it."""
    drive = tmp_path / "drive"

    said, pid = first_line(drive, command, "--home", drive)

    assert said == (
        f"hermes-doctor: The drive of {drive} has not answered for 1 s, and the command waits for "
        f"it. To end the command: kill -9 {pid}. No file is then left half-written.\n"
    )


def test_a_vault_on_a_hung_drive(home: Path, tmp_path: Path) -> None:
    """So does one that writes its backups there."""
    vault = tmp_path / "drive" / "vault"

    said, _ = first_line(vault.parent, "backup", "create", "--home", home, "--vault", vault)

    assert f"The drive of {vault} has not answered" in said


def test_a_drive_that_answers_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is said, too."""
    awake = threading.Event()
    said: list[str] = []
    monkeypatch.setattr(limits, "ANSWER_WITHIN", 0.1)
    monkeypatch.setattr(os, "statvfs", lambda _: awake.wait(10))

    def say(message: str) -> None:
        said.append(message)
        awake.set()

    limits._ask_drive(str(tmp_path), say)

    assert len(said) == 2
    assert said[0].startswith(f"The drive of {tmp_path} has not answered for 0 s")
    assert said[1] == f"The drive of {tmp_path} answers again."


def test_a_drive_that_answers(tmp_path: Path) -> None:
    """Nothing is said, also not about a folder that does not exist."""
    said: list[str] = []

    limits._ask_drive(str(tmp_path), said.append)
    limits._ask_drive(str(tmp_path / "absent"), said.append)

    assert said == []
