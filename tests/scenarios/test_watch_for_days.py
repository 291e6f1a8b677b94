"""Round after round for days: neither memory nor threads nor descriptors grow."""

from __future__ import annotations

import gc
import os
import pathlib
import threading
import tracemalloc
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Report, Severity
from hermes_doctor.diagnosis.examination import report as reports
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.operations.watch.channels import Notice
from hermes_doctor.operations.watch.events import WatchEvent
from hermes_doctor.operations.watch.notices import Notices
from tests.helpers import fake_gateway, support
from tests.helpers.watch_parts import finding, report, watch

KILOBYTE = 1024


class Sink:
    """A channel that keeps nothing."""

    name = "the sink"

    def send(self, notice: Notice) -> None:
        pass


def forget(_: WatchEvent) -> None:
    """What was told is not kept, unlike in other tests."""


def used(act: Callable[[], None]) -> int:
    """Bytes that are in use after something was done.

    Without the interpreter's table of names, which paths go through: it grows by doubling.
    """
    act()
    gc.collect()
    others = [tracemalloc.Filter(False, str(one.__file__)) for one in (tracemalloc, pathlib)]
    traces = tracemalloc.take_snapshot().filter_traces(others).traces
    return sum(trace.size for trace in traces)


def rss() -> int:
    """Bytes of memory that this process has by the kernel's word."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.wide
def test_thousands_of_rounds(home: Path) -> None:
    """Findings come and go, notices go out, the home vanishes, the machine sleeps."""
    given = [
        report(),
        report(finding("A"), finding("B", "warning")),
        report(finding("A", "critical"), finding("B", "warning")),
        report(status="unknown", reason="a slow disk"),
        report(finding("C", subject="telegram")),
    ]
    changing = cycle(one for one in given for _ in range(10))
    notices = Notices([Sink()], str(home), Severity.WARNING)
    made, _, clock = watch(home, lambda: next(changing), notices=notices)
    made.print_event = forget

    def run(until: int) -> None:
        while made.rounds < until:
            clock.turn(30.0, asleep=3600.0 if made.rounds % 500 == 499 else 0.0)
            made.round(begins=made.rounds == 0)
        notices.close(60.0)  # what waits to be sent is no leak

    rounds = 10_000
    run(rounds // 10)
    before = rss()
    run(rounds * 9 // 10)
    tracemalloc.start()  # makes everything three times as slow
    try:
        early = used(lambda: run(rounds * 92 // 100))
        late = used(lambda: run(rounds))
    finally:
        tracemalloc.stop()

    assert late - early < 48 * KILOBYTE, f"{late - early} bytes more"
    assert rss() - before < 16 * KILOBYTE**2


@pytest.mark.wide
def test_real_rounds(home: Path) -> None:
    """The real checks on a home with a gateway, whose log is rotated under them."""
    loaded = load.load()
    probed = Home(home.resolve())

    def look() -> Report:
        probes = Probes(probed)
        try:
            return reports.report(probes, loaded, loaded.checks)
        finally:
            probes.close()

    made, _, clock = watch(home, look)
    made.print_event = forget
    log = home / "logs" / "gateway.log"

    def run(count: int) -> None:
        for number in range(count):
            clock.turn(30.0)
            support.put(log, "2026-01-02 03:04:05,000 INFO gateway.run: a line\n" * 50)
            if number % 10 == 0:
                log.rename(home / "logs" / "gateway.log.1")
            made.round(begins=made.rounds == 0)

    rounds = 60
    with fake_gateway.gateway(home, api="answers"):
        tracemalloc.start()
        try:
            early = used(lambda: run(6))
            files = len(os.listdir("/proc/self/fd"))
            late = used(lambda: run(rounds))
        finally:
            tracemalloc.stop()

        assert late - early < 256 * KILOBYTE, f"{late - early} bytes more in {rounds} rounds"
        assert len(os.listdir("/proc/self/fd")) <= files + 2
        left = [
            one.name for one in threading.enumerate() if one.name.startswith(("probe-", "check-"))
        ]
        assert len(left) < 8, left
