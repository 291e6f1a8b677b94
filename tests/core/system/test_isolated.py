"""A command that is not trusted gets nothing of this process, and ends with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_doctor.core.system.isolated import Limits, OwnFolder, RunningCommand
from tests.helpers import hostile_hermes

TELLS = """
import json, os
status = open("/proc/self/status").read()
rights = [line.split()[1] for line in status.splitlines() if line[:6] in ("CapEff", "CapPrm")]
print(json.dumps({"rights": rights, "files": sorted(map(int, os.listdir("/proc/self/fd")))[:3],
                  "env": dict(os.environ), "parent": os.getppid(), "uid": os.getuid()}))
"""
STARTS = """
import sys, time
from pathlib import Path
from hermes_doctor.core.system.isolated import OwnFolder, RunningCommand
word, folder, kind = sys.argv[1:]
RunningCommand(["/bin/sh", "-c", "setsid sleep 600 & sleep 600"], given=b"", env={"WORD": word},
               folder=OwnFolder(Path(folder)), cwd=Path("/"), namespaces=kind == "namespaces")
print("started", flush=True)
time.sleep(600)
"""


@pytest.fixture(params=[True, False], ids=["namespaces", "filters"])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., RunningCommand]:
    """Start a command with what the kernel has, with namespaces and without."""

    def run(*command: str, **options: Limits) -> RunningCommand:
        return RunningCommand(
            command,
            given=b"",
            env={"WORD": "word"},
            folder=OwnFolder(tmp_path),
            cwd=Path("/"),
            namespaces=request.param,
            **options,  # type: ignore[arg-type]
        )

    return run


def wait(command: RunningCommand, seconds: float = 30) -> int:
    """Return its exit code."""
    until = time.monotonic() + seconds
    while (code := command.ended()) is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    command.end()
    return code


def test_it_has_no_privileges(start: Callable[..., RunningCommand]) -> None:
    """Also root has none in it; and it sees only its own environment and descriptors."""
    command = start(sys.executable, "-I", "-S", "-c", TELLS)

    assert wait(command) == 0, command.err
    told = json.loads(command.out)

    assert set(told["rights"]) == {"0" * 16}
    assert told["files"] == [0, 1, 2] and told["uid"] == os.getuid()
    assert told["env"].pop("WORD") == "word" and "HOME" not in told["env"]


@pytest.mark.parametrize(("word", "code"), [("exit 3", 3), ("kill -9 $$", 137)])
def test_its_exit_code(start: Callable[..., RunningCommand], word: str, code: int) -> None:
    """As in a shell; the first process of a namespace cannot kill itself."""
    assert wait(start("/bin/sh", "-c", f"sh -c '{word}'")) == code


def test_a_program_that_does_not_exist(start: Callable[..., RunningCommand]) -> None:
    """The reason is ours."""
    command = start("/nowhere")

    assert wait(command) == 1
    assert command.reason() == "it could not be run (No such file or directory)"


def test_its_output_is_limited(start: Callable[..., RunningCommand]) -> None:
    """No more than twice the limit is kept."""
    command = start("/bin/sh", "-c", "yes", limits=Limits(output=1))
    until = time.monotonic() + 30
    while not command.wrote_too_much:
        assert command.ended() is None and time.monotonic() < until
        time.sleep(0.01)
    command.end()

    assert len(command.out) < 3_000_000


@pytest.mark.parametrize("kind", ["namespaces", "filters"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_us(tmp_path: Path, kind: str, how: int) -> None:
    """Its descendants too, also those in a session of their own."""
    word = f"ends-with-us-{os.getpid()}-{kind}-{how}"
    ours = subprocess.Popen(
        [sys.executable, "-c", STARTS, word, str(tmp_path), kind], stdout=subprocess.PIPE
    )
    with ours:
        assert ours.stdout is not None and ours.stdout.readline() == b"started\n"
        until = time.monotonic() + 30
        while len(hostile_hermes.processes_with(word)) < 4:
            assert time.monotonic() < until
            time.sleep(0.05)
        ours.send_signal(how)
        ours.wait(30)
    until = time.monotonic() + 30
    while hostile_hermes.processes_with(word):
        assert time.monotonic() < until
        time.sleep(0.05)
