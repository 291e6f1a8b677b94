"""Reports, clocks and watches for tests, independent of the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CheckResult, Finding, Report, Safety, Severity, Status
from hermes_doctor.operations.watch.clocks import ClockReading, MachineClock
from hermes_doctor.operations.watch.events import EventKind, WatchEvent
from hermes_doctor.operations.watch.rounds import Watch
from hermes_doctor.operations.watch.store import WatchStateFiles

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FIXES = {"mend": Safety.SAFE, "ask-first": Safety.CONFIRM}


def copies() -> list[psutil.Process]:
    """The children that are copies of this process; a server of other tests is another program."""
    me = psutil.Process()
    return [one for one in me.children() if one.cmdline() in (me.cmdline(), [])]


def finding(code: str, severity: str = "error", subject: str = "thing", **more: Any) -> Finding:
    """Return one finding of the check `looks`."""
    return Finding(
        code=code,
        severity=Severity(severity),
        title=f"{code} is wrong",
        subject=subject,
        check=more.pop("check", "looks"),
        **more,
    )


def report(*findings: Finding, status: str | None = None, reason: str | None = None) -> Report:
    """Return a report of one check."""
    plain = Status.PROBLEM if findings else Status.OK
    result = CheckResult("looks", "group", Status(status) if status else plain, 0.0, reason)
    return Report(
        home=Path("/home"),
        hermes_version=None,
        started_at=AT,
        seconds=0.0,
        checks=(result,),
        findings=tuple(findings),
        fixes=FIXES,
        gateways=(),
    )


class Hands(MachineClock):
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.boot = "one"
        self.reading = ClockReading(1000.0, 5000.0, AT.timestamp())

    def read(self) -> ClockReading:
        return self.reading

    def turn(self, seconds: float, *, asleep: float = 0.0, wall: float = 0.0) -> None:
        """Let time pass, some of it in suspend, and move the wall clock."""
        steady, awake, was = self.reading
        assert awake is not None
        self.reading = ClockReading(
            steady + seconds, awake + seconds + asleep, was + seconds + asleep + wall
        )


class Heard(list[WatchEvent]):
    """The events of a watch."""

    def __call__(self, event: WatchEvent) -> None:
        self.append(event)

    @property
    def kinds(self) -> list[str]:
        """The kind of each event."""
        return [event.kind.value for event in self]

    def of(self, kind: EventKind) -> list[WatchEvent]:
        """Return the events of one kind."""
        return [event for event in self if event.kind is kind]


def watch(
    home: Path, look: Callable[[], Report] | Sequence[Report], **more: Any
) -> tuple[Watch, Heard, Hands]:
    """Return a watch with given reports, and its events and clock."""
    clock, heard = Hands(), Heard()
    if not callable(look):
        given = iter(look)
        look = lambda: next(given)  # noqa: E731
    made = Watch(
        home=Home(home),
        examine=look,
        print_event=heard,
        store=more.pop("store", None) or WatchStateFiles(Home(home), home.parent / "state"),
        interval=more.pop("interval", 30.0),
        min_rounds=more.pop("after", 3),
        clock=clock,
        **more,
    )
    made.title = "watches"
    return made, heard, clock
