"""Connections that are made again and again, or that never come."""

from __future__ import annotations

from hermes_doctor.diagnosis.plugins.log_causes.cause_index import Cause
from hermes_doctor.diagnosis.plugins.log_rules.connections import HANGING, LONG, OFTEN, UNSTABLE
from hermes_doctor.diagnosis.plugins.log_rules.findings import findings
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from tests.helpers.cause_tables import CAUSES, SmallReader
from tests.helpers.rule_lines import said

NOW = 10_000_000.0
LOOP = Cause(UNSTABLE, "network", 71, "NET-TCP", title="the connection breaks off", advice="Look.")


class Reader(SmallReader):
    """A reader that knows the cause."""

    causes = (*CAUSES, LOOP)


def told(every: float, text: str = "ok connect", *, ago: float = 60, **given: object) -> list[str]:
    """Return the titles if something is written that often."""
    tracker = IncidentTracker([], now=NOW, reader=Reader(), **given)  # type: ignore[arg-type]
    for number in range(OFTEN, 0, -1):
        tracker.add_entry(said(NOW - ago - every * number, text, "INFO", "telegram"))
    return [str(one.title) for one in findings(tracker.incidents(), lambda entry: entry.source)]


def test_again_and_again() -> None:
    """Each connection is made shortly after the one before."""
    assert told(30) == ["Telegram: the connection breaks off"]
    assert told(30, ago=7200) == [], "it lasts since then"
    assert told(90) == [], "it works in between"
    assert told(0.1) == [], "several lines about one connection"
    assert told(30, "ok send") == [], "messages are no connections"


def test_each_start_connects() -> None:
    """The connections of a gateway before count no more."""
    assert told(30, starts=[NOW - 150]) == []


def test_a_connection_that_fails_at_once() -> None:
    """What fails seconds after each success has not worked; what worked for a minute has."""
    for pause, severities in ((5.0, ["warning"]), (60.0, [])):
        tracker = IncidentTracker([], now=NOW, reader=Reader())
        for number in range(10, 0, -1):
            at = NOW - 100 * number
            tracker.add_entry(said(at, "ok connect", "INFO", "telegram"))
            tracker.add_entry(said(at + pause, "connect: dns", "WARNING", "telegram"))
        tracker.add_entry(said(NOW - 10, "ok connect", "INFO", "telegram"))
        found = findings(tracker.incidents(), lambda entry: entry.source)
        assert [one.severity.value for one in found] == severities


class HangingReader(SmallReader):
    """A reader that knows the cause."""

    causes = (
        *CAUSES,
        Cause(HANGING, "network", 73, "PLATFORM-TIMEOUT", title="it hangs", advice="Restart."),
    )

    def may_succeed(self, level: str, logger: str) -> bool:
        """Tell whether entries could show that something works."""
        return level == "INFO"


def hanging(*lines: tuple[float, str], starts: tuple[float, ...] = ()) -> list[tuple[str, str]]:
    """Return severity and title of what is found."""
    tracker = IncidentTracker([], now=NOW, reader=HangingReader(), starts=starts)
    for ago, text in lines:
        tracker.add_entry(said(NOW - ago, text, "INFO", "gateway.run"))
    found = findings(tracker.incidents(), lambda entry: entry.source)
    return [(one.severity.value, str(one.title)) for one in found]


BEGUN = (LONG + 100, "Connecting to telegram...")


def test_no_word_since() -> None:
    """Neither success nor failure."""
    hangs = [("warning", "Telegram: it hangs")]
    assert hanging(BEGUN) == hangs
    assert hanging((LONG + 50, "Reconnecting telegram (attempt 3)...")) == hangs
    assert hanging(BEGUN, (50, "✓ discord connected")) == hangs
    assert hanging((LONG - 100, BEGUN[1])) == [], "it may still come"


def test_it_ended() -> None:
    """In whatever way."""
    for text in (
        "✓ telegram connected",
        "✗ telegram failed to connect",
        "Reconnect telegram error: x, next retry in 30s",
        "inbound message: platform=telegram user=a chat=1 msg='x'",
        "Gateway running with 1 platform(s)",
        "Stopping gateway...",
    ):
        assert hanging(BEGUN, (LONG + 50, text)) == [], text
    assert hanging(BEGUN, starts=(NOW - 60,)) == []


def test_it_hung_until_the_stop() -> None:
    """A stop after a long time does not end it."""
    assert hanging((3 * LONG, BEGUN[1]), (10, "Stopping gateway...")) != []
