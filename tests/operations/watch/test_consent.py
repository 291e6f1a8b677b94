"""What a watch may do unattended: `--also GW-DOWN` agrees to a start, and to nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Finding, Severity
from hermes_doctor.operations.watch import consent
from hermes_doctor.operations.watch.consent import FILE, MAX_TRIES, Lease, RepairBudget
from hermes_doctor.operations.watch.state import FailedRepair
from hermes_doctor.operations.watch.store import WatchStateFiles
from hermes_doctor.repair.gateway.detached import Detached
from hermes_doctor.repair.schedule.jobs import Budget
from hermes_doctor.repair.steps.gateway import GatewayStep
from hermes_doctor.repair.transaction.plan import PlannedItem
from tests.helpers import support
from tests.helpers.one_check import PLUGINS
from tests.helpers.watch_parts import Hands
from tests.operations.watch.test_heal import Ward, blot, blotted


def start(home: Path, severity: Severity) -> PlannedItem:
    """The plan to start a gateway that is not known to have been running."""
    found = Finding("GW-DOWN", severity, "the gateway is not running", "gateway")
    step = GatewayStep(Detached(Home(home), None), restart=False, why="it is not running")
    return PlannedItem(found, PLUGINS.fix("start-gateway"), (step,))


def test_a_start_that_asks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crontab line that restarts the gateway agrees beforehand; a plain watch does not."""
    monkeypatch.delenv("HERMES_DOCTOR_SERVICE", raising=False)
    item = start(home, Severity.ERROR)

    assert "you must agree to a start" in (consent.refusal(item, frozenset()) or "")
    assert consent.refusal(item, frozenset({"GW-DOWN"})) is None
    assert consent.refusal(item, frozenset({"start-gateway"})) is None
    assert "you must agree to a start" in (consent.refusal(item, frozenset({"GW-OOM"})) or "")


def test_a_gateway_that_a_person_stopped(home: Path) -> None:
    """That is a note, for which no watch starts a gateway."""
    item = start(home, Severity.INFO)

    assert "not enough to start" in (consent.refusal(item, frozenset({"GW-DOWN"})) or "")


KEY = ("A", "thing")


def test_the_budget() -> None:
    """So many in so much time, counted from each repair."""
    ledger = RepairBudget(Budget(2, 600.0))
    for now in (1000.0, 1100.0):
        assert ledger.free_at(now) is None
        ledger.spend(now)

    assert ledger.free_at(1200.0) == 1600.0
    assert ledger.free_at(1599.0) == 1600.0
    assert ledger.free_at(1600.0) is None
    ledger.spend(1600.0)
    assert ledger.free_at(1601.0) == 1700.0
    assert len(ledger.repairs) == 2, "no more is kept than counts"


def test_a_time_that_has_not_come_yet_counts_for_nothing() -> None:
    """A time that has not come yet counts for nothing."""
    assert RepairBudget(Budget(1, 600.0), [9e9]).free_at(1000.0) is None


def test_what_fails_waits_longer_each_time_and_then_for_a_person() -> None:
    """What fails waits longer each time and then for a person."""
    ledger = RepairBudget(Budget(3, 600.0))
    now = 0.0
    for number in range(MAX_TRIES):
        assert ledger.may_try(KEY, now)
        failure = ledger.fail(KEY, now)
        assert failure.until - now == 600.0 * 2**number
        assert not ledger.may_try(KEY, failure.until - 1)
        now = failure.until

    assert not ledger.may_try(KEY, now + 1e9)
    ledger.forget({KEY: None}, now + 1e9)
    assert not ledger.may_try(KEY, now + 1e9), "as long as it is there"
    ledger.forget({}, now + 1e9)
    assert ledger.may_try(KEY, now + 1e9), "gone and come again, it is another one"


def test_gone_for_a_moment_is_not_forgotten() -> None:
    """Gone for a moment is not forgotten."""
    ledger = RepairBudget(Budget(3, 600.0))
    ledger.fail(KEY, 0.0)
    ledger.forget({}, 10.0)

    assert not ledger.may_try(KEY, 20.0)


def test_a_wait_that_this_budget_never_gave_is_cut_short() -> None:
    """What is read from a file may say anything."""
    far = RepairBudget(
        Budget(3, 600.0), [], {KEY: FailedRepair(1, 9e12), ("B", ""): FailedRepair(10**9, 5.0)}
    )
    far.since(1000.0)

    assert far.failures[KEY] == FailedRepair(1, 1600.0)
    assert far.failures["B", ""] == FailedRepair(MAX_TRIES, 5.0)


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
