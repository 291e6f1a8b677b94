"""The fields of a match: what distinguishes incidents, and what rule and entry add."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_doctor.plugins.log_rules.matcher import Match
from hermes_doctor.plugins.log_rules.rule import KEYS, Rule


def key_names(rule: Rule) -> Sequence[str]:
    """Return the names of the fields that distinguish the incidents of a rule."""
    taken = rule.per_session or "(?P<session>" in rule.line.pattern
    names = [name for name in KEYS if name in rule.incident_by or not rule.incident_by]
    return names if taken else [name for name in names if name != "session"]


def all_fields(match: Match) -> dict[str, str]:
    """Return the fields of a line together with those that the rule and the entry add."""
    fields = dict(match.fields)
    if match.rule.platform:
        fields.setdefault("platform", match.rule.platform)
    if "platform" in fields:  # [Telegram] and telegram are the same
        fields["platform"] = fields["platform"].lower()
    if match.rule.per_session and match.entry.session:
        fields.setdefault("session", match.entry.session)
    return fields
