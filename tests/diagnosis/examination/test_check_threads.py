"""Probes that hang or take long: they cost their limit, and nothing else is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

import pytest

from hermes_doctor.api import Check, check
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook, Finding, Partly, Severity, Status
from hermes_doctor.core.system import limits
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.diagnosis.examination import check_threads, states
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.operations.watch import home_reachable


class SlowProbes(Probes):
    """Probes that hang until they are released, are slow, or can do without another one."""

    def __init__(self, home: Path) -> None:
        super().__init__(Home(home))
        self.release = threading.Event()
        self.made: list[str] = []

    @once(limit=0.4)
    def stuck(self) -> str:
        """Return only when it is released."""
        self.made.append("stuck")
        assert self.release.wait(60)
        return "late"

    @once(limit=20)
    def outer(self) -> str:
        """Return something else if it hangs."""
        self.made.append("outer")
        try:
            return self.stuck()
        except CouldNotLook:
            return "without"

    @once(limit=0.6)
    def impatient(self) -> str:
        """The same with a limit that the other probe nearly takes."""
        try:
            return self.stuck()
        except CouldNotLook:
            time.sleep(0.3)
            return "without"

    @once(limit=20)
    def slow(self) -> str:
        """Take a second."""
        time.sleep(1)
        return "slow"

    @once(limit=20)
    def around(self) -> str:
        """Need the slow one."""
        return self.slow()


@pytest.fixture
def probes(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowProbes]:
    """Probes of a healthy home on a machine that counts as idle."""
    monkeypatch.setattr(limits, "factor", lambda: 1.0)
    made = SlowProbes(home)
    yield made
    made.release.set()


def check_that_asks(
    look: Callable[[SlowProbes], object], id: str, limit: float = 10.0, pause: float = 0.0
) -> Check:
    """A check whose finding is the answer."""

    def ask(probes: Probes) -> Iterator[Finding]:
        """Is it so?"""
        time.sleep(pause)
        assert isinstance(probes, SlowProbes)
        yield finding(str(look(probes)))

    return make_check(ask, id, limit)


def make_check(look: Callable[[Probes], Iterator[Finding]], id: str, limit: float = 10.0) -> Check:
    """A check made of a function."""
    look.__doc__ = "Is it so?"
    return check(id=id, group="tests", codes=("A-B",), limit=limit)(look)


def finding(subject: str) -> Finding:
    """A finding."""
    return Finding(code="A-B", severity=Severity.ERROR, title="it is so", subject=subject)


def answers(probes: SlowProbes, *checks: Check, limit: float = 30.0) -> dict[str, str | list[str]]:
    """The findings of each check, or else the reason why it has none."""
    results, findings = examine(probes, checks, limit=limit)
    return {
        one.id: one.reason or sorted(f.subject for f in findings if f.check == one.id)
        for one in results
    }


def test_a_probe_that_hangs_costs_its_limit_once(probes: SlowProbes) -> None:
    """Who can do without it does, and what comes too late is ignored."""
    first = make_check(lambda probes: iter([finding("first"), finding(probes.outer())]), "one")  # type: ignore[attr-defined]
    started = time.monotonic()
    got = answers(probes, first, check_that_asks(SlowProbes.stuck, "two"))
    took = time.monotonic() - started
    probes.release.set()
    time.sleep(0.2)

    assert took < 10
    assert got == {
        "one": ["first", "without"],
        "two": "reading the stuck took longer than 0.4 s",
    }
    assert sorted(probes.made) == ["outer", "outer", "stuck"]
    assert probes.outer() == "without"


def test_a_probe_that_outlives_its_check(probes: SlowProbes) -> None:
    """A check is late because of two slow probes. The next one gets their answer."""
    late, other = (
        check_that_asks(SlowProbes.around, "late", limit=0.5),
        check_that_asks(SlowProbes.around, "other", pause=0.05),
    )

    assert answers(probes, late, other) == {"late": "took longer than 0.5 s", "other": ["slow"]}
    assert probes.settings.platforms() is not None
    assert probes.around() == "slow"


def test_a_check_that_is_late_before_its_probe_is(probes: SlowProbes) -> None:
    """Another one that waits for the same probe takes it over."""
    late, other = (
        check_that_asks(SlowProbes.outer, "late", limit=0.2),
        check_that_asks(SlowProbes.outer, "other", pause=0.05),
    )

    assert answers(probes, late, other) == {
        "late": "took longer than 0.2 s",
        "other": ["without"],
    }


def test_a_waiting_check_takes_over_the_call(probes: SlowProbes) -> None:
    """The check that began a probe does not want it any more; one that waits for it makes it."""
    asked: list[int] = []

    def first(probes: Probes) -> Iterator[Finding]:
        asked.append(1)
        if len(asked) == 1:
            probes.outer()  # type: ignore[attr-defined]
        yield finding("first")

    assert answers(
        probes, make_check(first, "one"), check_that_asks(SlowProbes.outer, "two", pause=0.05)
    ) == {
        "one": ["first"],
        "two": ["without"],
    }


def test_two_waiting_checks(probes: SlowProbes) -> None:
    """One takes the call over, and the other gets its answer."""
    checks = [check_that_asks(SlowProbes.impatient, "first", limit=0.2)]
    checks += [check_that_asks(SlowProbes.impatient, id, pause=0.05) for id in ("two", "three")]

    assert answers(probes, *checks) == {
        "first": "took longer than 0.2 s",
        "two": ["without"],
        "three": ["without"],
    }


def test_nothing_of_the_last_check_is_left(probes: SlowProbes) -> None:
    """A context variable that one check sets is not set in the next, in the same thread."""
    variable: ContextVar[str] = ContextVar("variable", default="unset")
    threads = set()

    def look(_: SlowProbes) -> str:
        threads.add(threading.get_ident())
        before = variable.get()
        variable.set("set")
        return before

    checks = [check_that_asks(look, id) for id in ("one", "two")]
    assert answers(probes, *checks) == {"one": ["unset"], "two": ["unset"]}
    assert len(threads) == 1


def test_a_repeated_call_gets_its_full_limit(probes: SlowProbes) -> None:
    """Its limit begins when it is made again."""
    assert answers(probes, check_that_asks(SlowProbes.impatient, "one", pause=0.4)) == {
        "one": ["without"]
    }


def test_a_busy_machine_has_time(probes: SlowProbes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks late for a probe that is being made waits as long as the first."""
    monkeypatch.setattr(limits, "factor", lambda: 10.0)

    class Busy(SlowProbes):
        @once(limit=0.3)
        def long(self) -> str:
            time.sleep(1)
            return "answer"

    busy = Busy(probes.home.path)
    checks = [check_that_asks(Busy.long, "one"), check_that_asks(Busy.long, "two", pause=0.5)]  # type: ignore[arg-type]
    assert answers(busy, *checks) == {"one": ["answer"], "two": ["answer"]}


