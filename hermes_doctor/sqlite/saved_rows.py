"""Find rows of a saved write-ahead log that the live database lacks.

The log was saved after it had been deleted. Such rows are in the saved log and not in the saved
database file. A row of the file itself cannot be lost together with the log: if the live database
lacks it, it was deleted.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import privileges
from hermes_doctor.core.system.files import MEGABYTE, size, snapshot
from hermes_doctor.core.system.open_files import open_owned
from hermes_doctor.sqlite import header, log_ancestry, query_process, wal
from hermes_doctor.sqlite.reader import InProcess, Reader

if TYPE_CHECKING:
    from hermes_doctor.core.system.privileges import Privileges

SECONDS = 2.0
"""Time limit for one query to a database."""
PAGE = query_process.MOST_ROWS
MOST = 40 * PAGE
"""The most rows of a log that are compared."""
_CHUNK = 200
MESSAGE_COLUMNS = ("id", "session_id", "role", "timestamp")
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
            raise TooSlow("reading takes longer than {seconds:g} s", seconds=seconds)
        if answer.error:
            raise CouldNotLook("SQLite cannot read it ({error})", error=answer.error)
        return answer.rows

    return ask


@contextlib.contextmanager
def open_saved(
    path: Path, seconds: float | None = SECONDS, user: Privileges | None = None
) -> Iterator[tuple[Ask, Ask]]:
    """Functions that query a saved database with and without its log, with the rights of `user`."""
    with (
        contextlib.closing(InProcess(path, query_process.LEFTOVER_LOG, user)) as whole,
        contextlib.closing(InProcess(path, query_process.NOT_IN_USE, user)) as file,
    ):
        yield query_function(whole, seconds), query_function(file, seconds)


def read_messages(path: Path, user: Privileges | None = None) -> SavedMessages:
    """Read the messages that only the log of a saved message history has."""
    with open_saved(path, user=user) as (whole, file):
        base = 0
        with contextlib.suppress(CouldNotLook):  # the table itself may be only in the log
            [[last]] = file("SELECT max(id) FROM messages")
            base = last if isinstance(last, int) else 0
        messages = tuple(_after(whole, base))
        known: set[str] = set()
        with contextlib.suppress(CouldNotLook):
            known = sessions_among({message.session for message in messages}, file)
    return SavedMessages(messages, base, frozenset(known))


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
    tasks: set[str] = set()
    for start in range(0, MOST, PAGE):
        rows = ask(f"SELECT id FROM tasks ORDER BY rowid LIMIT {PAGE} OFFSET {start}")
        tasks |= {str(row[0]) for row in rows}
        if len(rows) < PAGE:
            return tasks
    raise CouldNotLook("it has more than {MOST:,} tasks", MOST=MOST)


def find_missing_messages(
    saved: SavedMessages, ask: Ask, wanted_since: Callable[[], float]
) -> MissingMessages:
    """Find the saved messages that a database lacks, and how they can be added.

    `wanted_since` returns the time before which Hermes deletes sessions itself. A session that is
    in the saved file without its log and not in the database was deleted: it is not counted.
    """
    numbered = messages_with_ids([message.id for message in saved.messages], ask)
    missing = [message for message in saved.messages if numbered.get(message.id) != message]
    if not missing:
        return MissingMessages()
    there = sessions_among({candidate.session for candidate in missing}, ask)
    missing = [m for m in missing if m.session in there or m.session not in saved.known]
    later = list(_after(ask, saved.base, {candidate.session for candidate in missing}))
    mine = set(saved.messages)
    moved = Counter(candidate.key for candidate in later if candidate not in mine)
    absent: dict[str, list[SavedMessage]] = {}
    for candidate in missing:
        if moved[candidate.key] > 0:  # the database has it with another id
            moved[candidate.key] -= 1
        else:
            absent.setdefault(candidate.session, []).append(candidate)
    gone = [name for name in absent if name not in there]
    limit = wanted_since() if gone else 0.0
    for name in gone:
        if max(candidate.time for candidate in absent[name]) < limit:
            del absent[name]
    return _placed(absent, later, numbered, there)


def _placed(
    absent: dict[str, list[SavedMessage]],
    later: Sequence[SavedMessage],
    numbered: dict[int, SavedMessage],
    there: set[str],
) -> MissingMessages:
    """Keep a session together: all of its messages are added in the same way, or none."""
    own, renumbered, left = list[SavedMessage](), list[SavedMessage](), list[SavedMessage]()
    for name, lost in absent.items():
        others = [message for message in later if message.session == name]
        free = not any(message.id in numbered for message in lost)
        if free and _in_order(sorted([*others, *lost]), lost):
            own += lost
        elif _in_order([*others, *lost], lost):
            renumbered += lost
        else:
            left += lost
    added = {message.session for message in (*own, *renumbered)}
    new = tuple(sorted(added - there))
    return MissingMessages(tuple(own), tuple(renumbered), tuple(left), new)


def _in_order(merged: Sequence[SavedMessage], lost: Sequence[SavedMessage]) -> bool:
    """Whether times ascend between each added message and its existing neighbours."""
    added = set(lost)
    return all(
        first.time <= second.time
        for first, second in pairwise(merged)
        if (first in added) != (second in added)
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
            yield saved_message(row)
        if len(rows) < PAGE:
            return
        last = rows[-1][0]
    raise CouldNotLook("there are more than {MOST:,} messages to compare", MOST=MOST)


def messages_with_ids(numbers: Sequence[int], ask: Ask) -> dict[int, SavedMessage]:
    """The messages of a database that have these ids."""
    messages: dict[int, SavedMessage] = {}
    for start in range(0, len(numbers), _CHUNK):
        listed = ", ".join(map(str, numbers[start : start + _CHUNK]))
        sql = f"SELECT id, session_id, role, timestamp FROM messages WHERE id IN ({listed})"
        messages |= {row[0]: saved_message(row) for row in ask(sql)}
    return messages


def saved_message(row: Sequence[Any]) -> SavedMessage:
    """A message from the values of `MESSAGE_COLUMNS`."""
    id, session, role, time = row
    return SavedMessage(id, str(session), str(role), time if isinstance(time, int | float) else 0.0)


def sessions_among(names: Iterable[str], ask: Ask) -> set[str]:
    """The sessions among `names` that a database has."""
    wanted, present = sorted(names), set[str]()
    for start in range(0, len(wanted), _CHUNK):
        listed = _listed(wanted[start : start + _CHUNK])
        present |= {str(row[0]) for row in ask(f"SELECT id FROM sessions WHERE id IN ({listed})")}
    return present


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"CAST(x'{name.encode('utf-8', 'replace').hex()}' AS TEXT)" for name in names)


_DATABASE = "state.db"
LARGEST_LOG = 256 * MEGABYTE
"""The maximum size in bytes of a log that is read."""


class RetiredRows(NamedTuple):
    """The messages of a log that was set aside, and those of them that the history lacks."""

    saved: SavedMessages
    missing: MissingMessages


def files_of_retired_log(folder: Path) -> tuple[Path, Path]:
    """The copy of the database and the log in such a folder; raise CouldNotLook if one lacks."""
    main, log = folder / _DATABASE, folder / f"{_DATABASE}-wal"
    if snapshot(main).kind != "file":
        raise CouldNotLook("it has no copy of the database")
    state = snapshot(log)
    if state.kind != "file" or state.size <= wal.LOG_HEAD:
        raise CouldNotLook("it has no write-ahead log (-wal)")
    if state.size > LARGEST_LOG:
        raise CouldNotLook("its log is too large to read ({size})", size=size(state.size))
    return main, log


def compare_retired_log(
    folder: Path, live: Ask, wanted_since: Callable[[], float], seconds: float | None
) -> RetiredRows:
    """Find the messages of the log that the live history lacks.

    SQLite has so many seconds to check the copy; None for no limit. Raises CouldNotLook if the log
    cannot be trusted to belong to the copy beside it, or if root could not read the copy with the
    rights of the home's owner, who may put a symlink to another home there.
    """
    main, log = files_of_retired_log(folder)
    owner = privileges.of(main)
    if owner is not None and not owner.can_reach:
        raise CouldNotLook("the owner of the home cannot reach it by this path")
    fd = open_owned(log)
    try:
        ancestry = log_ancestry.of_log(header.read(main, open_owned), fd, wal.read(fd))
    finally:
        os.close(fd)
    if ancestry.level == log_ancestry.IMPOSSIBLE:
        what = "the log does not belong to the copy next to it: {why}"
        raise CouldNotLook(what, why=ancestry.what)
    with open_saved(main, seconds, owner) as (whole, _):
        try:
            sound = [row[0] for row in whole("PRAGMA quick_check(1)")] == ["ok"]
        except TooSlow as why:
            raise CouldNotLook("{reason}; use --deep", reason=str(why)) from why
        if not sound:
            raise CouldNotLook("the copy with its log is damaged")
    saved = read_messages(main, owner)
    return RetiredRows(saved, find_missing_messages(saved, live, wanted_since))
