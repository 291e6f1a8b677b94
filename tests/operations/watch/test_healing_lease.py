"""One watch heals a home, wherever each keeps what it knows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.operations.watch.healing_lease import FILE, Lease
from hermes_doctor.operations.watch.store import WatchStateFiles
from tests.helpers import support
from tests.helpers.watch_parts import Hands
from tests.operations.watch.test_heal import Ward, blot, blotted


def elsewhere(home: Path) -> Ward:
    """A second watch on the same home, with a folder of its own for what it knows."""
    ward = Ward(home, after=1)
    store = WatchStateFiles(Home(home), home.parent / "other-state")
    ward.watch.store = ward.healer.store = store
    ward.healer.lease = Lease(Home(home), ward.clock, store.file)
    return ward


def lease(home: Path, clock: Hands, name: str) -> Lease:
    return Lease(Home(home), clock, home.parent / name)


def test_two_folders_are_not_two_healers(home: Path) -> None:
    """The second one says so, and looks."""
    first, second = Ward(home, after=1), elsewhere(home)
    blot(home)
    assert "healed ENV-BOM" in first.rounds(1)
    blot(home)

    told = second.rounds(4)
    assert told == ["found ENV-BOM", "waits"] and blotted(home)
    assert "another watch (process" in second.heard[-1].title
    assert "healed ENV-BOM" in first.rounds(1)


def test_looking_makes_none(home: Path) -> None:
    """Nor does a watch that heals, before there is something to repair."""
    before = support.tree(home, vault=True)
    Ward(home).rounds(3)

    assert support.tree(home, vault=True) == before


def test_who_comes_and_goes_is_named_for_as_long_as_a_repair_counts(home: Path) -> None:
    """Rounds that cron starts hold no lock in between."""
    clock = Hands()
    one, two = lease(home, clock, "one"), lease(home, clock, "two")
    assert one.refusal(create=True) is None
    one.prolong(1800.0)
    one.close()

    assert "another watch repaired this home" in (two.refusal() or "")
    assert one.refusal() is None, "its own"
    one.close()
    clock.turn(1801.0)
    assert two.refusal() is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"boot": "one", "who": "x", "until": "soon"}',
        '{"boot": "one", "who": "x", "until": 1e999}',
        '{"boot": "one", "who": "x", "until": NaN}',
        '{"boot": "one", "who": "x", "until": 1' + "0" * 200 + "}",
        '{"boot": "another", "who": "x", "until": 6000}',
    ],
)
def test_what_makes_no_sense_holds_nobody_up(home: Path, text: str) -> None:
    """What makes no sense holds nobody up."""
    support.put(home / "backups" / "doctor" / FILE, text)

    assert lease(home, Hands(), "one").refusal() is None


def test_a_file_that_was_taken_away_is_made_anew(home: Path) -> None:
    """Whoever holds a file that nobody finds any more holds nothing."""
    clock = Hands()
    one, two = lease(home, clock, "one"), lease(home, clock, "two")
    assert one.refusal(create=True) is None
    (home / "backups" / "doctor" / FILE).unlink()
    assert two.refusal(create=True) is None

    assert "another watch" in (one.refusal(create=True) or "")


def test_a_pipe_in_its_place_is_refused(home: Path) -> None:
    """And does not hang."""
    (home / "backups" / "doctor").mkdir(parents=True)
    os.mkfifo(home / "backups" / "doctor" / FILE)
    ward = Ward(home, after=1)
    blot(home)

    assert ward.rounds(2) == ["found ENV-BOM", "waits"] and blotted(home)


def test_it_goes_with_the_watch(home: Path) -> None:
    """Only the own one."""
    clock = Hands()
    one = lease(home, clock, "one")
    assert one.refusal(create=True) is None
    one.prolong(1800.0)
    lease(home, clock, "two").give_up()
    assert (home / "backups" / "doctor" / FILE).exists()
    one.close()
    lease(home, clock, "one").give_up()

    assert not (home / "backups" / "doctor" / FILE).exists()
