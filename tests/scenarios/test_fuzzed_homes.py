"""Whatever a home contains, a command answers in time, with little memory, and changes nothing.

`make fuzz` tries 2,000 homes, FUZZED_HOMES another number.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.system import limits
from tests.helpers import fuzzed_homes, support

HOMES = int(os.environ.get("FUZZED_HOMES", "120"))
FIRST = int(os.environ.get("FUZZED_FIRST", "0"))
"""The first number; others are other homes."""
MEGABYTES = 400
SECONDS = 15
OTHER_COMMANDS = (("config",), ("timeline",), ("fix",))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that is removed at once: 2,000 homes do not fit on every disk."""
    made = Path(tempfile.mkdtemp())
    yield made
    shutil.rmtree(made)


STARTER = """
import os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss, file=open(sys.argv[1], "w"))
"""
"""Starts a command and measures it; Linux counts the memory of the process that starts it, too, and
that of these tests can be large."""


def run(*words: str | Path) -> tuple[int, str, str, float, float]:
    """Run a command: exit code, output, errors, megabytes and seconds."""
    with tempfile.NamedTemporaryFile("r") as measured:
        command = [sys.executable, "-m", "hermes_doctor", *map(str, words)]
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", STARTER, measured.name, *command],
            env=support.environ(None),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        seconds = time.monotonic() - started
        code, kilobytes = map(int, measured.read().split())
    return code, done.stdout, done.stderr, kilobytes / 1024, seconds


@pytest.mark.sampled(one_of=8)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + HOMES))
def test_fuzzed_home(folder: Path, seed: int) -> None:
    """Documented exit code, no traceback, no crash, below the limits, and the home as before."""
    home = folder / "home"
    done = fuzzed_homes.make(home, seed)
    before = fuzzed_homes.fingerprint(home)
    limits.patience.cache_clear()
    allowed = SECONDS * limits.patience()  # more if the machine is busy now

    code, out, err, megabytes, seconds = run("check", "--json", "--home", home)

    assert code in (0, 1, 2), (done, err)
    found = json.loads(out)
    crashed = [one for one in found["checks"] if one["status"] == "crashed"]
    assert crashed == [], (done, crashed)
    words = OTHER_COMMANDS[seed % len(OTHER_COMMANDS)]
    other = run(*words, "--home", home)
    assert other[0] in (0, 1, 2), (words, done, other[2])
    for text in (out, err, other[1], other[2]):
        assert "Traceback" not in text, (done, text)
        assert "This is a bug" not in text, (done, text)
    assert max(megabytes, other[3]) < MEGABYTES, (done, megabytes, other[3])
    assert seconds < allowed, (done, seconds)
    assert fuzzed_homes.fingerprint(home) == before, done
