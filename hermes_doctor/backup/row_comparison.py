"""Compare the rows of two databases by their content, not by their row ids.

Hermes gives messages new ids when it rewrites a session. So a message is identified by its session,
role, text, tool calls and time. Only fingerprints of rows leave SQLite, and only a limited number
of them is in memory at once, however large the databases are.
"""

from __future__ import annotations

import math
import time
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite.inspector import MOST_ROWS, fingerprint
from hermes_doctor.sqlite.reader import Reader

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


COMPARED_ROWS = {
    "state.db": ComparedRows(
        "messages",
        "session_id",
        ("role", "content", "tool_call_id", "tool_calls"),
        "timestamp",
        "message",
    ),
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
        f"CAST({one} AS BLOB)" if one in there else "NULL" for one in counted.columns
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
        fingerprint(key, *(_blob(record.get(one)) for one in counted.columns)),
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
        times = (None if math.isnan(one) else one for one in self.times)
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
    return {one: GroupSummary(number, digests[one], newest[one]) for one, number in numbers.items()}


def read_contents(opened: Callable[[], AbstractContextManager[Iterable[Row]]]) -> Contents:
    """Read the rows of a database, and keep them in memory if they are not too many."""
    seen = CachedRows()
    with opened() as rows:
        sums = summarize(seen.remember(rows))
    return Contents(sums, (lambda: nullcontext(seen)) if seen.complete else opened)


def count_lacking(
    source: Contents, groups: Collection[int], known: Sequence[Callable[[], Contents]]
) -> int:
    """How many rows of these groups none of the known databases has.

    They are read in turn, and only as long as a row is missing.
    """
    number = sum(source.sums[group].number for group in groups)
    parts = 1 + number // AT_ONCE
    total = 0
    for part in range(parts if groups else 0):
        with source.opened() as rows:
            here = Counter(
                row for row in rows if row[0] in groups and (row[0] ^ row[1]) % parts == part
            )
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
        raise CouldNotLook(text("reading its rows took longer than {seconds:g} s", seconds=SECONDS))
    if answer.error:
        raise CouldNotLook(text("SQLite could not read it ({reason})", reason=answer.error))
    return answer.rows


def _blob(value: object) -> bytes | None:
    """Convert a value as SQLite's CAST to a blob does."""
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "surrogatepass")
