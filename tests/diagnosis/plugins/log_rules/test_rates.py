"""Until when an answer about unchanged logs stays the same."""

from __future__ import annotations

import math
import random

import pytest

from hermes_doctor.core.model import Finding
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_rules.findings import findings
from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.diagnosis.plugins.log_rules.needed_entries import LOGS
from hermes_doctor.diagnosis.plugins.log_rules.rates import NextChange
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers import budget
from tests.helpers.rule_lines import entry, said, written

NOW = 1_794_700_800.0
HOUR = 3600.0
FOLDER = Folder(builtin("checks") / "signatures", ours=True)
SERIOUS = ("WARNING", "ERROR", "CRITICAL")
ORDINARY = [
    ("INFO", "gateway.run", "Starting Hermes Gateway..."),
    ("INFO", "gateway.run", "✓ qqbot connected"),
    ("INFO", "gateway.run", "inbound message: platform=qqbot user=U1 chat=U1 msg='hello'"),
    ("INFO", "gateway.run", "response ready: platform=qqbot chat=U1 time=2.1s api_calls=1"),
]


def answer(entries: list[LogEntry], now: float) -> tuple[list[Finding], float]:
    """What a read at this time finds, and until when that counts."""
    rules = FOLDER.rule_set.rules
    ledger = IncidentTracker(rules, now=now, reader=FOLDER.reader, symptoms=FOLDER.symptoms)
    for one in entries:
        if one.kind not in LOGS:
            since = ledger.needed.since()
        elif one.level in SERIOUS and one.kind == "log":  # as errors.log has it
            since = ledger.needed.since_days()
        else:
            since = ledger.needed.since(*LOGS)
        if one.at >= since and (one.kind != "log" or ledger.needed.wanted(one.level, one.logger)):
            ledger.add_entry(one)
    found = list(findings(ledger.incidents(), lambda one: f"{one.source}:{one.offset}"))
    return found, ledger.next_change.at


def life(dice: random.Random) -> list[LogEntry]:
    """Lines of a few rules, mixed with those of an ordinary life, over some days."""
    chosen = dice.sample(written().samples, 6)
    lines = [(one.rule.source, text) for one in chosen for text in one.examples]
    lines += [
        (two.rule.source, text)
        for one in chosen
        for two in written().samples
        if two.rule.id == one.rule.id
        for text in two.examples[:1]
    ]
    found = []
    for number in range(dice.randrange(1, 60)):
        age = dice.choice((dice.uniform(0, HOUR), dice.uniform(0, 12 * HOUR), 4e5 * dice.random()))
        if dice.random() < 0.4:
            level, logger, text = dice.choice(ORDINARY)
            made = said(0, text, level, logger)
        else:
            kind, text = dice.choice(lines)
            made = entry(text, kind)
        found.append(made._replace(at=NOW - age, offset=number))
    return sorted(found)


@pytest.mark.parametrize("number", range(budget.tries(8, 150)))
def test_nothing_changes_before(number: int) -> None:
    """At any later moment until then, reading the same lines finds the same."""
    dice = budget.chance(number)
    entries = life(dice)
    found, until = answer(entries, NOW)
    assert until >= NOW
    span = min(until - NOW, 5 * 24 * HOUR)
    for part in (dice.random(), dice.random(), 0.999_999):
        assert answer(entries, NOW + span * part)[0] == found


def test_it_is_the_moment_of_the_change() -> None:
    """A message without an answer is an error after a while, and a line drops out at last."""
    asked = said(NOW - 60, ORDINARY[2][2], "INFO", "gateway.run")
    [rule] = [one for one in FOLDER.rule_set.rules if one.id == "reply-none"]
    found, until = answer([asked], NOW)
    assert (found, until) == ([], NOW - 60 + rule.settle)
    [one], later = answer([asked], until + 1)
    assert one.code == rule.code
    assert answer([asked], later - 1)[0] == [one]
    assert later <= NOW - 60 + rule.window
    assert answer([asked], NOW - 60 + rule.window + 1)[0] == []


def test_lines_that_do_not_count() -> None:
    """What is over and what means nothing does not end an answer."""
    started = [said(NOW - 9e5, "something", "INFO", "gateway.run")]
    assert answer(started, NOW)[1] == math.inf


def test_moments() -> None:
    """The earliest one that is still to come, or is now."""
    change = NextChange(NOW)
    change.ages = (10, 20)
    change.note_line(NOW - 15)
    change.note_moments([NOW - 1, NOW + 9])
    assert change.at == NOW + 5
    change.note_line(NOW - 20)
    assert change.at == NOW
