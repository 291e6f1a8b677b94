"""Judge how well a record fits a table, and cut it where its bytes cannot be those stored.

Its values are mapped to the columns of the new table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from hermes_doctor.sqlite.pages import (
    LOST,
    SIZES,
    Cell,
    LostValue,
    ReplacedText,
    Row,
    Value,
    kinds_of,
    local_size,
)
from hermes_doctor.sqlite.salvage.layouts import Layout

ROLES = frozenset(
    {"user", "assistant", "tool", "system", "developer", "function", "session_meta", "unknown"}
)
FLAGS = frozenset({"active", "observed", "compacted", "archived", "expiry_finalized"})
JSON = frozenset(
    {"tool_calls", "model_config", "reasoning_details", "codex_reasoning_items",
     "codex_message_items", "skills"}
)  # fmt: skip
PROSE = frozenset({"content", "reasoning", "reasoning_content", "body", "text", "prompt"})
"""Texts that Hermes does not parse, even if they look like JSON."""
LITERAL = re.compile(r"-?\d+(\.\d+)?|'(?:[^']|'')*'", re.ASCII)
EPOCH = (1_000_000_000, 4_000_000_000)


def fits_affinity(declared: str, kind: int) -> bool:
    """Whether a column of this declared type stores values of this serial type."""
    if kind == 0 or not declared or declared == "BLOB":
        return True
    if "INT" in declared:
        return kind in (1, 2, 3, 4, 5, 6, 8, 9)
    if "CHAR" in declared or "TEXT" in declared or "CLOB" in declared:
        return kind >= 13 and kind % 2 == 1
    if declared in ("REAL", "FLOAT", "DOUBLE"):
        return kind <= 9
    return True


def fits(layout: Layout, row: Row) -> bool:
    """Whether a record can be a row of this table, by column count, types and NULLs."""
    columns, kinds = layout.columns, row.kinds
    if not kinds or len(kinds) > len(columns):
        return False
    if len(kinds) < len(columns):
        if len(kinds) < 2:
            return False
        if any(c.notnull and c.default is None for c in columns[len(kinds) :]):
            return False
    for place, kind in enumerate(kinds):
        column = columns[place]
        if place == layout.rowid_column:
            if kind:
                return False
        elif (kind == 0 and (column.notnull or column.key)) or not fits_affinity(column.type, kind):
            return False
    return True


def score(layout: Layout, row: Row) -> int:
    """Points for the record being a row of this table; 0 if it cannot be."""
    if not fits(layout, row):
        return 0
    points = 1
    for place, value in enumerate(row.values):
        if value is None or value is LOST:
            continue
        name = layout.columns[place].name
        points += 1
        if name == "role":
            if value not in ROLES:
                return 0
            points += 3
        elif name.endswith("_at") or name == "timestamp":
            if not isinstance(value, int | float) or not EPOCH[0] < value < EPOCH[1]:
                return 0
            points += 3
        elif name.endswith("_json") or name in JSON:
            if not isinstance(value, str) or value[:1] not in ("[", "{"):
                return 0
            points += 3
        elif name in FLAGS:
            if value not in (0, 1):
                return 0
            points += 1
    return points


def best_tables(layouts: Iterable[Layout], rows: Sequence[Row]) -> list[str]:
    """The tables that 80 % of these rows fit, closest in the number of columns."""
    if not rows:
        return []
    slack = {
        layout.name: abs(len(layout.columns) - len(rows[0].kinds))
        for layout in layouts
        if 5 * sum(score(layout, row) > 0 for row in rows) >= 4 * len(rows)
    }
    return [name for name, columns in slack.items() if columns == min(slack.values())]


class ColumnMapping:
    """Maps the records of one table to the columns of the new table."""

    def __init__(self, source: Layout, target: Layout) -> None:
        theirs = {column.name.lower(): place for place, column in enumerate(source.columns)}
        self.source = source
        self.columns: list[str] = []
        self.places: list[int] = []
        self.fill: dict[int, Value] = {}
        """By position: the value for NULL in a column of the new table that is NOT NULL."""
        self.default: dict[int, Value] = {}
        """By position: the value of a column that a shorter record does not contain."""
        self.made_up = 0
        """How many NULLs in NOT NULL columns were replaced by a placeholder."""
        self.guessed: list[str] = []
        """The columns of the last row that got a placeholder."""
        if target.rowid_column is None:
            self.columns.append("rowid")
            self.places.append(-1)
        for place, column in enumerate(target.columns):
            at = theirs.get(column.name.lower())
            if column.name in target.computed or (at is None and place != target.rowid_column):
                continue
            if place == target.rowid_column:
                at = -1
            elif column.notnull and at is not None:
                self.fill[len(self.columns)] = placeholder(column.type, column.default)
            self.columns.append(column.name)
            self.places.append(-1 if at is None else at)
        for place, column in enumerate(source.columns):
            self.default[place] = parse_literal(column.default)
        self.role = theirs.get("role")
        # The rowid is appended to the values, so its position is -1.
        self._pick = itemgetter(*self.places, *self.places[:1])

    def values(self, row: Row) -> list[Value]:
        """The values of a row for the new table; lost values are NULL."""
        values = row.values
        count = len(values)
        if row.whole and count == len(self.source.columns):
            picked: list[Value] = list(self._pick([*values, row.rowid]))
            picked.pop()
            return self._filled(picked)
        out: list[Value] = []
        for place in self.places:
            if place < 0:
                out.append(row.rowid)
            elif place < count:
                value = values[place]
                out.append(None if isinstance(value, LostValue) else value)
            else:
                out.append(self.default[place])
        return self._filled(out)

    def _filled(self, values: list[Value]) -> list[Value]:
        self.guessed.clear()
        for at, filling in self.fill.items():
            value = values[at]
            if value is None or value != value:  # SQLite stores "not a number" as NULL
                values[at] = filling
                self.made_up += 1
                self.guessed.append(self.columns[at])
        return values


def parse_literal(default: str | None) -> Value:
    """The value of a declared default, if it is a number or a string."""
    literal = LITERAL.fullmatch((default or "").strip())
    if not literal:
        return None
    word = literal[0]
    if word.startswith("'"):
        return word[1:-1].replace("''", "'")
    return float(word) if "." in word else int(word)


def placeholder(kind: str, default: str | None) -> Value:
    """The placeholder for NULL in a NOT NULL column."""
    value = parse_literal(default)
    if value is not None:
        return value
    return 0 if "INT" in kind or kind in ("REAL", "FLOAT", "DOUBLE", "NUMERIC") else ""


SECTOR = 512
"""A disk writes at least this much at once, so damage starts at a multiple of it."""
FEW = 3
"""Invalid bytes on one page up to this number are flipped bits; the text around them is right."""
SHORTEST = 64
"""Fewer zeros than this can be part of a text."""
_INVALID = re.compile("[\udc80-\udcff]")
_ZEROS = re.compile(rb"\0{%d,}" % SHORTEST)


class _Pieces:
    """The parts of a payload: the first is on the leaf, each other on one overflow page."""

    def __init__(self, cell: Cell, usable: int) -> None:
        self.here = local_size(cell.length, usable, index=False)
        self.size = usable - 4
        self.end = len(cell.payload)

    def start(self, at: int) -> int:
        """The offset of the part that contains this byte."""
        return at if at < self.here else at - (at - self.here) % self.size

    def sector(self, at: int) -> int:
        """The offset of the sector that contains this byte; on a leaf the byte itself."""
        if at < self.here:
            return at
        start = self.start(at)
        return max(start, start - 4 + (at - start + 4) // SECTOR * SECTOR)

    def number(self, at: int) -> int:
        """Which part contains this byte; 0 is the leaf."""
        return 0 if at < self.here else 1 + (at - self.here) // self.size


def sound_part(
    layout: Layout, cell: Cell, row: Row, usable: int, *, confirmed: bool = False
) -> Row | None:
    """The row without what cannot be right; None if nothing speaks against it.

    `confirmed` means that a copy of its text agrees, whatever its overflow pages look like.
    """
    if not _suspicious(cell, row, usable):
        return None
    pieces = _Pieces(cell, usable)
    kinds, at = kinds_of(cell.payload)
    spans = list(_spans(kinds, at))
    numbers = {n: v for n, v in enumerate(row.values) if isinstance(v, float) and kinds[n] == 7}
    timed = {pieces.number(spans[n][1] - 1) for n, v in numbers.items() if _is_time(v)}
    odd = [n for n, value in numbers.items() if _is_odd(value)]
    cuts = [pieces.start(spans[n][1] - 1) for n in odd if pieces.number(spans[n][1] - 1)]
    last = pieces.number(pieces.end - 1)
    if row.bad_overflow and not confirmed and last not in timed:
        cuts.append(pieces.start(pieces.end - 1))
    for place, (start, stop) in enumerate(spans):
        if kinds[place] >= 13 and kinds[place] & 1 and start < pieces.end:
            prose = layout.columns[place].name in PROSE
            raw = cell.payload[start:stop]
            damaged = [at for at in _damage(raw, start, pieces) if prose or pieces.number(at)]
            cuts += map(pieces.sector, damaged)
    if not cuts and not odd:
        return None
    cut = min(cuts, default=pieces.end)
    values = list(row.values)
    first = -1
    for place, (start, stop) in enumerate(spans):
        if stop <= cut or start == stop:
            continue
        if first < 0:
            first = place
        elif pieces.number(start) in timed | {0} and pieces.number(stop - 1) in timed | {0}:
            continue  # what follows the damage on a page with a right time is right
        values[place] = LOST
    for place in odd:
        values[place] = LOST
    rest = cell.payload[spans[first][0] : cut] if first >= 0 else b""
    if first < 0 or values.index(LOST) != first:
        rest = b""
    return Row(row.rowid, row.kinds, values, False, rest)


def _suspicious(cell: Cell, row: Row, usable: int) -> bool:
    """A quick test that most rows end with."""
    if not row.whole or row.bad_overflow or cell.length > usable - 35:
        return True
    return any(
        type(value) is ReplacedText or (type(value) is float and _is_odd(value))
        for value in row.values
    )


def _spans(kinds: list[int], at: int) -> Iterator[tuple[int, int]]:
    """The first byte and the end of each value in the payload."""
    for kind in kinds:
        size = (kind - 12) >> 1 if kind >= 12 else SIZES[kind]
        yield at, at + size
        at += size


def _is_odd(value: float) -> bool:
    """Whether no one stores this number: not a number, or far too large or small."""
    return not (value == 0 or 1e-30 < abs(value) < 1e30)


def _is_time(value: float) -> bool:
    return EPOCH[0] < value < EPOCH[1]


def _damage(raw: bytes, start: int, pieces: _Pieces) -> Iterator[int]:
    """The offsets in the payload at which the text cannot be right."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        yield from _invalid(raw, start, pieces)
    for zeros in _ZEROS.finditer(raw):
        at = start + zeros.start()
        if pieces.number(at) and (zeros.end() - zeros.start() >= SECTOR or zeros.end() == len(raw)):
            yield at


def _invalid(raw: bytes, start: int, pieces: _Pieces) -> Iterator[int]:
    """The first invalid byte of each page that has more than a few."""
    places: dict[int, list[int]] = {}
    text, at, done = raw.decode("utf-8", "surrogateescape"), start, 0
    for character in _INVALID.finditer(text):
        at += len(text[done : character.start()].encode("utf-8", "surrogateescape"))
        done = character.start()
        places.setdefault(pieces.number(at), []).append(at)
    yield from (each[0] for each in places.values() if len(each) > FEW)
