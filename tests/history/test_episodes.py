"""A problem is one episode from its first sight until its check no longer finds it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.backup.vault import new_id
from hermes_doctor.history.observation import observe
from hermes_doctor.home import Home
from hermes_doctor.model import CheckResult, Status
from hermes_doctor.records.journal import DONE, ItemRecord, Journal, Journals
from tests.helpers.histories import after, found, gateway, new_home, recorder, rows
from tests.helpers.watch_parts import finding


def episodes(file: Path, *names: str) -> list[tuple[Any, ...]]:
    """The chosen columns of all episodes."""
    return [tuple(row[name] for name in names) for row in rows(file, "episodes")]


OTHER = CheckResult("other", "group", Status.OK)


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
    made.record(found(checks=(), complete=False), after(minutes=2))
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


def test_a_restart_that_did_not_connect_repaired_nothing(tmp_path: Path) -> None:
    """The problem went away by itself later, not by this run."""
    made = recorder(tmp_path)
    made.record(found("A"), after())
    receipt(tmp_path, "not-connected")
    made.record(found("A"), after(minutes=2))
    made.record(found(), after(minutes=4))
    assert episodes(made.file, "code", "how", "repair") == [("A", "gone", None)]


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


@pytest.mark.parametrize(
    ("status", "reason"), [("skipped", "needs --network"), ("ok", "only a part was read")]
)
def test_a_check_that_did_not_look_ends_nothing(status: str, reason: str, tmp_path: Path) -> None:
    """It was skipped, or it looked only in part."""
    made = recorder(tmp_path)
    made.record(found("A"), after())
    made.record(found(status=status, reason=reason), after(minutes=1))

    assert episodes(made.file, "ended") == [(None,)]


def test_a_problem_that_only_a_closer_look_finds(tmp_path: Path) -> None:
    """It ends when a check with the same option misses it, or after a plain check has seen it."""
    made = recorder(tmp_path)
    deep = " --home /x --deep"
    made.record(found("A", "B", options=deep), after())
    made.record(found("B"), after(minutes=1))
    made.record(found(), after(minutes=2))
    assert episodes(made.file, "code", "how", "options") == [
        ("A", None, "--deep"),
        ("B", "gone", ""),
    ]
    made.record(found(options=deep), after(minutes=3))

    assert episodes(made.file, "code", "how") == [("A", "gone"), ("B", "gone")]


def test_a_check_that_no_longer_exists(tmp_path: Path) -> None:
    """Nobody will ever see the end; a plugin that could not be loaded may come back."""
    made = recorder(tmp_path)
    made.record(found(finding("A", check="old")), after())
    broken = CheckResult("plugin:x.py", "plugins", Status.CRASHED, 0.0, "not loaded")
    made.record(found(checks=(OTHER, broken)), after(minutes=1))
    made.record(found(checks=(OTHER,), complete=False), after(minutes=2))
    assert episodes(made.file, "how") == [(None,)]
    made.record(found(checks=(OTHER,)), after(minutes=3))

    assert episodes(made.file, "how", "ended") == [("unknown", "2026-11-01T04:00:00Z")]


def test_a_code_that_no_longer_exists(tmp_path: Path) -> None:
    """Its check does; after a day in which nobody looked for it, its end is unknown."""
    recorder(tmp_path).record(found("A"), after())
    made = recorder(tmp_path, codes=frozenset({"B"}))
    made.record(found(), after(hours=23))
    assert episodes(made.file, "how") == [(None,)]
    made.record(found(), after(hours=25))

    assert episodes(made.file, "how", "ended") == [("unknown", "2026-11-01T04:00:00Z")]


def test_switched_off_is_not_gone(tmp_path: Path) -> None:
    """A code that config.toml switches off is still recorded; one that is skipped is not."""
    made = recorder(tmp_path, codes=frozenset({"A"}))
    made.record(found("A"), after())
    off = (finding("A"), finding("B"))
    made.record(found(turned_down=off), after(minutes=1))
    made.record(found(finding("A", "info"), turned_down=off[:1]), after(minutes=2))

    assert episodes(made.file, "code", "returns", "severity", "last_seen") == [
        ("A", 0, "error", "2026-11-01T04:02:00Z")
    ]


def test_gone_before_the_receipt_says_so(tmp_path: Path) -> None:
    """A round sees the problem gone while the run still works; later the run is attached."""
    made = recorder(tmp_path)
    made.record(found("A"), after())
    made.record(found(), after(minutes=1))
    assert episodes(made.file, "how") == [("gone",)]
    run = receipt(tmp_path, "verified")
    made.record(found("B"), after(minutes=3))

    assert episodes(made.file, "code", "how", "repair", "ended") == [
        ("A", "repaired", run, "2026-11-01T04:01:00Z"),
        ("B", None, None, None),
    ]


def test_a_run_long_after_the_end_is_not_attached(tmp_path: Path) -> None:
    """It began only after the problem was gone."""
    made = recorder(tmp_path)
    made.record(found("A"), after(minutes=-5))
    made.record(found(), after(minutes=-4))
    receipt(tmp_path, "verified")
    made.record(found("B"), after(minutes=3))

    assert episodes(made.file, "code", "how") == [("A", "gone"), ("B", None)]


def test_unseen_means_that_nobody_looked_for_it(tmp_path: Path) -> None:
    """Records of other checks in between do not make the end known."""
    made, part = recorder(tmp_path), recorder(tmp_path)
    made.record(found("A"), after())
    for minute in range(1, 60):
        part.record(found("B", checks=(OTHER,), complete=False), after(minutes=minute))
    recorder(tmp_path).record(found("B"), after(minutes=60))

    assert episodes(made.file, "code", "how", "ended") == [
        ("A", "unknown", "2026-11-01T04:00:00Z"),
        ("B", None, None),
    ]


def bad_receipt(tmp_path: Path, id: str, **fields: Any) -> None:
    """Put a receipt into the home that this tool did not write."""
    good = receipt(tmp_path, "verified")
    runs = tmp_path / "home" / "backups" / "doctor" / "runs"
    document = json.loads((runs / good / "run.json").read_text()) | {"id": id} | fields
    shutil.rmtree(runs / good)
    (runs / id).mkdir()
    (runs / id / "run.json").write_text(json.dumps(document))


def test_a_bad_receipt_is_no_damage(tmp_path: Path) -> None:
    """The agent can write into its home; that must not cost the history."""
    made = recorder(tmp_path)
    made.record(found("A"), after())
    bad_receipt(tmp_path, "20260101-000000-00000", acts=[{"kind": "x", "words": []}])
    bad_receipt(tmp_path, "20260101-000000-00100", items=7)
    worked = receipt(tmp_path, "verified")
    assert made.attempt(found(), after(minutes=3)) == []

    assert [one.name for one in made.file.parent.iterdir()] == ["history.db"]
    assert episodes(made.file, "how", "repair") == [("repaired", worked)]


def test_a_run_with_an_odd_name_hides_no_later_one(tmp_path: Path) -> None:
    """Only ids that sort by time count."""
    made = recorder(tmp_path)
    bad_receipt(tmp_path, "zzz")
    made.record(found("A"), after())
    made.record(found("A", "B"), after(minutes=1))
    worked = receipt(tmp_path, "verified")
    made.record(found("B"), after(minutes=3))

    assert episodes(made.file, "code", "repair") == [("A", worked), ("B", None)]


def test_the_start_of_the_gateway_varies_by_a_second(tmp_path: Path) -> None:
    """That is no difference, neither for the watch nor for single rounds."""
    seen = [
        observe(found(gateways=gateway(7, after(minutes=5, seconds=more))), after())
        for more in (0, 1)
    ]
    other = observe(found(gateways=gateway(8, after(minutes=5))), after())

    assert not seen[0].differs(seen[1]) and seen[0].digest() == seen[1].digest()
    assert seen[0].differs(other) and seen[0].digest() != other.digest()
