"""What one record after the other makes of the history: time, marks, clocks and moved homes."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.backup.records.journal import DONE, ItemRecord, Journal, Journals
from hermes_doctor.backup.vault.vault import new_id
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CheckResult, Status, Trouble
from hermes_doctor.operations.history import database, layout, prune, write_observation
from hermes_doctor.operations.history.observation import LONGEST_SUBJECT, LONGEST_TITLE, observe
from hermes_doctor.operations.history.write_observation import Continuity
from tests.helpers.histories import after, found, gateway, new_home, recorder, rows, seconds
from tests.helpers.watch_parts import finding


def test_time_counts_for_what_was_seen_before(tmp_path: Path) -> None:
    """Ten minutes well, five silent, split by the hour."""
    made = recorder(tmp_path)
    for minute in range(56, 72):
        made.record(found("A") if minute >= 66 else found(), after(minutes=minute))

    made.flush()

    assert [
        (row["hour"][11:13], row["working"], row["silent"]) for row in rows(made.file, "hours")
    ] == [
        ("04", 240, 0),
        ("05", 360, 300),
    ]


def test_two_watches_do_not_count_twice(tmp_path: Path) -> None:
    """Each counts only the time since the last record of the other."""
    first, second = recorder(tmp_path), recorder(tmp_path)
    for minute in range(0, 61):
        first.record(found("A"), after(minutes=minute))
        second.record(found("A"), after(minutes=minute, seconds=20))
    first.flush()
    second.flush()

    assert seconds(first.file) == {"working": 0, "limited": 0, "silent": 3620}
    assert len(rows(first.file, "episodes")) == 1 and len(rows(first.file, "homes")) == 1


def test_sleep_is_unknown(tmp_path: Path) -> None:
    """An hour without a record is not counted, and neither is a gap that the watch has seen."""
    made = recorder(tmp_path)
    made.record(found(), after())
    recorder(tmp_path).record(found(), after(hours=1))
    assert seconds(made.file)["working"] == 0
    last = recorder(tmp_path)
    last.record(found(), after(hours=1, minutes=1))
    last.note_gap()
    last.record(found(), after(hours=1, minutes=2))

    assert seconds(made.file)["working"] == 60


def test_single_checks_count_at_their_own_pace(tmp_path: Path) -> None:
    """The first hourly check leaves its hour unknown; the following ones do not."""
    for hour in range(5):
        made = recorder(tmp_path, single=True)
        made.record(found(), after(hours=hour))
    assert seconds(made.file)["working"] == 3 * 3600
    recorder(tmp_path, single=True).record(found(), after(hours=16))
    recorder(tmp_path, single=True).record(found(), after(hours=28))

    assert seconds(made.file)["working"] == 3 * 3600, "twelve hours are too far apart"


def test_a_clock_that_goes_back(tmp_path: Path) -> None:
    """What was recorded in the future moves to now; no hour has more than 60 minutes."""
    made = recorder(tmp_path)
    made.record(found("A"), after())
    for hour in range(1, 4):
        made.note_gap()
        made.record(found("A"), after(hours=hour))
        made.record(found("A", "B"), after(hours=hour, minutes=30))
    [note] = made.record(found("A"), after(minutes=40))
    assert "set back by 2 h 50 min" in note
    for minute in range(41, 120):
        assert made.record(found("A"), after(minutes=minute)) == []

    hours = rows(made.file, "hours")
    episodes = rows(made.file, "episodes")
    assert [row["hour"] for row in hours] == ["2026-11-01T04:00:00Z", "2026-11-01T05:00:00Z"]
    assert all(row["working"] + row["limited"] + row["silent"] <= 3600 for row in hours)
    assert all(row["first_seen"] <= (row["ended"] or "9") for row in episodes)
    assert max(row["last_seen"] for row in rows(made.file, "homes")) < "2026-11-01T06"
    assert [row["kind"] for row in rows(made.file, "marks")] == ["clock"]


def test_a_wrong_year_does_not_prune(tmp_path: Path) -> None:
    """A clock that is decades ahead for some days removes nothing."""
    made = recorder(tmp_path)
    made.record(found("A"), after())
    made.record(found(), after(minutes=1))
    for day in range(3):
        made.note_gap()
        made.record(found(), after(days=20_000 + day))
    made.note_gap()
    made.record(found(), after(minutes=3))

    assert len(rows(made.file, "episodes")) == 1
    assert rows(made.file, "hours")[0]["hour"] == "2026-11-01T04:00:00Z"


def test_an_impossible_clock(tmp_path: Path) -> None:
    """The year 9999 and a time before 1970 are refused with one line."""
    made = recorder(tmp_path)
    for year in (1960, 9999):
        with pytest.raises(Trouble, match="impossible time"):
            made.record(found(), datetime(year, 12, 31, 23, 59, tzinfo=UTC))
    assert not made.file.exists()


def test_a_moved_home_goes_on(tmp_path: Path) -> None:
    """Under its new path; another folder in the old place begins its own history."""
    made = recorder(tmp_path)
    made.record(found("A"), after())
    (tmp_path / "home").rename(tmp_path / "moved")
    moved = recorder(tmp_path, home=Home(tmp_path / "moved"))
    moved.record(found("A"), after(minutes=1))
    new_home(tmp_path / "home")
    recorder(tmp_path).record(found("A"), after(minutes=2))

    homes = rows(made.file, "homes")
    assert [Path(row["path"]).name for row in homes] == ["moved", "home"]
    assert [row["home"] for row in rows(made.file, "episodes")] == [1, 2]
    [mark] = rows(made.file, "marks")
    assert mark["kind"] == "moved" and mark["what"].endswith("/home → " + str(tmp_path / "moved"))


def test_profiles_have_their_own(tmp_path: Path) -> None:
    """A profile is a home; one that is deleted and created again starts from nothing."""
    root = new_home(tmp_path / "home")
    profile = new_home(root.path / "profiles" / "work")
    for home in (root, profile):
        recorder(tmp_path, home=home).record(found("A"), after())
    shutil.rmtree(profile.path)
    again = new_home(profile.path)
    made = recorder(tmp_path, home=again)
    made.record(found("A"), after(minutes=1))

    assert [row["home"] for row in rows(made.file, "episodes")] == [1, 2, 3]


def test_one_home_with_two_paths(tmp_path: Path) -> None:
    """A renamed folder whose old path still leads to it keeps that path."""
    made = recorder(tmp_path)
    made.record(found(), after())
    os.symlink(tmp_path / "home", tmp_path / "link")
    recorder(tmp_path, home=Home(tmp_path / "link")).record(found(), after(minutes=1))

    [row] = rows(made.file, "homes")
    assert row["path"] == str(tmp_path / "home") and rows(made.file, "marks") == []


def test_updates_and_restarts_are_marked(tmp_path: Path) -> None:
    """A new version, another process, a stop, and a new start with the same number."""
    made = recorder(tmp_path)
    given = [
        found(hermes_version="0.18.2", gateways=gateway(7, after(hours=-1))),
        found(hermes_version=None, gateways=None),
        found(hermes_version="0.19.0", gateways=gateway(9, after(minutes=2))),
        found(hermes_version="0.19.0", gateways=()),
        found(hermes_version="0.19.0", gateways=gateway(9, after(minutes=4))),
        found(hermes_version="0.19.0", gateways=gateway(9, after(minutes=4, seconds=1))),
        found(hermes_version="0.19.0", gateways=gateway(9, after(minutes=70))),
    ]
    for number, one in enumerate(given):
        made.record(one, after(minutes=number if number < 6 else 70))

    marks = [(row["kind"], row["what"]) for row in rows(made.file, "marks")]
    assert marks == [
        ("update", "0.18.2 → 0.19.0"),
        ("restart", "gateway, process 9"),
        ("stop", "gateway, process 9"),
        ("start", "gateway, process 9"),
        ("restart", "gateway, process 9"),
    ]


def test_a_gateway_that_restarts_all_night_is_one_mark_an_hour(tmp_path: Path) -> None:
    """With the number of restarts and the last of them."""
    made = recorder(tmp_path)
    for minute in range(0, 121):
        at = after(minutes=minute)
        made.record(found(gateways=gateway(100 + minute, at)), at)

    marks = rows(made.file, "marks")
    assert [row["times"] for row in marks] == [60, 60]
    assert marks[0]["until"] == "2026-11-01T05:00:00Z"


def test_an_old_gateway_that_takes_over(tmp_path: Path) -> None:
    """It is marked when it was seen, not when it was started; of two, the newer one counts."""
    made = recorder(tmp_path)
    old, new = gateway(7, after(days=-9)), gateway(9, after(days=-1))
    for minute, running in enumerate([new, old, new + old, old + new]):
        made.record(found(gateways=running), after(minutes=minute))

    [mark] = rows(made.file, "marks")
    assert (mark["at"], mark["times"]) == ("2026-11-01T04:01:00Z", 2)


def test_some_checks_say_nothing_about_the_bot(tmp_path: Path) -> None:
    """`--only` records problems, but neither counts time nor hides that others count it."""
    made, part = recorder(tmp_path), recorder(tmp_path)
    for minute in range(0, 31):
        made.record(found(), after(minutes=minute))
        part.record(found("A", complete=False), after(minutes=minute))
    made.flush()

    assert seconds(made.file)["working"] == 1800
    assert rows(made.file, "homes")[0]["condition"] == "working"


def test_partial_checks_do_not_bridge_a_gap(tmp_path: Path) -> None:
    """While only some checks ran, nobody knew how the bot was."""
    made, part = recorder(tmp_path), recorder(tmp_path)
    made.record(found(), after())
    for minute in range(1, 61):
        part.record(found(complete=False), after(minutes=minute))
    recorder(tmp_path).record(found(), after(minutes=61))

    assert seconds(made.file) == {"working": 0, "limited": 0, "silent": 0}


def test_homes_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    """After 400 days, with all that was known of them."""
    other = new_home(tmp_path / "other")
    recorder(tmp_path, home=other).record(found("OLD"), after())
    made = recorder(tmp_path)
    for day in range(1, 420, 20):
        made.note_gap()
        made.record(found("A"), after(days=day))

    assert [row["path"] for row in rows(made.file, "homes")] == [str(tmp_path / "home")]
    assert [row["code"] for row in rows(made.file, "episodes")] == ["A"]


def test_old_records_are_removed_once_a_day(tmp_path: Path) -> None:
    """After 400 days; an open problem stays."""
    made = recorder(tmp_path)
    made.record(found("A", "OLD"), after())
    made.record(found("A"), after(minutes=1))
    for day in range(1, 420, 3):
        made.note_gap()
        made.record(found("A"), after(days=day))
        made.record(found("A"), after(days=day, minutes=1))

    assert [row["code"] for row in rows(made.file, "episodes")] == ["A"]
    kept = rows(made.file, "hours")
    assert 131 <= len(kept) <= 134 and kept[0]["hour"] > "2026-11-1"


def test_days_of_rounds_stay_small(tmp_path: Path) -> None:
    """A round each minute with a problem that never rests: less than 20 MB in a year."""
    home, file = new_home(tmp_path / "home"), tmp_path / "history.db"
    bad = [observe(found(finding("A", subject=f"s{n}")), after()) for n in range(3)]
    good = observe(found(), after())
    start = layout.to_seconds(after())
    with database.transaction(file) as db:
        for minute in range(0, 5 * 1440, 5):
            at = start + minute * 60
            seen = bad[minute // 5 % 3] if minute // 5 % 4 == 0 else good
            write_observation.record(db, home, seen._replace(at=at), Continuity(960), "one")

    size = file.stat().st_size
    assert len(rows(file, "hours")) == 120
    assert size / 5 * 365 < 20_000_000, size


def test_the_most_that_a_home_can_take(tmp_path: Path) -> None:
    """All rows that are kept, with the longest texts, and one day more of each: below 20 MB."""
    file, start = tmp_path / "history.db", 1_790_000_000
    text = {"title": "t" * LONGEST_TITLE, "check": "some-check", "severity": "critical"}
    with database.transaction(file) as db:
        for name, most in prune.MOST.items():
            times = [layout.to_text(start + 600 * number) for number in range(most + 1440)]
            rows = (
                {"home": 1, "code": "A-LONG-CODE", "subject": f"{n:0{LONGEST_SUBJECT}}", **text}
                | {"first_seen": at, "last_seen": at, "ended": at, "how": "repaired", "returns": 9}
                if name == "episodes"
                else {"home": 1, "at": at, "kind": "restart", "what": "x" * 40, "until": at}
                for n, at in enumerate(times)
            )
            db.table(name).insert_all(rows)
        hours = [layout.to_text(start + 3600 * number) for number in range(401 * 24)]
        shares = {"working": 3000, "limited": 300, "silent": 300}
        db.table("hours").insert_all({"home": 1, "hour": hour, **shares} for hour in hours)

    assert 10_000_000 < file.stat().st_size < 20_000_000


def test_the_most_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens, a home has a limited number of rows."""
    monkeypatch.setattr(prune, "MOST", {"episodes": 5, "marks": 3})
    made = recorder(tmp_path)
    for number in range(40):
        made.record(found(finding("A", subject=str(number))), after(hours=number))
    for name, most in (("episodes", 5), ("marks", 3)):
        assert len(rows(made.file, name)) <= most + 24


