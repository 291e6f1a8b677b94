"""Find rows of a saved write-ahead log that the live database lacks.

The log was saved after it had been deleted. Such rows are in the saved log and not in the saved
database file. A row of the file itself cannot be lost together with the log: if the live database
lacks it, it was deleted.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite import inspector
from hermes_doctor.sqlite.reader import InProcess, Reader

if TYPE_CHECKING:
    from hermes_doctor.system.privileges import Privileges

SECONDS = 2.0
"""Time limit for one query to a database."""
PAGE = inspector.MOST_ROWS
MOST = 40 * PAGE
"""The most rows of a log that are compared."""
_CHUNK = 200
Ask = Callable[[str], Sequence[Sequence[Any]]]
"""Runs one query; raises CouldNotLook if it fails."""


class TooSlow(CouldNotLook):
    """Says that a query took too long."""


class SavedMessage(NamedTuple):
    """What identifies a message; the id is not enough, because Hermes may renumber messages."""

    id: int
    session: str
    role: str
    time: float

    @property
    def key(self) -> tuple[str, str, float]:
        """What identifies the message without its number."""
        return self.session, self.role, self.time


class SavedMessages(NamedTuple):
    """The messages that are only in a saved write-ahead log."""

    messages: tuple[SavedMessage, ...]
    base: int
    """The highest id in the saved file without its log; the log's messages have higher ids."""
    known: frozenset[str]
    """The sessions of these messages that the saved file has without its log."""


class MissingMessages(NamedTuple):
    """The saved messages that a database lacks."""

    own: tuple[SavedMessage, ...] = ()
    """They can be added with their own ids."""
    renumbered: tuple[SavedMessage, ...] = ()
    """Their ids are in use, but they can be appended to their session with new ids."""
    left: tuple[SavedMessage, ...] = ()
    """They cannot be added: their session continued, and Hermes orders messages by id."""
    sessions: tuple[str, ...] = ()
    """The sessions of messages that can be added which the database lacks too."""

    @property
    def addable(self) -> int:
        """How many can be added."""
        return len(self.own) + len(self.renumbered)


def query_function(reader: Reader, seconds: float | None = SECONDS) -> Ask:
    """A function that queries a reader, with a time limit for each query; None for no limit."""

    def ask(sql: str) -> Sequence[Sequence[Any]]:
        answer = reader.ask(sql, seconds)
        if answer.unfinished:
            raise TooSlow(text("reading takes longer than {seconds:g} s", seconds=seconds))
        if answer.error:
            raise CouldNotLook(text("SQLite cannot read it ({error})", error=answer.error))
        return answer.rows

    return ask


@contextlib.contextmanager
def open_saved(
    path: Path, seconds: float | None = SECONDS, user: Privileges | None = None
) -> Iterator[tuple[Ask, Ask]]:
    """Functions that query a saved database with its log, and the file without the log.

    With `user`, the files are opened with his rights.
    """
    with (
        contextlib.closing(InProcess(path, inspector.LEFTOVER_LOG, user)) as whole,
        contextlib.closing(InProcess(path, inspector.NOT_IN_USE, user)) as file,
    ):
        yield query_function(whole, seconds), query_function(file, seconds)


def read_messages(path: Path, user: Privileges | None = None) -> SavedMessages:
    """Read the messages that only the log of a saved message history has."""
    with open_saved(path, user=user) as (whole, file):
        base = 0
        with contextlib.suppress(CouldNotLook):  # the table itself may be only in the log
            [[last]] = file("SELECT max(id) FROM messages")
            base = last if isinstance(last, int) else 0
        found = tuple(_after(whole, base))
        known: set[str] = set()
        with contextlib.suppress(CouldNotLook):
            known = _sessions({one.session for one in found}, file)
    return SavedMessages(found, base, frozenset(known))


def read_all_messages(ask: Ask) -> SavedMessages:
    """Read all messages of a database, as if its log had them all."""
    return SavedMessages(tuple(_after(ask, 0)), 0, frozenset())


def count_missing_tasks(path: Path, live: Ask) -> int:
    """Count the tasks that only the log of a saved board has and the live board lacks."""
    with open_saved(path) as (whole, file):
        try:
            before = _tasks(file)
        except CouldNotLook:  # the table itself may be only in the log
            before = set()
        added = _tasks(whole) - before
    return len(added - _tasks(live)) if added else 0


