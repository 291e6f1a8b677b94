"""Transcripts of sessions: up to release 0.14 a gateway wrote each message there a second time.

`sessions/ID.jsonl` has a message a line, `sessions/session_ID.json` has them in one document.
Neither has the numbers of the messages, so a lost one is found between its neighbours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermes_doctor.files import MEGABYTE, read
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite.records import Value
from hermes_doctor.sqlite.salvage.others import Source

LIMIT = 64 * MEGABYTE
SPOKEN = frozenset({"user", "assistant", "tool"})
STRUCTURED = ("reasoning_details", "codex_reasoning_items", "codex_message_items")
PLAIN = ("tool_call_id", "tool_name", "finish_reason", "reasoning", "reasoning_content")


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

    def lost(self, session: str, entries: Sequence[Entry]) -> dict[int, dict[str, Value]]:
        """By number: the lost messages among `entries`, which are in their order."""
        for source in self.paths.get(session, ()):
            messages = _messages(source)
            found = between(entries, messages)
            if found:
                return {number: _columns(message) for number, message in found.items()}
        return {}


def between(
    entries: Sequence[Entry], messages: Sequence[Mapping[str, Any]]
) -> dict[int, Mapping[str, Any]]:
    """The messages that stand where the lost ones must have stood.

    Only where as many are missing between two neighbours as the transcript has between them.
    """
    found: dict[int, Mapping[str, Any]] = {}
    missing: list[int] = []
    after = 0
    for entry in [*entries, None]:
        if entry is not None and entry.role is None:
            missing.append(entry.id)
            continue
        if entry is None:
            at = len(messages)
        else:
            at = _find(entry, messages, after)
            if at < 0:
                return {}  # the two do not tell of the same talk
        if missing and len(missing) == at - after:
            found.update(zip(missing, messages[after:at], strict=True))
        missing = []
        after = at + 1
    return found


def _find(entry: Entry, messages: Sequence[Mapping[str, Any]], after: int) -> int:
    for at in range(after, len(messages)):
        message = messages[at]
        if message["role"] == entry.role and (_content(message) or "") == (entry.content or ""):
            return at
    return -1


def _messages(source: Source) -> list[Mapping[str, Any]]:
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
        message for message in found if isinstance(message, dict) and message.get("role") in SPOKEN
    ]


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _content(message: Mapping[str, Any]) -> Value:
    """The content as Hermes stores it: parts as JSON behind a zero byte."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content
    return "\0json:" + json.dumps(content)


def _columns(message: Mapping[str, Any]) -> dict[str, Value]:
    """The columns that a transcript tells of."""
    values: dict[str, Value] = {"role": message["role"], "content": _content(message)}
    for name in PLAIN:
        if isinstance(message.get(name), str):
            values[name] = message[name]
    for name in ("tool_calls", *STRUCTURED):
        if message.get(name):
            values[name] = json.dumps(message[name])
    return values