def test_too_many_episodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have ended are removed first, however old an open one is."""
    monkeypatch.setattr(prune, "MOST", {"episodes": 3})
    made = recorder(tmp_path)
    for day in range(6):
        made.record(found("OLD", f"B{day}"), after(days=day))

    assert [row["code"] for row in rows(made.file, "episodes")] == ["OLD", "B4", "B5"]


def two_homes(tmp_path: Path) -> Path:
    """A history of two homes, each with an open and an ended episode; one was seen again."""
    for name in ("home", "other"):
        home = new_home(tmp_path / name)
        made = recorder(tmp_path, home=home)
        made.record(found("OPEN", "ENDED"), after())
        made.record(found("OPEN"), after(minutes=1))
    made.note_gap()
    made.record(found("OPEN"), after(days=49))
    return made.file


def prune_later(
    file: Path, keep: int, home: int | None = None
) -> tuple[prune.Removed, list[object]]:
    """Prune 50 days after the first record; return what is left, too."""
    now = layout.to_seconds(after(days=50))
    with database.transaction(file) as db:
        removed = prune.prune(db, now, keep * 86400, home)
    return removed, [(row["home"], row["code"]) for row in rows(file, "episodes")]


def test_prune_one_home(tmp_path: Path) -> None:
    """The other one keeps everything."""
    removed, left = prune_later(two_homes(tmp_path), 10, 2)

    assert removed == (1, 1, 0, 0)
    assert left == [(1, "OPEN"), (1, "ENDED"), (2, "OPEN")]


def test_prune_all_homes(tmp_path: Path) -> None:
    """A home that was not seen in that time stays while a problem is open."""
    file = two_homes(tmp_path)
    assert prune_later(file, 10) == ((2, 2, 0, 0), [(1, "OPEN"), (2, "OPEN")])
    with database.transaction(file) as db:
        db.execute("UPDATE episodes SET ended = last_seen")

    assert prune_later(file, 10)[0].homes == 1 and len(rows(file, "homes")) == 1


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
    run.save()
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
