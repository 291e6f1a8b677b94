"""Compare the rows of two databases by their content, not by their row ids.

Hermes gives messages new ids when it rewrites a session. So a message is identified by its session,
role, text, tool calls and time. Only fingerprints of rows leave SQLite, and only a limited number
of them is in memory at once, however large the databases are.
"""

from __future__ import annotations

import contextlib
import math
import time
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import count
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, size, snapshot
from hermes_doctor.hermes.knowledge import atlas
from hermes_doctor.sqlite import schema
from hermes_doctor.sqlite.query_process import MOST_ROWS, fingerprint
from hermes_doctor.sqlite.reader import Reader
from hermes_doctor.sqlite.salvage import log_rows

if TYPE_CHECKING:
    from hermes_doctor.sqlite.blueprint import Blueprint


SECONDS = 600.0
"""Time limit for reading the rows of one database."""
AT_ONCE = 150_000
"""Rows of a backup that are compared in one pass; more are split over several passes."""
REMEMBERED = 500_000
"""Rows of a database that are kept in memory, so they need not be read twice."""
REWRITTEN = 1e-5
"""Maximum seconds between two messages that Hermes wrote when it rewrote a session: messages
without a time get the current time, each a microsecond later than the previous one."""


class ComparedRows(NamedTuple):
    """Which rows of a database are compared, and by which columns."""

    table: str
    group: str
    """The column with the group of a row, such as its session."""
    columns: tuple[str, ...]
    """The other compared columns; one that a release lacks counts as empty."""
    time: str
    """The column with the time of a row; empty if there is none."""
    noun: str

    def number(self, count: int) -> str:
        """A number of rows, with the noun in singular or plural."""
        return f"{count} {self.noun}{'' if count == 1 else 's'}"


_OF_MESSAGE = ("role", "content", "tool_call_id", "tool_calls")
COMPARED_ROWS = {
    "state.db": ComparedRows("messages", "session_id", _OF_MESSAGE, "timestamp", "message"),
    "kanban.db": ComparedRows("tasks", "id", (), "", "task"),
}
"""The compared rows, by the name of the database file."""

Row = tuple[int, int, float | None]
"""The fingerprint of its group, the fingerprint of its content, and its time."""


class GroupSummary(NamedTuple):
    """Summary of all rows of a group; groups with equal number and digest have the same rows."""

    number: int
    digest: int
    newest: float

    def same(self, other: GroupSummary | None) -> bool:
        """Whether the rows are the same."""
        return other is not None and (self.number, self.digest) == (other.number, other.digest)


Sums = Mapping[int, GroupSummary]


class Contents(NamedTuple):
    """The counted rows of one database."""

    sums: Sums
    """The summary of each group, by its fingerprint."""
    opened: Callable[[], AbstractContextManager[Iterable[Row]]]
    """Opens the database again and reads its rows."""


def read(reader: Reader, counted: ComparedRows, key: bytes) -> Iterator[Row]:
    """Read the rows of a database from the table itself, because an index may be wrong."""
    end = time.monotonic() + SECONDS
    table, mark = counted.table, f"x'{key.hex()}'"
    _ask(reader, "PRAGMA mmap_size=0", end)  # a mapped file would count as memory of the process
    listed = _ask(reader, f"SELECT name FROM pragma_table_info('{table}')", end)
    there = {str(row[0]) for row in listed}
    if not there:
        return
    values = ", ".join(
        f"CAST({column} AS BLOB)" if column in there else "NULL" for column in counted.columns
    )
    what = f"fingerprint({mark}, {values})" if values else "0"
    at = "NULL"
    if counted.time in there:
        at = f"iif(typeof({counted.time}) IN ('real', 'integer'), {counted.time}, NULL)"
    select = (
        f"SELECT rowid, fingerprint({mark}, CAST({counted.group} AS BLOB)), {what}, {at} "
        f"FROM {table} NOT INDEXED WHERE rowid >= %d ORDER BY rowid LIMIT {MOST_ROWS}"
    )
    first = -(1 << 63)
    while True:
        rows = _ask(reader, select % first, end)
        for number, group, content, when in rows:
            if number < first:
                raise CouldNotLook("its rows are not in order")
            first = number + 1
            yield group, content, when
        if len(rows) < MOST_ROWS or first >= 1 << 63:
            return


def row_of(record: Mapping[str, object], counted: ComparedRows, key: bytes) -> Row:
    """Make a Row from a record that was read without SQLite."""
    when = record.get(counted.time)
    return (
        fingerprint(key, _blob(record.get(counted.group))),
        fingerprint(key, *(_blob(record.get(column)) for column in counted.columns)),
        float(when) if isinstance(when, int | float) else None,
    )


