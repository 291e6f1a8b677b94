"""A machine with very many processes, and a home with very many profiles: `check` is bounded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor.core.system import limits
from tests.helpers import crowded_proc, requirements, support

MEGABYTES = 400
SECONDS = 15
PROCESSES = 100_000
PROFILES = 1000
MEASURE = """
import json, os, sys, time
started = time.monotonic()
output = os.open(sys.argv[1] + ".out", os.O_WRONLY | os.O_CREAT)
as_output = [(os.POSIX_SPAWN_DUP2, output, 1)]
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=as_output)
_, status, usage = os.wait4(pid, 0)
done = [os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024, time.monotonic() - started]
json.dump(done, open(sys.argv[1], "w"))
"""


def checked(home: Path, folder: Path, *before: str, allowed: float) -> dict[str, object]:
    """Run `check` within the limits, after the words `before`; return its document."""
    result = folder / "measured"
    python = [sys.executable, "-I", "-S", "-c", MEASURE, str(result)]
    check = [sys.executable, "-m", "hermes_doctor", "check", "--json", "--home", str(home)]
    done = subprocess.run(
        [*before, *python, *check],
        env=support.environ(None),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare failed" in done.stderr or "PermissionError" in done.stderr:
        requirements.missing("namespaces for processes and mounts are forbidden here")
    code, megabytes, seconds = json.loads(result.read_text())
    assert code in (0, 1, 2), done.stderr
    assert megabytes < MEGABYTES
    assert seconds < allowed
    document: dict[str, object] = json.loads(Path(f"{result}.out").read_text())
    return document


def limit() -> float:
    """The seconds that are allowed: more if the machine is busy."""
    limits.patience.cache_clear()
    return SECONDS * limits.patience()


@pytest.mark.wide
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount another /proc")
def test_a_hundred_thousand_processes(home: Path, tmp_path: Path) -> None:
    """What needs them all is unknown after its time; the rest is checked."""
    crowd = crowded_proc.command(PROCESSES)

    found = checked(home, tmp_path, *crowd, allowed=limit())

    statuses = {one["status"] for one in found["checks"]}  # type: ignore[attr-defined]
    assert "crashed" not in statuses
    assert "ok" in statuses


@pytest.mark.wide
def test_a_thousand_profiles(home: Path, tmp_path: Path) -> None:
    """Each has its own settings and secrets."""
    for number in range(PROFILES):
        profile = home / "profiles" / f"p{number}"
        support.put(profile / "config.yaml", support.CONFIG)
        support.put(profile / ".env", f"OPENROUTER_API_KEY=sk-or-v1-{number:040}\n")

    found = checked(home, tmp_path, allowed=limit())

    assert "crashed" not in {one["status"] for one in found["checks"]}  # type: ignore[attr-defined]
