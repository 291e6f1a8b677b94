"""Old lines: tried only with the rules for which they can still count."""

from __future__ import annotations

from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.diagnosis.plugins.log_rules.matcher import OLD, Matcher
from hermes_doctor.diagnosis.plugins.log_rules.rule import LinePattern, Rule
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers.rule_lines import said

NOW = 1_000_000.0
HOUR, DAY = 3600.0, 86_400.0
SOON = Rule("soon", "QQ-4009", "error", "closed", LinePattern("^closed", ["closed"], "INFO"))
LATE = SOON._replace(id="late", window=DAY)


def tried(entry: LogEntry, *rules: Rule, compared: tuple[str, ...] = ()) -> set[str]:
    """The rules that a matcher tries on an entry that all of them describe."""
    return {match.rule.id for match in Matcher(rules, NOW, compared).ask(entry)}


def test_old_lines() -> None:
    """After six hours, only rules with a longer window are tried, or those with a history."""
    now, old = (said(NOW - ago, "closed", "INFO") for ago in (60.0, OLD + 60))
    assert tried(now, SOON, LATE) == {"soon", "late"}
    assert tried(old, SOON, LATE) == {"late"}
    assert tried(old, SOON, LATE, compared=("soon",)) == {"soon", "late"}
    assert tried(old._replace(level="DEBUG"), SOON) == set()


def test_old_warnings() -> None:
    """That a rule describes an old warning matters: then it is no unknown error."""
    old = said(NOW - OLD - 60, "closed", "WARNING")
    assert tried(old, SOON, LATE) == {"soon", "late"}


def going_on(rule: Rule, *entries: LogEntry) -> list[bool]:
    """Whether each incident that these entries come to goes on."""
    tracker = IncidentTracker([rule], now=NOW)
    for entry in entries:
        tracker.add_entry(entry)
    return [one.cleared_at is None for one in tracker.incidents()]


def test_old_lines_of_a_long_window() -> None:
    """They count, and old lines that end them do, too."""
    back = LinePattern("^back", ["back"], "INFO")
    rule = LATE._replace(cleared_by=[back])
    closed = said(NOW - 10 * HOUR, "closed", "INFO")
    assert going_on(rule, closed) == [True]
    assert going_on(rule, closed, said(NOW - 8 * HOUR, "back", "INFO")) == [False]
    assert going_on(rule, said(NOW - 12 * HOUR, "back", "INFO"), closed) == [True]
    assert going_on(rule._replace(window=8 * HOUR), closed) == []