class CachedRows:
    """The rows of one database in memory, up to a limit; 24 bytes each."""

    def __init__(self) -> None:
        self.groups, self.contents, self.times = array("q"), array("q"), array("d")
        self.complete = True

    def remember(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Pass rows on and remember them."""
        for row in rows:
            if len(self.groups) < REMEMBERED:
                self.groups.append(row[0])
                self.contents.append(row[1])
                self.times.append(math.nan if row[2] is None else row[2])
            else:
                self.complete = False
            yield row

    def __iter__(self) -> Iterator[Row]:
        times = (None if math.isnan(moment) else moment for moment in self.times)
        return zip(self.groups, self.contents, times, strict=True)


def summarize(rows: Iterable[Row]) -> Sums:
    """Summarize the rows by group; a missing time counts as now."""
    now = time.time()
    numbers: Counter[int] = Counter()
    digests: dict[int, int] = {}
    newest: dict[int, float] = {}
    for group, what, when in rows:
        numbers[group] += 1
        digests[group] = (digests.get(group, 0) + hash((what, when))) & 0xFFFFFFFFFFFFFFFF
        newest[group] = max(newest.get(group, 0.0), now if when is None else when)
    return {g: GroupSummary(number, digests[g], newest[g]) for g, number in numbers.items()}


def read_contents(opened: Callable[[], AbstractContextManager[Iterable[Row]]]) -> Contents:
    """Read the rows of a database, and keep them in memory if they are not too many."""
    seen = CachedRows()
    with opened() as rows:
        sums = summarize(seen.remember(rows))
    return Contents(sums, (lambda: nullcontext(seen)) if seen.complete else opened)


def count_lacking(
    source: Contents, groups: Collection[int], known: Sequence[Callable[[], Contents]]
) -> int:
    """How many rows none of the known databases has; read in turn, while a row is missing."""
    number = sum(source.sums[group].number for group in groups)
    parts = 1 + number // AT_ONCE
    total = 0
    for part in range(parts if groups else 0):
        with source.opened() as rows:
            wanted = (row for row in rows if row[0] in groups)
            here = Counter(row for row in wanted if (row[0] ^ row[1]) % parts == part)
        left = here
        for contents in known:
            if not left:
                break
            left = left & _lacking_in(contents(), here, left, source.sums)
        total += left.total()
    return total


def _lacking_in(
    there: Contents, here: Counter[Row], left: Counter[Row], sums: Sums
) -> Counter[Row]:
    """The rows of `here` that one other database lacks; only groups that still lack any count."""
    groups = {row[0] for row in left}
    whole = {group for group in groups if sums[group].same(there.sums.get(group))}
    some = {group for group in groups - whole if group in there.sums}
    lacks = Counter({row: number for row, number in here.items() if row[0] in groups - whole})
    if not some:
        return lacks
    contents = {row[:2] for row in lacks}
    exact: Counter[Row] = Counter()
    rewritten: Counter[tuple[int, int]] = Counter()
    with there.opened() as rows:
        for row, is_rewritten in _rewritten(row for row in rows if row[0] in some):
            if row in lacks:
                exact[row] += 1
            elif is_rewritten and row[:2] in contents:
                rewritten[row[:2]] += 1
    lacks -= exact
    for row in list(lacks):  # the same message, which Hermes rewrote with a new time
        found = min(lacks[row], rewritten[row[:2]])
        lacks[row] -= found
        rewritten[row[:2]] -= found
    return +lacks


def _rewritten(rows: Iterable[Row]) -> Iterator[tuple[Row, bool]]:
    """Yield each row, and whether its time comes from a rewrite of its session."""
    waiting: dict[int, tuple[Row, bool]] = {}
    for row in rows:
        before = waiting.get(row[0])
        close = before is not None and _close(before[0][2], row[2])
        if before:
            yield before[0], before[1] or close
        waiting[row[0]] = row, close
    yield from waiting.values()


def _close(one: float | None, two: float | None) -> bool:
    return one is not None and two is not None and 0 <= two - one < REWRITTEN


def _ask(reader: Reader, sql: str, end: float) -> Sequence[Sequence[Any]]:
    answer = reader.ask(sql, max(0.1, end - time.monotonic()))
    if answer.unfinished or time.monotonic() > end:
        raise CouldNotLook("reading its rows took longer than {seconds:g} s", seconds=SECONDS)
    if answer.error:
        raise CouldNotLook("SQLite could not read it ({reason})", reason=answer.error)
    return answer.rows


def _blob(value: object) -> bytes | None:
    """Convert a value as SQLite's CAST to a blob does."""
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "surrogatepass")


LARGEST = 32 * MEGABYTE
"""Largest log, in bytes, whose rows are read: they are all in memory at once."""


def messages_of_log(
    home: Home, log: Path, name: str, counted: ComparedRows, key: bytes
) -> Contents:
    """The messages of a log that was written for `name`; CouldNotLook unless all can be read."""
    if counted.table != log_rows.MESSAGES:
        raise CouldNotLook("only the write-ahead log of state.db can be read alone")
    if (length := snapshot(log).size) > LARGEST:
        raise CouldNotLook("the write-ahead log is too large to read ({size})", size=size(length))
    try:
        content = log_rows.read(log, _blueprint(home, name))
    except CannotFix as why:
        raise CouldNotLook(str(why).rstrip(".")) from None
    if content.partial:
        raise CouldNotLook("{rows} can be read only in part", rows=count(content.partial, "row"))
    rows = [row_of(message, counted, key) for message in content.messages.values()]
    return Contents(summarize(rows), lambda: contextlib.nullcontext(rows))


def _blueprint(home: Home, name: str) -> Blueprint:
    """The schema of the database: by its own columns, else that of the newest known release."""
    kind = atlas.kind_of(name)
    if kind is None:
        raise CouldNotLook("the tables of {name} are unknown", name=name)
    try:
        declared = schema.read(home.path / name)
    except (CouldNotLook, FileNotFoundError):  # its schema is damaged or gone
        plan = atlas.blueprint_at_or_below(kind, None)
    else:
        if atlas.is_from_newer_release(kind, declared):
            what = "{name} was written by a newer Hermes than hermes-doctor knows"
            raise CouldNotLook(what, name=name)
        plan = atlas.richest_blueprint(kind, None, declared)
    if plan is None:
        raise CouldNotLook("the tables of {name} are unknown", name=name)
    return plan
