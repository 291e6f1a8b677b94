"""A problem is one episode from its first sight until its check no longer finds it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hermes_doctor.backup.vault import new_id
from hermes_doctor.home import Home
from hermes_doctor.records.journal import DONE, ItemRecord, Journal, Journals
from tests.helpers.histories import after, found, new_home, recorder, rows
from tests.helpers.watch_parts import finding


def episodes(file: Path, *names: str) -> list[tuple[Any, ...]]:
    """The chosen columns of all episodes."""
    return [tuple(row[name] for name in names) for row in rows(file, "episodes")]


def test_from_first_sight_until_gone(tmp_path: Path) -> None:
    """The worst severity stays; getting worse does not end it."""
    made = recorder(tmp_path)
    severities = ["warning", "critical", "error"]
    for minute, severity in enumerate(severities):
        made.record(found(finding("A", severity)), after(minutes=minute))
    made.record(found(), after(minutes=3))

    assert episodes(made.file, "code", "severity", "first_seen", "ended", "how") == [
        ("A", "critical", "2026-11-01T04:00:00Z", "2026-11-01T04:03:00Z", "gone")
    ]


def test_without_an_answer_it_does_not_end(tmp_path: Path) -> None:
    """A check that could not look, that did not run, or that was not asked for this code."""
    made = recorder(tmp_path)
    made.record(found("A"), after())
    made.record(found(status="unknown", reason="slow"), after(minutes=1))
    made.record(found(checks=()), after(minutes=2))
    other = recorder(tmp_path, codes=frozenset({"B"}))
    other.record(found(complete=False), after(minutes=3))

    assert episodes(made.file, "code", "ended") == [("A", None)]


def test_back_within_minutes_is_the_same(tmp_path: Path) -> None:
    """It is counted; after ten minutes it is another one."""
    made = recorder(tmp_path)
    for minute in (0, 2, 4):
        made.record(found("A"), after(minutes=minute))
        made.record(found(), after(minutes=minute + 1))
    made.record(found("A"), after(minutes=30))

    assert episodes(made.file, "returns", "ended") == [(2, "2026-11-01T04:05:00Z"), (0, None)]


def test_an_end_that_nobody_saw(tmp_path: Path) -> None:
    """After a gap it ended at some time; one that is still there goes on."""
    recorder(tmp_path).record(found("A", "B"), after())
    made = recorder(tmp_path)
    made.record(found("B"), after(hours=9))

    assert episodes(made.file, "code", "ended", "how") == [
        ("A", "2026-11-01T04:00:00Z", "unknown"),
        ("B", None, None),
    ]


def receipt(tmp_path: Path, outcome: str, kind: str = "fix") -> str:
    """Write the receipt of a run that ended two minutes after the first record."""
    journals = Journals(Home(tmp_path / "home"))
    run = Journal(new_id(journals.ids()), kind, str(tmp_path / "home"), "", after().isoformat())
    run.items = [ItemRecord("mend", "A", "thing", "looks", outcome=outcome)]
    run.state, run.ended_at = DONE, after(minutes=2).isoformat()
    (tmp_path / "home" / "backups" / "doctor" / "runs" / run.id).mkdir(parents=True)
    journals.save(run)
    return run.id


def test_a_repair_is_recognized_by_its_receipt(tmp_path: Path) -> None:
    """Whether the watch or a person made it; a repair that came back does not count."""
    made = recorder(tmp_path)
    made.record(found("A"), after())
    failed = receipt(tmp_path, "rolled-back")
    made.record(found("A", "B"), after(minutes=2))
    worked = receipt(tmp_path, "verified")
    made.record(found("A"), after(minutes=3))
    made.record(found(), after(minutes=4))

    assert episodes(made.file, "code", "how", "repair") == [
        ("A", "repaired", worked),
        ("B", "gone", None),
    ]
    marks = [(row["kind"], row["what"], row["run"]) for row in rows(made.file, "marks")]
    assert marks == [("repair", "mend: rolled-back", failed), ("repair", "mend: verified", worked)]
    made.record(found("A"), after(minutes=5))
    assert len(episodes(made.file, "id")) == 3, "what comes back after a repair is worth knowing"


def test_runs_before_the_history_are_not_marked(tmp_path: Path) -> None:
    """An undo is marked as such."""
    made = recorder(tmp_path)
    receipt(tmp_path, "verified")
    made.record(found("A"), after())
    receipt(tmp_path, "verified", kind="undo")
    made.record(found("A", "B"), after(minutes=1))

    assert [row["kind"] for row in rows(made.file, "marks")] == ["undo"]
    assert episodes(made.file, "repair") == [(None,), (None,)]


def test_long_and_odd_texts(tmp_path: Path) -> None:
    """Control characters are replaced and long texts cut; both rounds are one episode."""
    made = recorder(tmp_path)
    odd = finding("A", subject="x\x1b[31m" + "y" * 5000)
    made.record(found(odd), after())
    made.record(found(odd, "B"), after(minutes=1))

    first, _ = rows(made.file, "episodes")
    assert len(first["subject"]) == 160 and "\x1b" not in first["subject"]


def test_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    """In the path of the home and in a subject: they are replaced, and nothing is damaged."""
    home = new_home(tmp_path / os.fsdecode(b"h\xffme"))
    made = recorder(tmp_path, home=home)
    odd = finding("A", subject=os.fsdecode(b"\xfe"))._replace(title="\ud800")
    for minute in range(3):
        assert made.attempt(found(odd, f"B{minute}"), after(minutes=minute)) == []

    assert rows(made.file, "homes")[0]["path"].endswith(r"h\xffme")
    assert rows(made.file, "episodes")[0]["subject"] == "\ufffd"
    assert len(rows(made.file, "episodes")) == 4 and rows(made.file, "marks") == []
