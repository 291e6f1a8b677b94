"""Unknown errors are shown: at most three, quoted, and no louder than what people notice."""

from __future__ import annotations

from hermes_doctor.core.model import Finding
from hermes_doctor.diagnosis.plugins.log_rules.findings import findings
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.diagnosis.plugins.log_rules.rule import LinePattern, Rule
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers.cause_tables import SmallReader
from tests.helpers.rule_lines import said, written

NOW = 10_000_000.0
KNOWN = Rule("known", "TG-X", "info", "known", LinePattern("^Known", ["Known"]))


def told(*entries: LogEntry, starts: list[float] | None = None) -> list[Finding]:
    """What these entries come to."""
    rules = [KNOWN, *(rule for rule in written().rules if rule.unknown)]
    ledger = IncidentTracker(rules, now=NOW, reader=SmallReader(), starts=starts or [])
    for one in entries:
        ledger.add_entry(one)
    return list(findings(ledger.incidents(), lambda e: f"{e.source}:{e.offset}"))


def odd(
    words: str, times: int = 3, level: str = "ERROR", logger: str = "telegram"
) -> list[LogEntry]:
    """A line again and again, each time with another number."""
    return [said(NOW - 900 + n, f"{words} {n}: secret words", level, logger) for n in range(times)]


def test_quoted() -> None:
    """The first words, how often and since when; the rest may be what people wrote."""
    [found] = told(*odd("The ring buffer"))

    assert (found.code, found.severity, found.subject) == ("UNKNOWN-ERROR", "info", "telegram")
    assert found.title == "Telegram: an error that is not known repeats"
    assert "3 times" in found.detail
    assert found.since is not None and found.since.timestamp() == NOW - 900
    assert "The ring buffer" in found.evidence[0].what
    assert "secret" not in str(found)


def test_what_is_felt() -> None:
    """A warning if something is lost where people talk to the bot; nothing if it works again."""
    lost = odd("Odd gave up")
    after = said(NOW - 10, "ok connect", "INFO", "telegram")
    assert [one.severity for one in told(*odd("Odd thing"))] == ["info"]
    assert [one.severity for one in told(*lost)] == ["warning"]
    assert [one.severity for one in told(*odd("Odd gave up", logger="cron"))] == ["info"]
    assert [one.severity for one in told(*odd("Odd thing", 5, logger="cron"))] == ["warning"]
    assert [one.severity for one in told(*odd("Odd thing", 5))] == ["info"]  # a library
    assert told(*lost, after) == []
    assert told(*odd("Odd thing"), said(NOW - 5, "x y"), starts=[NOW - 600]) == []


def test_not_unknown() -> None:
    """Few lines, lines of a rule, with a cause, of no place, or without words."""
    assert told(*odd("Odd thing", 2)) == []
    assert [one.code for one in told(*odd("Known thing"))] == ["TG-X"]
    assert told(*(said(NOW - n, "connect: dns", "ERROR", "telegram") for n in (9, 8, 7))) == []
    assert told(*odd("Odd thing", logger="elsewhere")) == []
    assert told(*odd("%")) == []
    assert told(*odd("Odd thing", level="INFO")) == []


def test_at_most_three() -> None:
    """Those that are felt come first, then the most frequent ones."""
    lines = [
        odd(f"Odd {name}", times) for name, times in (("aa", 4), ("bb", 5), ("cc", 6), ("dd", 3))
    ]
    found = told(*(entry for some in lines for entry in some))

    assert sorted(one.evidence[0].what[-6:] for one in found) == ["Odd aa", "Odd bb", "Odd cc"]


def test_a_flood() -> None:
    """The number of different lines is limited."""
    assert len(told(*(entry for n in range(400) for entry in odd("Odd " + "x" * (n % 20))))) == 3
