"""Check the delivery ledger in state.db for finished answers that reached nobody."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    count,
    pattern,
    text,
)

_TABLE = "delivery_obligations"
_DAY = 86_400
_SQL = (
    "SELECT platform, state, count(*), min(created_at), max(updated_at), max(last_error) "
    f"FROM {_TABLE} WHERE state IN ('failed', 'abandoned') AND updated_at > {{since}} "
    "GROUP BY platform, state LIMIT 50"
)
_FLOOD = pattern(r"flood|retry.?after|too many requests|\b429\b")


@check(id="undelivered-answers", group="platforms", codes=["REPLY-LOST", "TG-FLOOD"])
def undelivered_answers(probes: Probes) -> Iterator[Finding]:
    """Were all finished answers delivered?"""
    path = probes.home / "state.db"
    if path not in probes.databases().paths:
        raise Skip("no message history yet")
    try:
        found = probes.condition(path)
    except FileNotFoundError:
        raise Skip("state.db was removed during the check") from None
    if probes.is_reported(path):
        raise Skip("state.db cannot be read; another check reports it")
    if found.readable and found.catalog and _TABLE not in found.catalog.tables:
        raise Skip("this release records no deliveries")
    rows = probes.rows(path, _SQL.format(since=int(time.time()) - _DAY), _TABLE)
    for platform, state, number, first, _, error in rows:
        if isinstance(platform, str) and isinstance(number, int):
            yield _finding(platform[:40], str(state), number, first, str(error or ""))


def _finding(platform: str, state: str, number: int, first: object, error: str) -> Finding:
    flood = platform == "telegram" and bool(_FLOOD.search(error.lower()))
    answers = count(number, "finished answer")
    return Finding(
        code="TG-FLOOD" if flood else "REPLY-LOST",
        severity=Severity.WARNING,
        title=text("{answers} on {platform} reached nobody", answers=answers, platform=platform),
        subject=platform,
        detail=(
            "Telegram asked the bot to wait, and Hermes sends these answers again only after a "
            "restart."
            if flood and state == "failed"
            else "The platform refused them. Hermes tries again after a restart, at most three "
            "times within a day."
            if state == "failed"
            else "Hermes gave up sending them. The message history (state.db) has the answers."
        ),
        evidence=(Evidence("state.db", f"{_TABLE}: {number} {state}"),),
        since=_moment(first),
        next=(
            "Restart the gateway to send them again."
            if state == "failed"
            else "Ask the bot to repeat the answer."
        ),
        data={"platform": platform, "state": state, "number": number},
    )


def _moment(value: object) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(str(value)[:40]), UTC)
    except (ValueError, OverflowError, OSError):
        return None
