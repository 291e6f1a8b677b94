"""`check` ends in time, whatever holds it up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.cli import time_guard
from tests.helpers import hung_drive, support

ROOT = Path(__file__).parents[2]
COMMAND = """\
import sys
sys.argv[0] = "hermes-doctor"
from hermes_doctor.cli import check_run, main, time_guard
from hermes_doctor.core.system import limits
time_guard.SECONDS, check_run.LIMIT = {seconds}, {limit}
limits.patience = lambda: 1.0  # as if the machine were idle
{patch}
main.main()
"""
STUCK = 'check_run.run = lambda *given, **more: __import__("re").match("(a+)+b", "a" * 60)'
"""A computation that keeps Python from doing anything else."""
SLEEPS = 'check_run.run = lambda *given, **more: print("begun", flush=True) or time.sleep(120)'


def start(
    *words: str | Path, patch: str = "", seconds: float = 60.0, limit: float = 2.0
) -> subprocess.Popen[str]:
    """Start `check`, which is ended after so many seconds; its checks end after the `limit`."""
    command = COMMAND.format(patch=f"import time\n{patch}", seconds=seconds, limit=limit)
    return subprocess.Popen(
        [sys.executable, "-c", command, "check", *words],
        cwd=ROOT,
        env=support.environ(None),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """The exit code, the output and the errors."""
    out, err = process.communicate(timeout=90)
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (["check"], True),
        (["check", "--json"], True),
        (["check", "--deep"], False),
        (["fix"], False),
        ([], False),
    ],
)
def test_is_needed(words: list[str], needed: bool) -> None:
    """Only for `check`, unless it may take as long as it needs."""
    assert time_guard.is_needed(words) is needed


def test_a_computation_that_never_ends() -> None:
    """One line says why, and the exit code is 2."""
    code, out, err = ended(start(patch=STUCK, seconds=4.0))

    assert (code, out) == (2, "")
    assert err == (
        "hermes-doctor: The check was ended after 4 s, because the drive of the home does not "
        "answer or a file in it takes too long to read.\n"
    )


def test_no_process_is_left() -> None:
    """One line says so, instead of a traceback."""
    patch = (
        "import os\n"
        "def fork():\n"
        "    raise BlockingIOError(11, 'Resource temporarily unavailable')\n"
        "os.fork = fork\n"
    )

    code, out, err = ended(start(patch=patch))

    assert (code, out) == (2, "")
    assert err == (
        "hermes-doctor: Could not start a process, because memory or the number of processes is "
        "limited.\n"
    )


def test_documents() -> None:
    """Programs get the reason in their own format."""
    code, out, _ = ended(start("--json", patch=STUCK, seconds=4.0))
    assert code == 2
    assert json.loads(out)["error"]["message"].startswith("The check was ended after 4 s")

    code, out, _ = ended(start("--format", "nagios", patch=STUCK, seconds=4.0))
    assert code == 3
    assert "The check was ended after 4 s" in out


@pytest.mark.parametrize("number", [0, 1, 2, 3, 130])
def test_exit_codes_and_output(number: int) -> None:
    """Whatever `check` prints and returns is passed on, however long it is."""
    patch = (
        "def run(*given, **more):\n"
        "    print('x' * 1_000_000)\n"
        "    print('to the operator', file=sys.stderr)\n"
        f"    return {number}\n"
        "check_run.run = run\n"
    )

    code, out, err = ended(start(patch=patch))

    assert code == number
    assert out == "x" * 1_000_000 + "\n"
    assert err.startswith("to the operator\n")


def test_nobody_reads_the_output() -> None:
    """`| head` ends the command."""
    patch = "check_run.run = lambda *given, **more: [print('x' * 1000) for n in range(10000)]"
    with start(patch=patch) as process:
        assert process.stdout is not None
        process.stdout.close()

        assert process.wait(30) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals(number: signal.Signals) -> None:
    """Both processes end, as by the signal."""
    process = start(patch=SLEEPS)
    assert process.stdout is not None
    process.stdout.readline()

    process.send_signal(number)

    assert ended(process)[0] == -number


def test_interrupt() -> None:
    """It is passed on if only this process got it."""
    process = start(patch=SLEEPS)
    assert process.stdout is not None
    process.stdout.readline()

    process.send_signal(signal.SIGINT)

    code, _, err = ended(process)
    assert code == 130
    assert "Nothing was changed" in err


def test_the_child_is_killed() -> None:
    """The command ends like it, for example when the kernel has no memory left."""
    process = start(
        patch="import os; check_run.run = lambda *given, **more: os.kill(os.getpid(), 9)"
    )

    assert ended(process)[0] == -signal.SIGKILL


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[Path]:
    """A folder whose drive never answers."""
    if os.geteuid() or not hung_drive.DEVICE.exists():
        pytest.skip("only root can mount a drive, and only where the kernel offers FUSE")
    with hung_drive.mounted(tmp_path / "drive"):
        yield tmp_path / "drive"


def test_a_home_on_a_hung_drive(hung: Path) -> None:
    """Nothing of the home can be read, and the process that tried cannot even be killed."""
    started = time.monotonic()

    code, out, err = ended(start("--home", hung, seconds=4.0))

    assert (code, out) == (2, "")
    assert "the drive of the home does not answer" in err
    assert time.monotonic() - started < 45


@pytest.mark.parametrize("name", ["logs", "state.db", "config.yaml"])
def test_a_part_of_the_home_on_a_hung_drive(home: Path, hung: Path, name: str) -> None:
    """What can be read is checked."""
    (home / ".env").chmod(0o644)
    if (home / name).exists():
        (home / name).rename(home / "aside")
    (home / name).symlink_to(hung / name)
    code, out, err = ended(start("--json", "--home", home, limit=11.0))

    assert code in (0, 1), err
    found = json.loads(out)
    reasons = [check["reason"] or "" for check in found["checks"] if check["status"] == "unknown"]
    assert any("took longer" in reason or "time for" in reason for reason in reasons)
    assert "ok" in {check["status"] for check in found["checks"]}
