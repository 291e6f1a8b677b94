"""Delete bad rows from the cache of API responses."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.sqlite.repairs.work import open_copy, transaction
from hermes_doctor.sqlite.responses import DANGLING, UNREADABLE


def delete_bad_responses(copy: Path) -> list[str]:
    """Delete responses that are not readable, and conversations whose response is missing."""
    with open_copy(copy) as connection, transaction(connection):
        unreadable = connection.execute(f"DELETE FROM responses WHERE {UNREADABLE}").rowcount
        dangling = connection.execute(f"DELETE FROM conversations WHERE {DANGLING}").rowcount
    return [
        f"{unreadable} responses that cannot be read were removed, "
        f"and {dangling} conversations whose response is missing."
    ]
