"""The limit of memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor.core.system import memory_limit
from hermes_doctor.core.system.files import MEGABYTE
from tests.helpers import support

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the process of these tests had no more memory than a command."""
    monkeypatch.setattr(memory_limit, "_data", lambda: 0)


def soft() -> int:
    """The limit that applies now."""
    return resource.getrlimit(resource.RLIMIT_DATA)[0]


def test_what_the_process_had_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of others that calls this tool keeps its own memory."""
    monkeypatch.setattr(memory_limit, "_data", lambda: 460 * MEGABYTE)

    with memory_limit.limited():
        assert soft() == memory_limit.COMMAND + 400 * MEGABYTE


def test_the_lowest_limit_counts() -> None:
    """Limits may overlap; the last one that ends restores the limit from before."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    outer, inner = memory_limit.limited(), memory_limit.limited(memory_limit.CHECKS)
    outer.__enter__()
    assert soft() == memory_limit.COMMAND
    inner.__enter__()
    assert soft() == memory_limit.CHECKS
    outer.__exit__(None, None, None)
    assert soft() == memory_limit.CHECKS
    inner.__exit__(None, None, None)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_a_map_of_a_large_file(tmp_path: Path) -> None:
    """A private map counts for the kernel, but it is no memory: only the rest is limited."""
    program = (
        "import mmap, sys; from hermes_doctor.backup.vault import blocks\n"
        "from hermes_doctor.core.system import memory_limit\n"
        "with memory_limit.limited(), open(sys.argv[1], 'rb') as file:\n"
        "    made = blocks._map(file.fileno())\n"
        "    try:\n"
        "        bytearray(memory_limit.COMMAND)\n"
        "    except MemoryError:\n"
        "        print(len(made) > 2 * memory_limit.COMMAND)\n"
    )
    large = tmp_path / "large"
    with open(large, "wb") as file:
        file.truncate(2 * memory_limit.COMMAND + 1)
    done = subprocess.run([sys.executable, "-c", program, large], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_lower_limit_of_the_operator() -> None:
    """It is kept."""
    _, hard = before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_limit.CHECKS - MEGABYTE, hard))
    try:
        with memory_limit.limited():
            assert soft() == memory_limit.CHECKS - MEGABYTE
        assert soft() == memory_limit.CHECKS - MEGABYTE
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def test_the_kernel_enforces_it() -> None:
    """Too much memory is an exception, not the end of another program."""
    with memory_limit.limited(), pytest.raises(MemoryError):
        bytes(memory_limit.COMMAND)


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
    with memory_limit.limited(), memory_limit.limited(memory_limit.CHECKS):
        assert soft_stacks[0] == sizes[-1] == memory_limit.STACK
    assert soft_stacks[0] == 64 * MEGABYTE
    assert sizes[-1] == 0


def test_limits_that_are_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container or a hardened service may refuse the system call; then there is no limit."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(resource, "getrlimit", refuse)
    monkeypatch.setattr(resource, "setrlimit", refuse)
    with memory_limit.limited(), memory_limit.limited(memory_limit.CHECKS):
        pass


def test_no_thread_near_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused at once, because Python would wait forever for its start."""
    with memory_limit.limited():
        monkeypatch.setattr(memory_limit, "_data", lambda: memory_limit.COMMAND - MEGABYTE)
        with pytest.raises(RuntimeError, match="could not start a thread"):
            memory_limit.start_thread(lambda: None, "x")


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

    limit = str(memory_limit.COMMAND)
    before = resource.getrlimit(resource.RLIMIT_DATA)[0]
    usual = "unlimited" if before == resource.RLIM_INFINITY else str(before // 1024)
    assert done.stdout.split() == [limit, usual, limit], done.stderr


def test_limits_that_are_lifted() -> None:
    """Whatever starts a program of others lifts the limits while it does, and only then."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with memory_limit.limited():
        with memory_limit.lifted(), memory_limit.limited(memory_limit.CHECKS):
            assert resource.getrlimit(resource.RLIMIT_DATA) == before
        assert soft() == memory_limit.COMMAND
    with memory_limit.lifted():
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
