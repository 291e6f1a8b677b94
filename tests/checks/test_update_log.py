"""UPD-CUTOFF by logs/update.log: an update that waits, and one that has no end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.backup.records.updates import Update, UpdateRecords
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Finding, Severity, Status
from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.hermes.installation.last_update import FileChange
from tests.helpers import fake_gateway, support
from tests.helpers.one_check import ask

CHECK = "update-log"
HEADER = "\n=== hermes update started 2026-11-13T22:25:06 ===\n⚕ Updating Hermes Agent...\n\n"
STASH = (
    "→ Local changes detected — stashing before update...\n→ Fetching updates...\n"
    "→ Found 4231 new commit(s)\n→ Pulling updates...\n"
)
ASKS = "\n⚠ Local changes were stashed before updating.\nRestore local changes now? [Y/n]\n"
ANSWERED = "→ Restoring local changes...\n→ Updating Python dependencies...\n"
DONE = "\n✓ Update complete!\n\n→ Restarting gateway...\n"


def log(home: Path, *parts: str, minutes: float = 60) -> Path:
    """Write the log of updates, whose last line is so old."""
    path = support.put(home / "logs/update.log", "".join(parts))
    at = time.time() - 60 * minutes
    os.utime(path, (at, at))
    return path


def found(home: Path) -> list[Finding]:
    """What the check finds."""
    result, findings = ask(CHECK, home)
    assert result.status in (Status.OK, Status.PROBLEM), result
    return findings


@contextmanager
def updater(path: Path, mode: str = "a") -> Iterator[int]:
    """A process that has the log open, as `hermes update` has; its id."""
    program = (
        "import sys; file = open(sys.argv[1], sys.argv[2]); print(1, flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", program, path, mode], stdin=pipe, stdout=pipe
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid


@pytest.mark.parametrize(
    "said",
    [
        HEADER + STASH + DONE,
        HEADER + STASH + ASKS + ANSWERED + DONE,
        HEADER + "→ Fetching updates...\n✓ Already up to date!\n",
        HEADER + STASH + "✗ Git pull failed: exit status 1\n",
        HEADER + STASH + "⚠ Update partially complete — Node.js dependencies did not refresh.\n",
        HEADER + "→ Fetching updates...\n",
        HEADER,
        HEADER + STASH + ASKS + HEADER + "✓ Already up to date!\n",
        HEADER + "→ Running: uv pip install --upgrade hermes-agent\n✓ Update complete! Restart it.",
    ],
)
def test_ended(home: Path, said: str) -> None:
    """Each way to an end, an answered question, and a run that changed nothing."""
    log(home, said)

    assert found(home) == []


@pytest.mark.parametrize("said", [None, "", "no header\n→ Pulling updates...\n"])
def test_no_run(home: Path, said: str | None) -> None:
    """A home without a log of updates, or with one that Hermes did not write."""
    if said is not None:
        log(home, said)

    assert ask(CHECK, home)[0].status is Status.SKIPPED


@pytest.mark.parametrize(
    ("tail", "title", "severity"),
    [
        (STASH + ASKS, "an update of Hermes stopped at a question", Severity.WARNING),
        (
            STASH + ASKS + ANSWERED + "Would you like to configure them now? [Y/n]: ",
            "an update of Hermes stopped at a question",
            Severity.WARNING,
        ),
        (STASH + ASKS + ANSWERED, "an update of Hermes did not come to its end", Severity.WARNING),
        (
            STASH + "✗ Update pulled new code, but restoring local changes hit conflicts.\n",
            "an update of Hermes did not come to its end",
            Severity.WARNING,
        ),
        (
            "Add official repo as 'upstream' remote? [Y/n]: ",
            "an update of Hermes stopped at a question",
            Severity.INFO,
        ),
    ],
)
def test_no_end(home: Path, tail: str, title: str, severity: Severity) -> None:
    """Its process is gone; what it had not changed yet is only a note."""
    path = log(home, HEADER + STASH + DONE, HEADER, tail)

    [one] = found(home)

    assert (one.code, one.title, one.severity) == ("UPD-CUTOFF", title, severity)
    assert one.since == datetime.fromtimestamp(path.stat().st_mtime, UTC)
    assert one.evidence[0].what == "update started 2026-11-13T22:25:06"
    assert one.evidence[1].what.endswith(tail.strip().splitlines()[-1])


def test_somebody_reads_the_log(home: Path) -> None:
    """Such as `tail -f`: that is not the updater."""
    path = log(home, HEADER, STASH, ASKS)
    with updater(path, "r"):
        [one] = found(home)
    assert one.title == "an update of Hermes stopped at a question"


def test_waiting(home: Path) -> None:
    """The updater lives: it is named once nobody has answered for a while."""
    path = log(home, HEADER, STASH, ASKS)
    with updater(path) as pid:
        [one] = found(home)
        assert one.title == "an update of Hermes waits for an answer"
        assert f"process {pid}" in one.next
        log(home, HEADER, STASH, ASKS, minutes=2)
        assert ask(CHECK, home)[0].status is Status.SKIPPED
        log(home, HEADER, STASH, ASKS, ANSWERED)
        assert ask(CHECK, home)[0].status is Status.SKIPPED
        log(home, HEADER, STASH, ASKS, ANSWERED, DONE)
        assert found(home) == []


@pytest.mark.parametrize(("minutes", "count"), [(30, 0), (90, 1)])
def test_a_receipt_says_more(home: Path, minutes: float, count: int) -> None:
    """Another check reads the receipt of this run or a later one."""
    log(home, HEADER, STASH, ASKS)
    at = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()
    said = {"schema": 1, "started_at": at, "finished_at": at, "outcome": "success"}
    support.put(home / "logs/update_receipts/latest.json", json.dumps(said))

    assert len(found(home)) == count


@pytest.mark.parametrize(("minutes", "count"), [(30, 0), (90, 1)])
def test_a_later_change(
    home: Path, monkeypatch: pytest.MonkeyPatch, minutes: float, count: int
) -> None:
    """The code was changed again in another way, such as by pip."""
    log(home, HEADER, STASH, ASKS)
    change = FileChange(home / "RECORD", datetime.now(UTC) - timedelta(minutes=minutes))
    monkeypatch.setattr(HermesView, "code_change", lambda _: change)

    assert len(found(home)) == count


@pytest.mark.parametrize(("stage", "minutes", "count"), [("updating", 90, 0), ("checked", 30, 0)])
def test_a_guarded_update(home: Path, stage: str, minutes: float, count: int) -> None:
    """Another check reports one that is open; one that was checked later proves the update."""
    log(home, HEADER, STASH, ASKS)
    at = datetime.now(UTC) - timedelta(minutes=minutes)
    made = Update("20261115-000000-000aa", "b", "", None, at.isoformat(), stage)
    UpdateRecords(Home(home)).save(made)

    assert len(found(home)) == count


def test_history(home: Path) -> None:
    """After a week, a gateway that has started since makes it history."""
    log(home, HEADER, STASH, ASKS, minutes=8 * 24 * 60)
    assert len(found(home)) == 1
    fake_gateway.ended(home)
    fake_gateway.note(home, fake_gateway.DEAD, datetime.now(UTC), "gateway.start")
    assert found(home) == []
    log(home, HEADER, STASH, ASKS)
    assert len(found(home)) == 1
