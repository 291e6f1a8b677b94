"""The limit of memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor.system import memory_limit
from hermes_doctor.system.files import MEGABYTE
from tests.helpers import support

ROOT = Path(__file__).parents[2]


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
