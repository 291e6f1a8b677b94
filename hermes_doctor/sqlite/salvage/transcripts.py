"""Restore lost messages from session transcripts, which gateways wrote up to release 0.14.

`sessions/ID.jsonl` has one message per line as the gateway wrote it, `sessions/session_ID.json` is
one document that the agent wrote. Neither has message ids, so a lost message is found by its
neighbours.

A turn is first written into the database, message by message. Then the gateway writes it into the
transcript. In the first turn it writes a row about the session before it, which goes into the
database only then: so this row is last in the database and first in the transcript.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, read
from hermes_doctor.sqlite.cells import Value
from hermes_doctor.sqlite.salvage.older_copies import OlderFile

LIMIT = 64 * MEGABYTE
Message = Mapping[str, Any]
PARTS = "\0json:"
"""The prefix with which the database marks a message of several parts stored as JSON."""
ABOUT = "session_meta"
"""The role of the row about the session."""
ROLES = frozenset({"user", "assistant", "tool", ABOUT})
PLAIN = ("tool_call_id", "tool_name")
THOUGHT = ("reasoning", "reasoning_content")
STRUCTURED = ("reasoning_details", "codex_reasoning_items", "codex_message_items")
"""Columns that only messages of the assistant have."""


@dataclass(frozen=True)
class SessionMessage:
    """One message of a session in the database; its role is None if it is lost."""

    id: int
    role: str | None = None
    content: Value = None


class Transcripts:
    """The transcripts among the sources, by session."""

    def __init__(self, sources: Sequence[OlderFile]) -> None:
        self.paths: dict[str, list[OlderFile]] = {}
        for source in sources:
            stem, kind = source.path.stem, source.path.suffix
            if kind == ".jsonl":
                self.paths.setdefault(stem, []).append(source)
            elif kind == ".json" and stem.startswith("session_"):
                self.paths.setdefault(stem.removeprefix("session_"), []).append(source)

    def lost(
        self, session: str, entries: Sequence[SessionMessage]
    ) -> tuple[dict[int, dict[str, Value]], bool]:
        """By id: the lost messages among `entries`, which are in order.

        Also returns whether they are exact: the agent's document shortens its answers.
        """
        for source in self.paths.get(session, ()):
            messages = _messages(source)
            placed = max((between(entries, order) for order in _orders(messages)), key=len)
            if placed:
                exact = source.path.suffix == ".jsonl"
                whole = any(str(entry.content).startswith(PARTS) for entry in entries)
                return {
                    number: columns(message, whole) for number, message in placed.items()
                }, exact
        return {}, False


def _orders(messages: Sequence[Message]) -> list[list[Message]]:
    """The orders that the messages can have in the database, the most likely first."""
    about = [message for message in messages if message["role"] == ABOUT]
    spoken = [message for message in messages if message["role"] != ABOUT]
    if len(about) != 1:
        return [spoken]
    when = about[0].get("timestamp")
    turn = sum(1 for _ in itertools.takewhile(lambda entry: entry.get("timestamp") == when, spoken))
    last, first = [*spoken[:turn], *about, *spoken[turn:]], [*about, *spoken]
    by_agent = any("finish_reason" in entry for entry in spoken[:turn])
    return [last, first] if by_agent else [first, last]


def between(entries: Sequence[SessionMessage], messages: Sequence[Message]) -> dict[int, Message]:
    """Find the messages of a transcript at the positions of the lost ones.

    Both lists are split at messages that occur only once. A section is used if both lists have the
    same number of messages in it, and the messages that are not lost are equal.
    """
    placed: dict[int, Message] = {}
    cuts = [(-1, -1), *_cuts(entries, messages), (len(entries), len(messages))]
    for (a, b), (c, d) in itertools.pairwise(cuts):
        mine, theirs = entries[a + 1 : c], messages[b + 1 : d]
        if len(mine) == len(theirs) and all(map(_agree, mine, theirs)):
            pairs = zip(mine, theirs, strict=True)
            placed |= {entry.id: message for entry, message in pairs if entry.role is None}
    return placed


def _cuts(
    entries: Sequence[SessionMessage], messages: Sequence[Message]
) -> Iterator[tuple[int, int]]:
    """The positions of messages that occur once in both lists and in the same order."""
    places: dict[tuple[str, Value], list[int]] = {}
    for place, message in enumerate(messages):
        for form in forms(message):
            places.setdefault((message["role"], form), []).append(place)
    counts = Counter((entry.role, entry.content or "") for entry in entries)
    last = -1
    for place, entry in enumerate(entries):
        key = (entry.role or "", entry.content or "")
        [there] = places.get(key, []) if len(places.get(key, ())) == 1 else [-1]
        if counts[key] == 1 and there > last:
            last = there
            yield place, there


def _agree(entry: SessionMessage, message: Message) -> bool:
    return entry.role is None or (
        message["role"] == entry.role and (entry.content or "") in forms(message)
    )


def _messages(source: OlderFile) -> list[Message]:
    """The messages of a transcript; damaged lines are skipped."""
    try:
        data, _ = read(source.path, LIMIT)
    except (CouldNotLook, OSError):
        return []
    if source.path.suffix == ".jsonl":
        entries: Iterable[Any] = map(_parsed, data.splitlines())
    else:
        document = _parsed(data)
        entries = document.get("messages") or () if isinstance(document, dict) else ()
    return [
        message for message in entries if isinstance(message, dict) and message.get("role") in ROLES
    ]


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def forms(message: Message) -> tuple[Value, ...]:
    """The forms in which the database can store the content of a message."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return (content or "",)
    return (_spoken(content) or "", PARTS + json.dumps(content))


def _spoken(content: Any) -> str | None:
    """What an agent keeps of a message in parts: its text, and a mark for each image."""
    summary = ""
    parts = content
    if isinstance(content, dict):
        summary = str(content.get("text_summary") or "")
        parts = content.get("content")
    words = []
    for part in parts if isinstance(parts, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            words.append(str(part.get("text", "")))
        elif kind in ("image", "image_url", "input_image") and isinstance(content, list):
            words.append("[screenshot]")
    return summary or "\n".join(words) or None


def columns(message: Message, whole: bool) -> dict[str, Value]:
    """The columns of a message; with `whole`, its parts are stored as JSON."""
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        content = PARTS + json.dumps(content) if whole else _spoken(content)
    values: dict[str, Value] = {"role": message["role"], "content": content}
    thinks = message["role"] == "assistant"
    for name in (*PLAIN, "finish_reason", *(THOUGHT if thinks else ())):
        if isinstance(message.get(name), str):
            values[name] = message[name]
    for name in ("tool_calls", *(STRUCTURED if thinks else ())):
        if message.get(name):
            values[name] = json.dumps(message[name])
    return values
