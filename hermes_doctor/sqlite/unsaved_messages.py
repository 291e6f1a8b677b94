"""Find messages in transcripts that the message history lacks, and decide which can be added.

Hermes orders the messages of a session by id. So a message is added only at the end of its session,
and only if no newer message is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite.inspector import MOST_ROWS
from hermes_doctor.sqlite.salvage import transcripts
from hermes_doctor.sqlite.saved_rows import Ask
from hermes_doctor.sqlite.table_rows import Value

ROLES = frozenset({"user", "assistant", "tool"})
SAME = 900.0
"""Seconds between a message in a transcript and its row: Hermes may have added it later."""
MOST = 40 * MOST_ROWS
"""The most messages of a session that are compared."""
NO_SESSION = "their session is not in state.db"
CONTINUED = "the conversation continued without them"
PENDING = "Hermes adds messages of the same session at its next start"
UNCLEAR = "the transcript does not continue what state.db has"


class Transcript(NamedTuple):
    """The messages of one session in a file."""

    session: str
    messages: Sequence[Mapping[str, Any]]
    at: float
    """When the file was written."""
    complete: bool = False
    """The file has the whole session from its start, not only what could not be saved."""


class StoredMessage(NamedTuple):
    """A message of a session in the database."""

    role: str
    content: str
    time: float
    calls: str


@dataclass
class UnsavedMessages:
    """The messages of transcripts that a history lacks."""

    addable: dict[str, list[dict[str, Value]]] = field(default_factory=dict)
    """By session: the columns of messages that can be added at its end, in order."""
    left: dict[str, int] = field(default_factory=dict)
    """By reason: how many messages cannot be added."""

    @property
    def count(self) -> int:
        """How many messages can be added."""
        return sum(map(len, self.addable.values()))

    @property
    def any(self) -> bool:
        """Whether the history lacks a message."""
        return bool(self.addable or self.left)


def find_unsaved(files: Iterable[Transcript], pending: frozenset[str], ask: Ask) -> UnsavedMessages:
    """Compare transcripts with a history; Hermes itself adds messages of `pending` sessions."""
    found = UnsavedMessages()
    seen: set[str] = set()
    for one in sorted(files, key=lambda one: one.complete):  # what was not saved, then histories
        stored = _stored(one.session, ask)
        absent = _absent(one, stored or [])
        if not absent or one.session in seen:
            continue
        seen.add(one.session)
        if why := _obstacle(one, absent, stored, pending):
            found.left[why] = found.left.get(why, 0) + len(absent)
        else:
            found.addable[one.session] = [_row(message, one.at) for message in absent]
    return found


def _absent(one: Transcript, stored: Sequence[StoredMessage]) -> list[Mapping[str, Any]]:
    """The messages of a transcript that are not in the database, in order."""
    left = list(stored)
    absent = []
    for message in one.messages:
        forms = {str(form or "").strip() for form in transcripts.forms(message)}
        when = _time(message)
        same = (
            place
            for place, row in enumerate(left)
            if row.role == message.get("role")
            and row.content.strip() in forms
            and (when is None or abs(row.time - when) <= SAME)
        )
        place = next(same, None)
        if place is None:
            absent.append(message)
        else:
            del left[place]
    return absent


def _obstacle(
    one: Transcript,
    absent: Sequence[Mapping[str, Any]],
    stored: Sequence[StoredMessage] | None,
    pending: frozenset[str],
) -> str:
    """Why the messages cannot be added; empty if they can."""
    if stored is None:
        return NO_SESSION
    if one.session in pending:
        return PENDING
    times = [_time(message) or one.at for message in absent]
    if times != sorted(times) or (stored and stored[-1].time > times[0]):
        return CONTINUED
    if any(message.get("role") not in ROLES for message in absent):
        return UNCLEAR
    if one.complete and len(one.messages) - len(absent) != len(stored):
        return UNCLEAR  # the agent had compressed or changed its history
    if list(one.messages[len(one.messages) - len(absent) :]) != list(absent):
        return UNCLEAR
    calls = " ".join(row.calls for row in stored)
    for message in absent:
        if message.get("tool_calls"):
            calls += json.dumps(message["tool_calls"])
        call = message.get("tool_call_id")
        if message["role"] == "tool" and call and str(call) not in calls:
            return UNCLEAR  # a model rejects a result without its call
    return ""


def _row(message: Mapping[str, Any], at: float) -> dict[str, Value]:
    row = transcripts.columns(message, whole=True)
    row["timestamp"] = _time(message) or at
    if row["content"] is None and message["role"] != "assistant":
        row["content"] = ""
    known = message.get("message_id") or message.get("platform_message_id")
    if isinstance(known, str):
        row["platform_message_id"] = known
    return row


def _time(message: Mapping[str, Any]) -> float | None:
    """The time of a message: seconds, or a text such as 2026-11-16T05:00:00."""
    said = message.get("timestamp")
    if isinstance(said, int | float) and not isinstance(said, bool):
        return float(said)
    if isinstance(said, str):
        try:
            return datetime.fromisoformat(said).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    return None


def _stored(session: str, ask: Ask) -> list[StoredMessage] | None:
    """The messages of a session in the order of their ids; None if there is no such session."""
    key = f"CAST(x'{session.encode('utf-8', 'replace').hex()}' AS TEXT)"
    if not ask(f"SELECT 1 FROM sessions WHERE id = {key}"):
        return None
    rows: list[StoredMessage] = []
    last = -1
    while True:
        found = ask(
            "SELECT id, role, content, timestamp, tool_calls FROM messages "
            f"WHERE session_id = {key} AND id > {last} ORDER BY id LIMIT {MOST_ROWS}"
        )
        for id, role, content, when, calls in found:
            time = float(when) if isinstance(when, int | float) else 0.0
            rows.append(StoredMessage(str(role), str(content or ""), time, str(calls or "")))
            last = id
        if len(found) < MOST_ROWS:
            return rows
        if len(rows) >= MOST:
            raise CouldNotLook(text("a session has more than {MOST:,} messages", MOST=MOST))
