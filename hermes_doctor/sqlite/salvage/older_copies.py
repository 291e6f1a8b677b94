"""Look up rows in other files: sound older copies of the damaged database, and transcripts.

Gateways wrote session transcripts up to release 0.14. `sessions/ID.jsonl` has one message per line
as the gateway wrote it, `sessions/session_ID.json` is one document that the agent wrote. Neither
has message ids, so a lost message is found by its neighbours.

A turn is first written into the database, message by message. Then the gateway writes it into the
transcript. In the first turn it writes a row about the session before it, which goes into the
database only then: so this row is last in the database and first in the transcript.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import MEGABYTE, read, snapshot
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.examine.soundness import address
from hermes_doctor.sqlite.files import sidecars
from hermes_doctor.sqlite.pages import LOST, LostValue, ReplacedText, Row, Value
from hermes_doctor.sqlite.salvage.layouts import Layout, layout_of


@dataclass(frozen=True)
class OlderFile:
    """Another file that may have rows, and its name for the user."""

    path: Path
    name: str
    """How the account names it: `state-snapshots/20260101-0000/state.db`."""
    when: float = 0.0
    """When it was made; the newest is used first."""


FoundRow = tuple[dict[str, Value], str]
"""The values of a row of another database, and the name of that file."""


class OlderCopies:
    """The databases among the sources, newest first; they are opened when first needed."""

    def __init__(self, sources: Sequence[OlderFile], scratch_path: Path) -> None:
        """`scratch_path` is a private path; copies get names that start with it."""
        self.scratch_path = scratch_path
        self._copies: list[Path] = []
        databases = [s for s in sources if s.path.suffix not in (".json", ".jsonl")]
        self.sources = sorted(databases, key=lambda source: -source.when)
        self._open: list[tuple[OlderFile, sqlite3.Connection]] | None = None
        self.refused: list[str] = []
        self._layouts: dict[tuple[int, str], Layout] = {}

    def _databases(self) -> list[tuple[OlderFile, sqlite3.Connection]]:
        if self._open is None:
            self._open = []
            for source in self.sources:
                database = self._opened(source.path)
                if database is None:
                    self.refused.append(source.name)
                else:
                    self._open.append((source, database))
        return self._open

    def close(self) -> None:
        """Close all databases and delete the copies."""
        for _, database in self._open or ():
            database.close()
        for copy in self._copies:
            for path in (copy, *sidecars(copy)):
                disk.remove(path)

    def _opened(self, path: Path) -> sqlite3.Connection | None:
        """Open a database without changing it; None unless SQLite finds it sound.

        A database with a write-ahead log is copied first, because SQLite writes while reading the
        two. If the copy is damaged by a foreign log, the file is opened without the log.
        """
        if snapshot(path).kind != "file":
            return None
        log = path.with_name(path.name + "-wal")
        if snapshot(log).kind == "file" and snapshot(log).size:
            pair = self._copied(path, log)
            if pair is not None:
                return pair
        return _sound(address(path, "&immutable=1"))

    def _copied(self, path: Path, log: Path) -> sqlite3.Connection | None:
        """A connection to a copy of a database and its log."""
        copy = self.scratch_path.with_name(f"{self.scratch_path.name}-other-{len(self._copies)}")
        self._copies.append(copy)
        try:
            for source, target in ((path, copy), (log, copy.with_name(copy.name + "-wal"))):
                with disk.new_file(target) as fd:
                    disk.copy(source, fd)
        except OSError:  # the disk is full
            return None
        return _sound(f"file:{quote(str(copy))}")

    def rowids(self, layout: Layout) -> Iterator[int]:
        """The rowids of a table in all databases."""
        seen: set[int] = set()
        for place, (_, database) in enumerate(self._databases()):
            if self._columns(place, layout) is None:
                continue
            with contextlib.suppress(sqlite3.Error):
                for (rowid,) in database.execute(f"SELECT rowid FROM {quote_name(layout.name)}"):
                    if rowid not in seen:
                        seen.add(rowid)
                        yield rowid

    def row(self, layout: Layout, rowid: int, facts: Mapping[str, Value]) -> FoundRow | None:
        """The newest row with this rowid or key that does not contradict the known values."""
        keys = [column.name for column in layout.columns if column.key]
        for place, (source, database) in enumerate(self._databases()):
            columns = self._columns(place, layout)
            if columns is None:
                continue
            if layout.rowid_column is not None:
                where, values = "rowid = ?", [rowid]
            elif keys and all(facts.get(key) is not None for key in keys):
                where = " AND ".join(f"{quote_name(key)} = ?" for key in keys)
                values = [facts[key] for key in keys]  # type: ignore[misc]
            else:
                continue
            row = _one(database, layout.name, columns, where, values)
            if row is None or any(
                column in row and value is not None and row[column] != value
                for column, value in facts.items()
            ):
                continue
            return row, source.name
        return None

    def complete(self, layout: Layout, row: Row) -> str:
        """Fill lost values from a row whose other values are equal; return that source's name."""
        facts: dict[str, Value] = {
            column.name: value
            for column, value in zip(layout.columns, row.values, strict=False)
            if not isinstance(value, LostValue | ReplacedText) and value is not None
        }
        older_row = self.row(layout, row.rowid, facts)
        if older_row is None:
            return ""
        values, source = older_row
        for place, value in enumerate(row.values):
            if value is LOST and layout.columns[place].name in values:
                row.values[place] = values[layout.columns[place].name]
        return "" if LOST in row.values else source

    def _columns(self, place: int, layout: Layout) -> list[str] | None:
        """The columns that a table has in both databases."""
        key = (place, layout.name)
        if key not in self._layouts:
            _, database = self._databases()[place]
            self._layouts[key] = layout_of(database, layout.name, layout.sql)
        names = {name.lower() for name in self._layouts[key].names}
        return [name for name in layout.names if name.lower() in names] if names else None


def _one(
    database: sqlite3.Connection, table: str, columns: list[str], where: str, values: list[Any]
) -> dict[str, Value] | None:
    sql = f"SELECT {', '.join(map(quote_name, columns))} FROM {quote_name(table)} WHERE {where}"
    try:
        row = database.execute(sql, values).fetchone()
    except (sqlite3.Error, OverflowError):
        return None
    return dict(zip(columns, row, strict=True)) if row else None


def _sound(address: str) -> sqlite3.Connection | None:
    """A connection to a database that passes SQLite's quick_check; else None."""
    database = None
    try:
        database = sqlite3.connect(address, uri=True, check_same_thread=False)
        database.execute("PRAGMA trusted_schema=OFF")
        if database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
            return database
    except sqlite3.Error:
        pass
    if database is not None:
        database.close()
    return None


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
                return {id: columns(message, whole) for id, message in placed.items()}, exact
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
