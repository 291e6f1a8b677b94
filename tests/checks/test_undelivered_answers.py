"""Finished answers in the delivery ledger that reached nobody."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hermes_doctor.core.model import Status
from tests.helpers import damage
from tests.helpers.one_check import ask

ID = "undelivered-answers"
TABLE = (
    "CREATE TABLE IF NOT EXISTS delivery_obligations (obligation_id TEXT PRIMARY KEY, "
    "session_key TEXT NOT NULL, platform TEXT NOT NULL, chat_id TEXT NOT NULL, thread_id TEXT, "
    "content TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, "
    "created_at REAL NOT NULL, updated_at REAL NOT NULL, owner_pid INTEGER, "
    "owner_started_at INTEGER, last_error TEXT)"
)


def row(
    path: Path, id: str, state: str, error: str, *, ago: float = 600, on: str = "telegram"
) -> None:
    """One answer, as Hermes records it."""
    at = time.time() - ago
    damage.execute(
        path,
        TABLE,
        f"INSERT INTO delivery_obligations VALUES ('{id}', 'k', '{on}', '1', NULL, 'secret text', "
        f"'{state}', 1, {at}, {at}, 1, 1, '{error}')",
    )


@pytest.mark.parametrize(
    ("state", "error", "on", "code"),
    [
        ("failed", "flood_control:217", "telegram", "TG-FLOOD"),
        ("failed", "Forbidden", "telegram", "REPLY-LOST"),
        ("failed", "429 Too Many Requests", "discord", "REPLY-LOST"),
        ("abandoned", "stale", "discord", "REPLY-LOST"),
    ],
)
def test_found(home: Path, state: str, error: str, on: str, code: str) -> None:
    """By platform; the text of an answer is not shown."""
    for n in range(3):
        row(home / "state.db", f"o{n}", state, error, on=on)

    _, [found] = ask(ID, home)

    assert (found.code, found.severity, found.subject) == (code, "warning", on)
    assert "3 finished answers" in found.title
    assert "secret" not in str(found)


@pytest.mark.parametrize(("state", "ago"), [("delivered", 60), ("pending", 60), ("failed", 90_000)])
def test_healthy(home: Path, state: str, ago: float) -> None:
    """Delivered or waiting answers, and old failures, are not reported."""
    row(home / "state.db", "o", state, "", ago=ago)

    result, findings = ask(ID, home)

    assert (result.status, findings) == (Status.OK, [])
