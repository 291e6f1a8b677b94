"""RUN-CUTOFF: runs of the tool that never came to their end."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CheckResult, Finding, Severity, Status
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import support


def look(home: Path) -> tuple[CheckResult, list[Finding]]:
    """What this one check says about a home."""
    checks = [check for check in load.load().checks if check.id == "unfinished-runs"]
    [result], findings = examine(Probes(Home(home)), checks)
    return result, findings


def run(home: Path, id: str, state: str) -> Path:
    """A journal in that state."""
    document = {"state": state, "started_at": "2026-11-15T03:15:00+00:00"}
    return support.put(home / "backups/doctor/runs" / id / "run.json", json.dumps(document))


@pytest.mark.parametrize("state", ["backing-up", "staging", "committing", "verifying"])
def test_cut_off(home: Path, state: str) -> None:
    """Every state that is not an end is a run that was cut off."""
    run(home, "20261115-031500-aaaa", state)

    result, [finding] = look(home)

    assert result.status is Status.PROBLEM
    assert (finding.code, finding.severity) == ("RUN-CUTOFF", Severity.ERROR)
    assert finding.subject == "20261115-031500-aaaa"
    assert state in finding.evidence[0].what
    assert finding.since is not None
    assert finding.fix is None, "the next run ends it by itself"


@pytest.mark.parametrize("state", ["done", "partly", "rolled-back", "abandoned", "undone"])
def test_ended(home: Path, state: str) -> None:
    """A run that ended is no finding."""
    run(home, "20261115-031500-aaaa", state)

    result, findings = look(home)

    assert (result.status, findings) == (Status.OK, [])


def test_at_work(home: Path) -> None:
    """A run that is going on in another process was not cut off."""
    run(home, "20261115-031500-aaaa", "committing")
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, os, sys; fd = os.open(sys.argv[1], os.O_RDONLY);"
            "fcntl.flock(fd, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()",
            str(home),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdin and holder.stdout
    try:
        assert holder.stdout.readline() == b"held\n"

        assert look(home)[1] == []
    finally:
        holder.stdin.close()
        holder.wait(timeout=10)
        holder.stdout.close()

    assert [f.code for f in look(home)[1]] == ["RUN-CUTOFF"]


def test_looking_takes_no_lock(home: Path) -> None:
    """The check asks the kernel; it never takes the home's lock itself."""
    run(home, "20261115-031500-aaaa", "committing")
    look(home)
    fd = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(fd)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"x"', "[" * 5000, "null"])
def test_unreadable_journal(home: Path, text: str) -> None:
    """A journal that cannot be read is unknown, not fine."""
    support.put(home / "backups/doctor/runs/20261115-031500-aaaa/run.json", text)

    result, findings = look(home)

    assert (result.status, findings) == (Status.UNKNOWN, [])
    assert "20261115-031500-aaaa" in (result.reason or "")


def test_one_unreadable_journal_hides_no_other(home: Path) -> None:
    """A run that was cut off is still told of beside a journal that cannot be read."""
    support.put(home / "backups/doctor/runs/20261115-031500-aaaa/run.json", "{")
    run(home, "20261115-031600-bbbb", "committing")

    result, findings = look(home)

    assert [finding.subject for finding in findings] == ["20261115-031600-bbbb"]
    assert "20261115-031500-aaaa" in (result.reason or "")


def test_none(home: Path) -> None:
    """A home where the tool never ran is fine."""
    result, findings = look(home)

    assert (result.status, findings) == (Status.OK, [])
