"""What identifies a file as a history, and the names of its columns."""

from __future__ import annotations

from hermes_doctor.model import Trouble

APPLICATION = 0x48446869
"""SQLite's application id of a history: "HDhi"."""
VERSION = 2
"""SQLite's user version: the number of the newest migration."""


COLUMNS = {
    "homes": (
        *("id", "path", "identity", "boot", "first_seen", "last_seen", "condition"),
        *("counted_until", "spacing", "hermes", "doctor", "gateway", "gateway_started"),
        *("last_run", "steady_since", "pruned", "due"),
    ),
    "episodes": (
        *("id", "home", "code", "subject", "severity", "title", "check", "first_seen"),
        *("last_seen", "ended", "how", "repair", "returns", "options"),
    ),
    "hours": ("home", "hour", "working", "limited", "silent"),
    "marks": ("id", "home", "at", "kind", "what", "code", "subject", "run", "times", "until"),
}
"""The columns of each table."""


class NewerHistory(Trouble):
    """The history was written by a newer hermes-doctor."""


def readable(stored: bytes) -> str:
    """A stored text; a damaged one must not raise an error that only SQLite understands."""
    return stored.decode("utf-8", "replace")


def refuse_newer(version: int) -> None:
    """Raise if a newer hermes-doctor wrote the file; it is not touched then."""
    if version > VERSION:
        raise NewerHistory(
            "The history was written by a newer hermes-doctor, so it is left alone. "
            "Update this one to use it."
        )
