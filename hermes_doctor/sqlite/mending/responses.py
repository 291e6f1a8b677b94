"""The store of API responses: a cache, whose bad rows go."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.sqlite.mending.work import at_work, transaction


def evict(copy: Path) -> list[str]:
    """Remove responses that cannot be read back, and conversations that lead to none."""
    with at_work(copy) as connection, transaction(connection):
        unreadable = connection.execute(
            "DELETE FROM responses WHERE typeof(data) != 'text' OR NOT json_valid(data)"
        ).rowcount
        dangling = connection.execute(
            "DELETE FROM conversations WHERE response_id NOT IN (SELECT response_id FROM responses)"
        ).rowcount
    return [
        f"{unreadable} responses that cannot be read were evicted, "
        f"and {dangling} conversations that led to none."
    ]