def test_findings_so_far(probes: SlowProbes) -> None:
    """They are kept if the check is started again because of a probe, and is late then."""

    def slow(probes: Probes) -> Iterator[Finding]:
        time.sleep(0.5)
        yield finding("before")
        try:
            probes.stuck()  # type: ignore[attr-defined]
        except CouldNotLook:
            yield finding("after")

    results, findings = examine(probes, [make_check(slow, "one", limit=1.2)])

    assert results[0].reason == "took longer than 1.2 s" and results[0].seconds >= 1.1
    assert [one.subject for one in findings] == ["before"]


def test_the_time_for_all(probes: SlowProbes) -> None:
    """A check that is cut off when it is over says so, and the progress counts it."""
    ended: list[str] = []
    checks = [check_that_asks(SlowProbes.outer, "one", limit=9)]
    results, _ = examine(probes, checks, limit=0.2, progress=ended.append)

    assert results[0].reason == "the time for all checks was used up while it ran"
    assert ended == ["one"]


def test_an_answer_in_time_counts(probes: SlowProbes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if its worker is slow to take the next check."""
    take = check_threads.Run.take_next

    def slowly(run: check_threads.Run, worker: check_threads._Worker) -> bool:
        time.sleep(0.4 if run._answers else 0)
        return take(run, worker)

    monkeypatch.setattr(check_threads.Run, "take_next", slowly)
    checks = [check_that_asks(lambda _: "quick", "one", limit=0.3, pause=0.2)]
    assert answers(probes, *checks) == {"one": ["quick"]}


def test_hanging_threads_are_counted(probes: SlowProbes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch starts no further round once too many threads of earlier ones hang."""
    names = [one.name.partition("-")[0] for one in threading.enumerate()]
    monkeypatch.setattr(home_reachable, "HANGING", names.count("probe") + names.count("check") + 2)
    assert home_reachable.reach_home(probes.home)[1] == ""
    others = [SlowProbes(probes.home.path) for _ in range(3)]
    for one in others:
        answers(one, check_that_asks(SlowProbes.stuck, "one"))
    try:
        assert "earlier checks still wait" in home_reachable.reach_home(probes.home)[1]
    finally:
        for one in others:
            one.release.set()


@pytest.mark.parametrize(
    ("function", "shown"),
    [("_newest_backup", "age of the backup unknown"), ("_history", "took longer than 0.2 s")],
)
def test_the_report_waits_for_no_disk(
    probes: SlowProbes, monkeypatch: pytest.MonkeyPatch, function: str, shown: str
) -> None:
    """The size of the history and the age of the backup are asked with a limit, too."""
    monkeypatch.setattr(states, "DISK", 0.2)
    monkeypatch.setattr(states, function, lambda *_: probes.release.wait(60))
    [*_, data] = states.describe(probes, (), [], {})

    assert shown in str(data)


@pytest.mark.parametrize("answer", [Partly(5), Partly(None)])  # type: ignore[arg-type]
def test_nonsense_is_a_crash(probes: SlowProbes, answer: Partly) -> None:
    """It must not end the report."""
    results, _ = examine(probes, [make_check(lambda _: iter([answer]), "one")])  # type: ignore[list-item]
    assert results[0].status is Status.CRASHED


def test_an_exception_that_cannot_be_shown(probes: SlowProbes) -> None:
    """It ends its check, not the thread that runs the others."""

    class Odd(CouldNotLook):
        def __str__(self) -> str:
            raise ValueError

    def raises(_: Probes) -> Iterator[Finding]:
        raise Odd
        yield

    results, _ = examine(probes, [make_check(raises, "one"), check_that_asks(lambda _: "x", "two")])
    assert [one.status for one in results] == [Status.CRASHED, Status.PROBLEM]
