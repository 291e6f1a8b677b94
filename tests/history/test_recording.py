"""What one record after the other makes of the history: time, marks, clocks and moved homes."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_doctor.history import database, moments, pruning, recording
from hermes_doctor.history.observation import LONGEST_SUBJECT, LONGEST_TITLE, observe
from hermes_doctor.history.recording import Continuity
from hermes_doctor.home import Home
from hermes_doctor.model import Trouble
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
    start = moments.to_seconds(after())
    with database.transaction(file) as db:
        for minute in range(0, 5 * 1440, 5):
            at = start + minute * 60
            seen = bad[minute // 5 % 3] if minute // 5 % 4 == 0 else good
            recording.record(db, home, seen._replace(at=at), Continuity(960), "one")

    size = file.stat().st_size
    assert len(rows(file, "hours")) == 120
    assert size / 5 * 365 < 20_000_000, size


def test_the_most_that_a_home_can_take(tmp_path: Path) -> None:
    """All rows that are kept, with the longest texts, and one day more of each: below 20 MB."""
    file, start = tmp_path / "history.db", 1_790_000_000
    text = {"title": "t" * LONGEST_TITLE, "check": "some-check", "severity": "critical"}
    with database.transaction(file) as db:
        for name, most in pruning.MOST.items():
            times = [moments.to_text(start + 600 * number) for number in range(most + 1440)]
            rows = (
                {"home": 1, "code": "A-LONG-CODE", "subject": f"{n:0{LONGEST_SUBJECT}}", **text}
                | {"first_seen": at, "last_seen": at, "ended": at, "how": "repaired", "returns": 9}
                if name == "episodes"
                else {"home": 1, "at": at, "kind": "restart", "what": "x" * 40, "until": at}
                for n, at in enumerate(times)
            )
            db.table(name).insert_all(rows)
        hours = [moments.to_text(start + 3600 * number) for number in range(401 * 24)]
        shares = {"working": 3000, "limited": 300, "silent": 300}
        db.table("hours").insert_all({"home": 1, "hour": hour, **shares} for hour in hours)

    assert 10_000_000 < file.stat().st_size < 20_000_000


def test_the_most_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens, a home has a limited number of rows."""
    monkeypatch.setattr(pruning, "MOST", {"episodes": 5, "marks": 3})
    made = recorder(tmp_path)
    for number in range(40):
        made.record(found(finding("A", subject=str(number))), after(hours=number))
    for name, most in (("episodes", 5), ("marks", 3)):
        assert len(rows(made.file, name)) <= most + 24


def test_too_many_episodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have ended are removed first, however old an open one is."""
    monkeypatch.setattr(pruning, "MOST", {"episodes": 3})
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


def prune(file: Path, keep: int, home: int | None = None) -> tuple[pruning.Removed, list[object]]:
    """Prune 50 days after the first record; return what is left, too."""
    now = moments.to_seconds(after(days=50))
    with database.transaction(file) as db:
        removed = pruning.prune(db, now, keep * 86400, home)
    return removed, [(row["home"], row["code"]) for row in rows(file, "episodes")]


def test_prune_one_home(tmp_path: Path) -> None:
    """The other one keeps everything."""
    removed, left = prune(two_homes(tmp_path), 10, 2)

    assert removed == (1, 1, 0, 0)
    assert left == [(1, "OPEN"), (1, "ENDED"), (2, "OPEN")]


def test_prune_all_homes(tmp_path: Path) -> None:
    """A home that was not seen in that time stays while a problem is open."""
    file = two_homes(tmp_path)
    assert prune(file, 10) == ((2, 2, 0, 0), [(1, "OPEN"), (2, "OPEN")])
    with database.transaction(file) as db:
        db.execute("UPDATE episodes SET ended = last_seen")

    assert prune(file, 10)[0].homes == 1 and len(rows(file, "homes")) == 1
