"""Failures without a rule: how severe they are by what people notice, and when they end."""

from __future__ import annotations

import pytest

from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.plugins.log_rules.failures import MOST, Failures
from hermes_doctor.plugins.log_rules.findings import findings
from hermes_doctor.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.plugins.log_rules.rule import LinePattern, Rule
from tests.helpers.cause_tables import SmallReader
from tests.helpers.rule_lines import said

NOW = 10_000_000.0
HOUR, DAY = 3600.0, 86_400.0


def told(*entries: LogEntry, starts: list[float] | None = None) -> list[tuple[str, str, str]]:
    """Severity, code and title of what these entries come to."""
    ledger = IncidentTracker([], now=NOW, reader=SmallReader(), starts=starts or [])
    for one in entries:
        ledger.add_entry(one)
    found = findings(ledger.incidents(), lambda e: f"{e.source}:{e.offset}")
    return [(one.severity.value, one.code, str(one.title)) for one in found]


def failed(ago: float, text: str, logger: str = "telegram") -> LogEntry:
    """A warning, so many seconds ago."""
    return said(NOW - ago, text, "WARNING", logger)


def worked(ago: float, text: str, logger: str = "telegram") -> LogEntry:
    """A line which shows that something works."""
    return said(NOW - ago, text, "INFO", logger)


PORT = ("error", "GW-PORT-IN-USE", "Telegram: port 8443 is already in use")
DNS = ("error", "NET-DNS", "Telegram: the server name cannot be resolved")


def test_silent_since() -> None:
    """A platform that cannot connect for a lasting reason is silent."""
    lines = [failed(600, "connect: port 8443"), failed(300, "connect: port 8443")]
    assert told(*lines) == [PORT]
    assert told(lines[0]) == [("info", *PORT[1:])]
    assert told(*lines, worked(10, "ok connect")) == []
    assert told(*lines, worked(10, "ok send")) == [("info", *PORT[1:])]  # it does other things
    assert told(*lines, worked(10, "ok connect", "model")) == [PORT]


def test_works_sometimes() -> None:
    """What works beside it makes it a warning."""
    lines = [failed(60 * n, "send: port 8443") for n in (9, 8, 7)]
    assert told(*lines, worked(10, "ok connect")) == [("warning", *PORT[1:])]
    assert told(worked(600, "ok connect"), *lines) == [PORT]


def test_it_may_pass() -> None:
    """A hiccup of the network is no problem; one that lasts is."""
    hiccup = [failed(300 + n, "connect: dns") for n in (9, 6, 3)]
    assert told(*hiccup) == []
    assert told(failed(7200, "connect: dns")) == []
    assert told(failed(1800, "connect: dns"), *hiccup) == [DNS]
    assert told(failed(1800, "connect: dns"), *hiccup, worked(1, "ok connect")) == []


def test_two_messages_a_day() -> None:
    """All of its few attempts failed, so it is open however long ago that was."""
    lines = [failed(DAY * n / 2, "connect: dns") for n in (5, 4, 3, 2, 1)]
    assert told(*lines) == [DNS]
    assert told(*lines[:-2]) == [DNS]
    assert told(*lines, worked(60, "ok connect")) == []


def test_the_most_basic_cause() -> None:
    """Of the causes of one failing connection, and lines without a cause count."""
    lines = [
        failed(3000, "connect: timed out"),
        failed(2000, "connect: dns"),
        failed(1000, "connect: still waiting"),
        failed(900, "connect: timed out"),
    ]
    assert told(*lines) == [DNS]


def test_parts_that_nobody_hears() -> None:
    """A failure of something else than people talk to is a warning."""
    lines = [failed(60 * n, "run a job: port 1", "cron") for n in (9, 8)]
    assert told(*lines) == [
        ("warning", "GW-PORT-IN-USE", "scheduled jobs: port 1 is already in use")
    ]
    assert told(failed(9, "run a job: dns", "cron")) == []
    assert told(failed(9, "run a job: dns gave up", "cron"))[0][0] == "warning"


def test_a_start_ends_it() -> None:
    """A later start of the gateway; but what the start itself reported counts."""
    lines = [failed(1200, "connect: port 8443"), failed(900, "connect: port 8443")]
    assert told(*lines, failed(10, "work: x"), starts=[NOW - 300]) == []
    assert told(*lines, failed(10, "work: x"), starts=[NOW - 850]) == [PORT]


def test_no_place() -> None:
    """A line that belongs to no place says nothing."""
    assert told(*(failed(n, "connect: port 1", "elsewhere") for n in (90, 60))) == []


def test_a_flood() -> None:
    """The number of different failures is limited."""
    from hermes_doctor.plugins.log_causes.reading import Place, Reading
    from tests.helpers.cause_tables import PORT as CAUSE

    failures = Failures(NOW, {})
    for n in range(MOST + 5):
        reading = Reading(Place("tools", f"t{n}", "t"), "work", CAUSE, {}, "", "")
        failures.add(failed(9, "x"), reading, described=False)
    assert failures.dropped == 5


@pytest.mark.parametrize("code", ["TG-NETWORK", "JOB-FAILED"])
def test_with_a_rule(code: str) -> None:
    """A rule about the same lines: its code is replaced, or the cause is shown above it."""
    rule = Rule("one", code, "error", "cannot connect", LinePattern("^connect", ["connect"]))
    reader = SmallReader()
    reader.causes = [*reader.causes, reader.causes[1]._replace(code="TG-NETWORK")]
    ledger = IncidentTracker([rule], now=NOW, reader=reader, symptoms=["JOB-FAILED"])
    for ago in (90, 60):
        ledger.add_entry(failed(ago, "connect: port 8443"))
    found = {one.code: one for one in findings(ledger.incidents(), lambda e: e.source)}

    if code == "JOB-FAILED":
        assert found[code].caused_by == "GW-PORT-IN-USE"
    assert found["GW-PORT-IN-USE"].title == PORT[2]
    assert found["GW-PORT-IN-USE"].severity == "error"
    assert ("TG-NETWORK" in found) is False
