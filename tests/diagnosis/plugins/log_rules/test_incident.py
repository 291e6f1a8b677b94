"""The last words of an adapter are the reason of a failure."""

from __future__ import annotations

import pytest

from hermes_doctor.diagnosis.plugins.log_rules.findings import findings
from hermes_doctor.diagnosis.plugins.log_rules.incident import Adapters, is_adapter
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.diagnosis.plugins.log_rules.rule import LinePattern, Rule
from hermes_doctor.diagnosis.plugins.tables.patterns import literals
from tests.helpers.rule_lines import said

NOW = 1_000_000.0
DOWN = r"^✗ (?P<platform>\w+) failed to connect"
RULE = Rule(
    "down", "PLATFORM-DOWN", "error", "{platform} is down", LinePattern(DOWN, literals(DOWN)),
    adapter=True,
)  # fmt: skip


@pytest.mark.parametrize(
    "logger",
    ["gateway.platforms.qqbot.adapter", "hermes_plugins.qqbot_platform.adapter",
     "plugins.platforms.qqbot.adapter"],
)  # fmt: skip
def test_reason_first(logger: str) -> None:
    """Whatever logger the release uses, the adapter's line is the first evidence."""
    ledger = IncidentTracker([RULE], now=NOW)
    assert ledger.needed.wanted("ERROR", logger)
    ledger.add_entry(said(NOW - 61, "[QQBot:1] QQ startup failed: no route", "ERROR", logger))
    ledger.add_entry(said(NOW - 60, "✗ qqbot failed to connect", logger="gateway.run"))

    [finding] = findings(ledger.incidents(), lambda entry: "log")

    assert "no route" in finding.evidence[0].what
    assert "failed to connect" in finding.evidence[1].what


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (900.0, "[QQBot:1] QQ startup failed: no route"),
        (5.0, "[QQBot:1] Rejected unauthorized click: connect me"),
        (5.0, "[QQBot:1] nothing to say"),
    ],
)
def test_not_a_reason(ago: float, text: str) -> None:
    """Lines that are old, contain words of strangers, or say nothing about a failure."""
    adapters = Adapters()
    adapters.note(said(NOW - ago, text, "ERROR", "gateway.platforms.qqbot.adapter"))

    assert adapters.reason("qqbot", NOW) is None


def test_only_adapters() -> None:
    """The gateway's own lines and notes are not reasons."""
    assert not is_adapter("INFO", "gateway.platforms.qqbot")
    assert not is_adapter("ERROR", "gateway.run")


def test_a_long_reason() -> None:
    """It ends with a whole word and an ellipsis; what decides is often at its end."""
    ledger = IncidentTracker([RULE], now=NOW)
    long = "[QQBot:1] QQ startup failed: " + "because of this " * 11 + "the secret is wrong"
    for text in (long, long + " and again" * 20):
        ledger.add_entry(said(NOW - 61, text, "ERROR", "gateway.platforms.qqbot.adapter"))
        ledger.add_entry(said(NOW - 60, "✗ qqbot failed to connect", logger="gateway.run"))
        [finding] = findings(ledger.incidents(), lambda entry: "log")
        assert "the secret is wrong" in finding.evidence[0].what
    assert finding.evidence[0].what.endswith((" and…", " again…"))


def test_many_entries_before_a_reason_is_needed() -> None:
    """The last reason is found among hundreds of entries, in whatever order they came."""
    adapters = Adapters()
    for n in range(250):
        text = f"[QQBot:1] QQ startup failed: reason {n}" if n < 240 else "[QQBot:1] nothing"
        adapters.note(said(NOW - 250 + n, text, "ERROR", "gateway.platforms.qqbot.adapter"))

    last = adapters.reason("qqbot", NOW)

    assert last is not None and last.entry.text.endswith("reason 239")
