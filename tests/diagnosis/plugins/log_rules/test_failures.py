"""Failures without a rule: how severe they are by what people notice, and when they end."""

from __future__ import annotations

import pytest

from hermes_doctor.diagnosis.plugins.log_causes.reading import Reading
from hermes_doctor.diagnosis.plugins.log_rules.failures import MOST, Failures
from hermes_doctor.diagnosis.plugins.log_rules.findings import findings
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.diagnosis.plugins.log_rules.rates import NextChange
from hermes_doctor.diagnosis.plugins.log_rules.rule import LinePattern, Rule
from hermes_doctor.hermes.logs.entry import LogEntry
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
    """A platform that cannot connect for a lasting reason is silent, also if it tried once."""
    lines = [failed(600, "connect: port 8443"), failed(300, "connect: port 8443")]
    assert told(*lines) == [PORT]
    assert told(lines[0]) == [PORT]
    assert told(lines[1]) == [("info", *PORT[1:])]  # it may be trying again
    assert told(failed(600, "send: port 8443")) == [("info", *PORT[1:])]
    assert told(*lines, worked(10, "ok connect")) == []
    assert told(*lines, worked(10, "ok send")) == [("info", *PORT[1:])]  # it does other things
    assert told(*lines, worked(10, "ok connect", "model")) == [PORT]


def test_one_error() -> None:
    """One error with a lasting cause is enough if nothing has worked since."""
    line = said(NOW - 900, "connect: port 8443", "ERROR", "telegram")
    assert told(line)[0][0] == "error"
    assert told(line._replace(at=NOW - 60))[0][0] == "info", "it may try again"
    assert told(line, worked(10, "ok connect")) == []
    assert told(line._replace(logger="cron", text="work: port 1"))[0][0] == "warning"


def test_a_connection_that_breaks_off() -> None:
    """Its failures are an error also if the log does not go back to where it worked."""
    lines = [failed(60 * n, "receive: dns") for n in (30, 20, 10)]
    assert told(*lines) == [DNS]
    assert told(*lines, worked(10, "ok receive")) == []
    sent = [failed(60 * n, "send: dns") for n in (30, 20, 10)]
    assert [one[0] for one in told(*sent)] == ["warning"]


def test_another_way() -> None:
    """What is tried in another way after each failure is no error: nothing need be lost."""

    class Tries(SmallReader):
        def read(self, entry: LogEntry) -> Reading:
            outcome = "retried" if "fallback" in entry.text else ""
            return super().read(entry)._replace(outcome=outcome)

    for words, severity in (("port 1", "error"), ("port 1 fallback", "warning")):
        tracker = IncidentTracker([], now=NOW, reader=Tries())
        tracker.add_entry(worked(9000, "ok connect"))
        for ago in (1500, 900, 300):
            tracker.add_entry(failed(ago, f"send: {words}"))
        found = findings(tracker.incidents(), lambda one: one.source)
        assert [one.severity.value for one in found] == [severity]


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


def test_what_stops_everything() -> None:
    """A cause with a severity is one finding, whatever its places have done since."""
    jobs = [failed(60 * n, "work: no space", "cron") for n in (9, 8)]
    other = [failed(60 * n, "send: no space") for n in (7, 6)]
    assert told(jobs[0]) == [("info", "DISK-FULL", "scheduled jobs: the disk is full")]
    assert told(*jobs) == [("critical", "DISK-FULL", "scheduled jobs: the disk is full")]
    assert told(*jobs, worked(9, "ok send", "cron"))[0][0] == "critical"
    assert told(*jobs, worked(9, "ok work", "cron")) == []
    assert told(*jobs, *other) == [("critical", "DISK-FULL", "the disk is full")]
    assert told(*(failed(60 * n, "work: no space", "tools") for n in (9, 8)))[0][0] == "warning"
    assert (
        told(*(failed(8 * HOUR + n, "work: no space", "cron") for n in (9, 8)))[0][0] == "warning"
    )


def test_checks_and_fix_of_a_cause() -> None:
    """They come with its severity."""
    ledger = IncidentTracker([], now=NOW, reader=SmallReader())
    for ago in (90, 60):
        ledger.add_entry(failed(ago, "work: no space", "cron"))
    [found] = findings(ledger.incidents(), lambda e: e.source)
    assert (found.fix, found.data["unless_ok"]) == ("free-space", ("disk-space",))


def test_an_answer_that_was_given_up() -> None:
    """A message without an answer is an error at once, until the model works again."""
    assert told(failed(9, "call the model: 401 gave up", "model"))[0][0] == "error"
    assert told(failed(9, "call the model: 401", "model"))[0][0] == "info"
    assert told(failed(9, "call the model: dns gave up", "model"))[0][0] == "error"
    assert told(failed(9, "call the model: dns", "model")) == []
    assert (
        told(failed(9, "call the model: dns gave up", "model"), worked(5, "ok call", "model")) == []
    )


def test_what_is_tried_once() -> None:
    """A start is tried once, so one line says that it failed."""
    assert told(failed(9, "start: port 8443")) == [PORT]
    assert told(failed(9, "load a plugin: port 1", "cron"))[0][0] == "info", "nobody may need it"
    assert told(failed(9, "start: dns")) == []


def test_a_rule_says_it_better() -> None:
    """A rule that reports the cause of some lines replaces what the others name."""
    rule = Rule(
        "one", "PROVIDER-401", "error", "log in again", LinePattern("^try: 401$", ["try: 401"])
    )
    ledger = IncidentTracker([rule], now=NOW, reader=SmallReader())
    for text in ("try: 401", "try: 401", "call the model: dns gave up"):
        ledger.add_entry(failed(60, text, "model"))
    ledger.add_entry(failed(50, "try: 401 gave up", "model")._replace(level="ERROR"))
    found = {str(one.title) for one in findings(ledger.incidents(), lambda e: e.source)}
    assert found == {"log in again", "the model: the server name cannot be resolved"}


def test_no_place() -> None:
    """A line that belongs to no place says nothing."""
    assert told(*(failed(n, "connect: port 1", "elsewhere") for n in (90, 60))) == []


def test_a_flood() -> None:
    """The number of different failures is limited."""
    from hermes_doctor.diagnosis.plugins.log_causes.reading import Place
    from tests.helpers.cause_tables import PORT as CAUSE

    failures = Failures(NextChange(NOW), {})
    for n in range(MOST + 5):
        reading = Reading(Place("tools", f"t{n}", "t"), "work", CAUSE, {}, "", "")
        failures.add(failed(9, "x"), reading)
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
