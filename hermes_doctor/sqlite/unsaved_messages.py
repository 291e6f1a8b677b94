"""Find messages in transcripts that the message history lacks, and decide which can be added.

Hermes orders the messages of a session by id. So a message is added only at the end of its session,
and only if no newer message is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.sqlite.pages import Value
from hermes_doctor.sqlite.query_process import MOST_ROWS
from hermes_doctor.sqlite.salvage import older_copies
from hermes_doctor.sqlite.saved_rows import Ask

ROLES = frozenset({"user", "assistant", "tool"})
LATER, EARLIER = 900.0, 1.0
"""Seconds by which the row of a message may be later or earlier than the message: Hermes may have
added it later. The same words some minutes before are another message."""
STARTS = 200
"""How many rows are tried as the start of messages without a time, the newest."""
ANY_SESSION = "*"
"""Among pending sessions: it is unknown to which sessions Hermes adds messages."""
MOST = 40 * MOST_ROWS
"""The most messages of a session that are compared."""
NO_SESSION = "their session is not in state.db"
CONTINUED = "the conversation continued without them"
PENDING = "Hermes adds messages of the same session at its next start"
UNCLEAR = "the transcript does not continue what state.db has"


class Transcript(NamedTuple):
    """The messages of one session in a file."""

    path: Path
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
    calls: str = ""
    call: str = ""
    """The id of the tool call that it answers."""
    known_as: str = ""
    """Its id on the platform."""


@dataclass
class UnsavedMessages:
    """The messages of transcripts that a history lacks."""

    addable: dict[str, list[dict[str, Value]]] = field(default_factory=dict)
    """By session: the columns of messages that can be added at its end, in order."""
    sources: set[Path] = field(default_factory=set)
    """The files with these messages."""
    left_in: dict[Path, tuple[str, int]] = field(default_factory=dict)
    """By file: why its messages cannot be added, and how many these are."""
    unread: list[tuple[Path, str]] = field(default_factory=list)
    """The files that could not be compared, each with the reason."""

    @property
    def count(self) -> int:
        """How many messages can be added."""
        return sum(map(len, self.addable.values()))

    @property
    def left(self) -> dict[str, int]:
        """By reason: how many messages cannot be added."""
        counts: dict[str, int] = {}
        for why, number in self.left_in.values():
            counts[why] = counts.get(why, 0) + number
        return counts


def find_unsaved(files: Iterable[Transcript], pending: frozenset[str], ask: Ask) -> UnsavedMessages:
    """Compare transcripts with a history; Hermes itself adds messages of `pending` sessions.

    Each file is compared with what the history will have after the files before it: what was not
    saved, oldest first, then whole histories.
    """
    unsaved = UnsavedMessages()
    history: dict[str, list[StoredMessage] | None] = {}
    for transcript in sorted(files, key=lambda transcript: (transcript.complete, transcript.at)):
        if transcript.session not in history:
            history[transcript.session] = _stored(transcript.session, ask)
        stored = history[transcript.session]
        absent = _absent(transcript, stored or [])
        if not absent:
            continue
        if why := _obstacle(transcript, absent, stored, pending):
            unsaved.left_in[transcript.path] = why, len(absent)
            continue
        rows = [_row(message, transcript.at) for message in absent]
        unsaved.addable.setdefault(transcript.session, []).extend(rows)
        unsaved.sources.add(transcript.path)
        assert stored is not None
        stored += map(_as_stored, rows)
    return unsaved


def _absent(transcript: Transcript, stored: Sequence[StoredMessage]) -> list[Mapping[str, Any]]:
    """The messages that are not in the database, in order; each row accounts for one message."""
    timed = bool(transcript.messages) and _time(transcript.messages[0]) is not None
    place = 0 if timed or transcript.complete else _start(transcript.messages, stored)
    absent = []
    for message in transcript.messages:
        same = (n for n in range(place, len(stored)) if _is_same(message, stored[n]))
        match = next(same, None)
        if match is None:
            absent.append(message)
        else:
            place = match + 1
    return absent


def _start(messages: Sequence[Mapping[str, Any]], stored: Sequence[StoredMessage]) -> int:
    """Where messages without times start in the database: where most of them follow each other.

    Among equal places it is the last one; if there is none, the end.
    """
    best, most = len(stored), 0
    for start in range(len(stored) - 1, max(-1, len(stored) - STARTS - len(messages)), -1):
        pairs = zip(messages, stored[start:], strict=False)
        run = sum(1 for _ in takewhile(lambda pair: _is_same(*pair), pairs))
        if run > most:
            best, most = start, run
    return best


def _is_same(message: Mapping[str, Any], row: StoredMessage) -> bool:
    """Whether a row is this message: by its id on the platform, else by content and time."""
    if row.role != message.get("role"):
        return False
    known = _known_as(message)
    if known and row.known_as:
        return known == row.known_as
    if row.call != str(message.get("tool_call_id") or ""):
        return False
    if _call_ids(row.calls) != _call_ids(json.dumps(message.get("tool_calls") or [])):
        return False
    if row.content.strip() not in {str(form or "").strip() for form in older_copies.forms(message)}:
        return False
    when = _time(message)
    return when is None or -EARLIER <= row.time - when <= LATER


def _call_ids(calls: str) -> list[object]:
    """The ids of tool calls; the calls themselves if they have no ids."""
    try:
        parsed = json.loads(calls) if calls else []
    except (ValueError, RecursionError):
        return [calls]
    if not isinstance(parsed, list):
        return [parsed]
    return [call.get("id") or call if isinstance(call, dict) else call for call in parsed]


def _obstacle(
    transcript: Transcript,
    absent: Sequence[Mapping[str, Any]],
    stored: Sequence[StoredMessage] | None,
    pending: frozenset[str],
) -> str:
    """Why the messages cannot be added; empty if they can."""
    if stored is None:
        return NO_SESSION
    if transcript.session in pending or ANY_SESSION in pending:
        return PENDING
    times = [_time(message) or transcript.at for message in absent]
    if times != sorted(times) or (stored and stored[-1].time > times[0]):
        return CONTINUED
    if any(message.get("role") not in ROLES for message in absent):
        return UNCLEAR
    if transcript.complete and len(transcript.messages) - len(absent) != len(stored):
        return UNCLEAR  # the agent had compressed or changed its history
    if list(transcript.messages[len(transcript.messages) - len(absent) :]) != list(absent):
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
    row = older_copies.columns(message, whole=True)
    row["timestamp"] = _time(message) or at
    if row["content"] is None and message["role"] != "assistant":
        row["content"] = ""
    if known := _known_as(message):
        row["platform_message_id"] = known
    return row


def _as_stored(row: Mapping[str, Value]) -> StoredMessage:
    """A row as it will be read from the database."""
    time = row["timestamp"]
    return StoredMessage(
        str(row["role"]),
        str(row["content"] or ""),
        float(time) if isinstance(time, int | float) else 0.0,
        str(row.get("tool_calls") or ""),
        str(row.get("tool_call_id") or ""),
        str(row.get("platform_message_id") or ""),
    )


def _known_as(message: Mapping[str, Any]) -> str:
    """The id of a message on its platform."""
    known = message.get("message_id") or message.get("platform_message_id")
    return known if isinstance(known, str) else ""


def _time(message: Mapping[str, Any]) -> float | None:
    """The time of a message: seconds, or a text such as 2026-11-16T05:00:00."""
    stamp = message.get("timestamp")
    if isinstance(stamp, int | float) and not isinstance(stamp, bool):
        return float(stamp)
    if isinstance(stamp, str):
        try:
            return datetime.fromisoformat(stamp).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    return None


def _stored(session: str, ask: Ask) -> list[StoredMessage] | None:
    """The messages of a session in the order of their ids; None if there is no such session."""
    key = f"CAST(x'{session.encode('utf-8', 'replace').hex()}' AS TEXT)"
    if not ask(f"SELECT 1 FROM sessions WHERE id = {key}"):
        return None
    columns = {row[1] for row in ask("PRAGMA table_info(messages)")}
    more = ("tool_calls", "tool_call_id", "platform_message_id")
    wanted = ", ".join(name if name in columns else "NULL" for name in more)
    rows: list[StoredMessage] = []
    last = -1
    while True:
        page = ask(
            f"SELECT id, role, content, timestamp, {wanted} FROM messages "
            f"WHERE session_id = {key} AND id > {last} ORDER BY id LIMIT {MOST_ROWS}"
        )
        for id, role, content, when, *others in page:
            time = float(when) if isinstance(when, int | float) else 0.0
            rest = (str(other or "") for other in others)
            rows.append(StoredMessage(str(role), str(content or ""), time, *rest))
            last = id
        if len(page) < MOST_ROWS:
            return rows
        if len(rows) >= MOST:
            raise CouldNotLook("a session has more than {MOST:,} messages", MOST=MOST)