def _tasks(ask: Ask) -> set[str]:
    found: set[str] = set()
    for start in range(0, MOST, PAGE):
        rows = ask(f"SELECT id FROM tasks ORDER BY rowid LIMIT {PAGE} OFFSET {start}")
        found |= {str(row[0]) for row in rows}
        if len(rows) < PAGE:
            return found
    raise CouldNotLook(text("it has more than {MOST:,} tasks", MOST=MOST))


def find_missing_messages(
    saved: SavedMessages, ask: Ask, wanted_since: Callable[[], float]
) -> MissingMessages:
    """Find the saved messages that a database lacks, and how they can be added.

    `wanted_since` returns the time before which Hermes deletes sessions itself. A session that is
    in the saved file without its log and not in the database was deleted: it is not counted.
    """
    numbered = _numbered([one.id for one in saved.messages], ask)
    missing = [one for one in saved.messages if numbered.get(one.id) != one]
    if not missing:
        return MissingMessages()
    there = _sessions({one.session for one in missing}, ask)
    missing = [one for one in missing if one.session in there or one.session not in saved.known]
    later = list(_after(ask, saved.base, {one.session for one in missing}))
    mine = set(saved.messages)
    moved = Counter(one.key for one in later if one not in mine)
    absent: dict[str, list[SavedMessage]] = {}
    for one in missing:
        if moved[one.key] > 0:  # the database has it with another id
            moved[one.key] -= 1
        else:
            absent.setdefault(one.session, []).append(one)
    gone = [name for name in absent if name not in there]
    limit = wanted_since() if gone else 0.0
    for name in gone:
        if max(one.time for one in absent[name]) < limit:
            del absent[name]
    return _placed(absent, later, numbered, there)


def _placed(
    absent: dict[str, list[SavedMessage]],
    later: Sequence[SavedMessage],
    numbered: dict[int, SavedMessage],
    there: set[str],
) -> MissingMessages:
    """Keep a session together: all of its messages are added in the same way, or none."""
    own: list[SavedMessage] = []
    renumbered: list[SavedMessage] = []
    left: list[SavedMessage] = []
    for name, lost in absent.items():
        others = [one for one in later if one.session == name]
        free = not any(one.id in numbered for one in lost)
        if free and _in_order(sorted([*others, *lost]), lost):
            own += lost
        elif _in_order([*others, *lost], lost):
            renumbered += lost
        else:
            left += lost
    added = {one.session for one in (*own, *renumbered)}
    new = tuple(sorted(added - there))
    return MissingMessages(tuple(own), tuple(renumbered), tuple(left), new)


def _in_order(merged: Sequence[SavedMessage], lost: Sequence[SavedMessage]) -> bool:
    """Whether times ascend between each added message and its existing neighbours."""
    added = set(lost)
    return all(
        one.time <= two.time for one, two in pairwise(merged) if (one in added) != (two in added)
    )


def _after(ask: Ask, last: int, sessions: Iterable[str] | None = None) -> Iterator[SavedMessage]:
    """The messages with higher ids, of these sessions or of all."""
    only = "" if sessions is None else f" AND session_id IN ({_listed(sorted(sessions))})"
    for _ in range(0, MOST, PAGE):
        rows = ask(
            "SELECT id, session_id, role, timestamp FROM messages "
            f"WHERE id > {last}{only} ORDER BY id LIMIT {PAGE}"
        )
        for row in rows:
            yield _message(row)
        if len(rows) < PAGE:
            return
        last = rows[-1][0]
    raise CouldNotLook(text("there are more than {MOST:,} messages to compare", MOST=MOST))


def _numbered(numbers: Sequence[int], ask: Ask) -> dict[int, SavedMessage]:
    found: dict[int, SavedMessage] = {}
    for start in range(0, len(numbers), _CHUNK):
        listed = ", ".join(map(str, numbers[start : start + _CHUNK]))
        sql = f"SELECT id, session_id, role, timestamp FROM messages WHERE id IN ({listed})"
        found |= {row[0]: _message(row) for row in ask(sql)}
    return found


def _message(row: Sequence[Any]) -> SavedMessage:
    id, session, role, time = row
    return SavedMessage(id, str(session), str(role), time if isinstance(time, int | float) else 0.0)


def _sessions(names: Iterable[str], ask: Ask) -> set[str]:
    """The sessions among `names` that a database has."""
    wanted, found = sorted(names), set[str]()
    for start in range(0, len(wanted), _CHUNK):
        listed = _listed(wanted[start : start + _CHUNK])
        found |= {str(row[0]) for row in ask(f"SELECT id FROM sessions WHERE id IN ({listed})")}
    return found


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"CAST(x'{one.encode('utf-8', 'replace').hex()}' AS TEXT)" for one in names)
