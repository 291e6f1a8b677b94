"""Transcripts of sessions: up to release 0.14 a gateway wrote each message there a second time.

`sessions/ID.jsonl` has a message a line as the gateway wrote it, `sessions/session_ID.json` has
them in one document of the agent's. Neither has the numbers of the messages, so a lost one is
found by those around it.

A turn is written into the database first, message by message. Then the gateway writes it into the
transcript, in the first turn behind a row about the session itself, which goes into the database
only now: it comes last there and first here.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite.records import Value
from hermes_doctor.sqlite.salvage.others import Source
from hermes_doctor.system.files import MEGABYTE, read

LIMIT = 64 * MEGABYTE
Message = Mapping[str, Any]
PARTS = "\0json:"
"""How the database marks a message in parts, where it is not kept as its words alone."""
ABOUT = "session_meta"
"""The role of the row about the session."""
ROLES = frozenset({"user", "assistant", "tool", ABOUT})
PLAIN = ("tool_call_id", "tool_name")
THOUGHT = ("reasoning", "reasoning_content")
STRUCTURED = ("reasoning_details", "codex_reasoning_items", "codex_message_items")
"""What only an assistant has."""


@dataclass(frozen=True)
class Entry:
    """One message of a session as the database has it; without a role when it is lost."""

    id: int
    role: str | None = None
    content: Value = None


class Transcripts:
    """The transcripts among the further sources, by session."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.paths: dict[str, list[Source]] = {}
        for source in sources:
            stem, kind = source.path.stem, source.path.suffix
            if kind == ".jsonl":
                self.paths.setdefault(stem, []).append(source)
            elif kind == ".json" and stem.startswith("session_"):
                self.paths.setdefault(stem.removeprefix("session_"), []).append(source)

    def lost(
        self, session: str, entries: Sequence[Entry]
    ) -> tuple[dict[int, dict[str, Value]], bool]:
        """By number: the lost messages among `entries`, which are in their order.

        And whether they are as the database had them: the agent's document trims its answers.
        """
        for source in self.paths.get(session, ()):
            messages = _messages(source)
            found = max((between(entries, order) for order in _orders(messages)), key=len)
            if found:
                exact = source.path.suffix == ".jsonl"
                whole = any(str(entry.content).startswith(PARTS) for entry in entries)
                return {number: _columns(one, whole) for number, one in found.items()}, exact
        return {}, False


def _orders(messages: Sequence[Message]) -> list[list[Message]]:
    """The orders in which they can lie in the database, the likeliest first."""
    about = [message for message in messages if message["role"] == ABOUT]
    spoken = [message for message in messages if message["role"] != ABOUT]
    if len(about) != 1:
        return [spoken]
    when = about[0].get("timestamp")
    turn = sum(1 for _ in itertools.takewhile(lambda one: one.get("timestamp") == when, spoken))
    last, first = [*spoken[:turn], *about, *spoken[turn:]], [*about, *spoken]
    by_agent = any("finish_reason" in one for one in spoken[:turn])
    return [last, first] if by_agent else [first, last]


def between(entries: Sequence[Entry], messages: Sequence[Message]) -> dict[int, Message]:
    """The messages that stand where the lost ones must have stood.

    Both are cut at the messages that cannot be mistaken for others, which are those that no other
    is like. A piece counts where both have as many in it, and what is left of it is the same.
    """
    found: dict[int, Message] = {}
    cuts = [(-1, -1), *_cuts(entries, messages), (len(entries), len(messages))]
    for (a, b), (c, d) in itertools.pairwise(cuts):
        mine, theirs = entries[a + 1 : c], messages[b + 1 : d]
        if len(mine) == len(theirs) and all(map(_agree, mine, theirs)):
            pairs = zip(mine, theirs, strict=True)
            found |= {entry.id: message for entry, message in pairs if entry.role is None}
    return found


def _cuts(entries: Sequence[Entry], messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """The places of messages that stand once in both, as far as they are in the same order."""
    places: dict[tuple[str, Value], list[int]] = {}
    for place, message in enumerate(messages):
        for form in _forms(message):
            places.setdefault((message["role"], form), []).append(place)
    counts = Counter((entry.role, entry.content or "") for entry in entries)
    last = -1
    for place, entry in enumerate(entries):
        key = (entry.role or "", entry.content or "")
        [there] = places.get(key, []) if len(places.get(key, ())) == 1 else [-1]
        if counts[key] == 1 and there > last:
            last = there
            yield place, there


def _agree(entry: Entry, message: Message) -> bool:
    return entry.role is None or (
        message["role"] == entry.role and (entry.content or "") in _forms(message)
    )


def _messages(source: Source) -> list[Message]:
    """The spoken messages of a transcript; lines that are damaged are left out."""
    try:
        data, _ = read(source.path, LIMIT)
    except (CouldNotLook, OSError):
        return []
    if source.path.suffix == ".jsonl":
        found: Iterable[Any] = map(_parsed, data.splitlines())
    else:
        document = _parsed(data)
        found = document.get("messages") or () if isinstance(document, dict) else ()
    return [
        message for message in found if isinstance(message, dict) and message.get("role") in ROLES
    ]


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _forms(message: Message) -> tuple[Value, ...]:
    """The contents that the database can have of a message."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return (content or "",)
    return (_spoken(content) or "", PARTS + json.dumps(content))


def _spoken(content: Any) -> str | None:
    """What an agent keeps of a message in parts: its words, and that there was a picture."""
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


def _columns(message: Message, whole: bool) -> dict[str, Value]:
    """The columns that a transcript tells of; parts `whole` where the session has them so."""
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
