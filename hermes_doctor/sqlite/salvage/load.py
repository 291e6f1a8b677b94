"""Copy readable rows from the pages of a damaged database into the new one."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from hermes_doctor.sqlite.pages import Cell, LostValue, RawText, ReplacedText, Row, Value
from hermes_doctor.sqlite.salvage import account, row_fit, trees
from hermes_doctor.sqlite.salvage.account import (
    FROM_FULLTEXT_COPIES,
    ONLY_FITTING_VALUE,
    TableResult,
)
from hermes_doctor.sqlite.salvage.assign_pages import TablePages
from hermes_doctor.sqlite.salvage.index_evidence import IndexEvidence
from hermes_doctor.sqlite.salvage.layouts import Layout
from hermes_doctor.sqlite.salvage.row_fit import ColumnMapping, parse_literal, sound_part
from hermes_doctor.sqlite.salvage.survey import Leaf, Survey, decode
from hermes_doctor.sqlite.salvage.target import NewDatabase
from hermes_doctor.sqlite.salvage.trees import FulltextCopies

BATCH = 4000
"""Rows per transaction."""
PENDING, ROW = 32 * 1024 * 1024, 2048
"""Bytes of incomplete rows that are kept in memory to be completed later, and the overhead of
each; further incomplete rows are written as they are."""


@dataclass
class LoadedTable:
    """The result of loading one table."""

    name: str
    pages: TablePages
    tally: TableResult
    shape: ColumnMapping
    pending: list[Row] = field(default_factory=list)
    """Incomplete rows that are not yet in the new database."""
    pending_limit: int = PENDING
    broken: array[int] = field(default_factory=lambda: array("q"))
    """Rowids of unreadable rows on readable pages."""


class RowCounter:
    """Passes rows on and counts them; stops at a row with text that is not valid UTF-8."""

    def __init__(self, rows: Iterator[list[Value]]) -> None:
        self.rows = rows
        self.count = 0
        self.invalid_row: list[Value] | None = None

    def __iter__(self) -> Iterator[list[Value]]:
        for row in self.rows:
            self.count += 1
            if RawText in map(type, row):
                self.invalid_row = row
                return
            yield row


def insert_in_batches(
    target: NewDatabase, name: str, columns: Sequence[str], rows: Iterator[list[Value]]
) -> Iterator[tuple[int, int]]:
    """Insert rows in transactions, never all in memory; yield how many each had and added."""
    for first in rows:
        batch = RowCounter(chain([first], islice(rows, BATCH - 1)))
        added = target.insert(name, columns, batch)
        if batch.invalid_row is not None:
            added += target.insert(name, columns, [batch.invalid_row])
        yield batch.count, added


@dataclass
class Loader:
    """Loads one table after the other."""

    survey: Survey
    target: NewDatabase
    texts: Mapping[str, FulltextCopies]
    get_evidence: Callable[[str], IndexEvidence]
    step: Callable[[int], None]
    """Called with the number of leaves that were read."""

    def load(self, name: str, pages: TablePages) -> LoadedTable:
        """Load all rows of one table."""
        shape = ColumnMapping(pages.layout, self.target.layouts[name])
        loaded = LoadedTable(name, pages, TableResult(name), shape)
        rows = self._rows(loaded)
        tally = loaded.tally
        for count, added in insert_in_batches(self.target, name, shape.columns, rows):
            tally.saved -= count - added  # the same row on two pages
            if name in self.target.extra:  # or a row that its own table rejects
                tally.lost += count - added
        return loaded

    def _rows(self, loaded: LoadedTable) -> Iterator[list[Value]]:
        texts = self.texts.get(loaded.name)
        shape, tally = loaded.shape, loaded.tally
        stand = loaded.pages
        named = self.get_evidence(loaded.name).names if stand.freed_leaves else None
        for number, leaf in enumerate(stand.tree.leaves):
            if not number % 256:
                self.step(256)
            for row, cell in self._leaf(loaded, leaf):
                if named and leaf.page in stand.freed_leaves and not named(row.rowid):
                    continue  # it was deleted, and its page freed
                if row.whole:
                    self._keep_bytes(loaded.name, row, texts)
                row = self._sound(loaded, row, cell, texts)
                if not row.whole:
                    size = sum(len(v) for v in row.values if isinstance(v, str | bytes))
                    if size <= loaded.pending_limit:
                        loaded.pending_limit -= size + ROW
                        loaded.pending.append(row)
                        continue
                    tally.partial += 1
                    losses = account.keep_beginning(stand.layout, row)
                    for kind, columns in losses.items():
                        tally.incomplete.add(kind, columns, account.key_of(stand.layout, row))
                    yield shape.values(row)
                    continue
                before = shape.made_up
                values = shape.values(row)
                if shape.made_up > before:
                    tally.partial += 1
                    _doubt(loaded, row, shape.guessed)
                elif _mend_role(shape, row):
                    tally.restore(ONLY_FITTING_VALUE)
                    values = shape.values(row)
                elif texts is not None and texts.heal(row):
                    tally.restore(FROM_FULLTEXT_COPIES)
                    values = shape.values(row)
                elif ReplacedText in map(type, row.values) or (
                    row.bad_overflow and not (texts is not None and texts.agree(row))
                ):
                    tally.partial += 1
                    _doubt(loaded, row, account.doubtful_columns(stand.layout, row))
                else:
                    tally.saved += 1
                yield values

    def _sound(
        self, loaded: LoadedTable, row: Row, cell: Cell, texts: FulltextCopies | None
    ) -> Row:
        """The row without bytes that cannot be right; tables that Hermes never reads stay."""
        if loaded.name in self.target.extra or RawText in map(type, row.values):
            return row
        confirmed = row.bad_overflow and texts is not None and texts.agree(row)
        layout, usable = loaded.pages.layout, self.survey.usable
        return sound_part(layout, cell, row, usable, confirmed=confirmed) or row

    def _keep_bytes(self, name: str, row: Row, texts: FulltextCopies | None) -> None:
        """Keep invalid UTF-8 byte for byte if it was stored so, or if Hermes never reads the table.

        Elsewhere it stays replaced, because Hermes would fail on it.
        """
        if ReplacedText not in map(type, row.values):
            return
        if name in self.target.extra or (texts is not None and texts.stored(row)):
            for place, value in enumerate(row.values):
                if isinstance(value, ReplacedText):
                    row.values[place] = RawText(value.raw)

    def _leaf(self, loaded: LoadedTable, leaf: Leaf) -> Iterator[tuple[Row, Cell]]:
        """The rows of one leaf that belong to this table, with their cells."""
        local = self.survey.cells(leaf.page, whole=False)
        ids = _straightened([cell.rowid for cell in local], leaf)
        cells = self.survey.cells(leaf.page)
        usual = 0
        for rowid, cell in zip(ids, cells, strict=True):
            row = decode(cell._replace(rowid=rowid)) if rowid is not None else None
            if row is not None and (len(row.kinds) == usual or _belongs(loaded.pages.layout, row)):
                usual = len(row.kinds)
                yield row, cell
            elif rowid is not None:
                loaded.broken.append(rowid)


def _doubt(loaded: LoadedTable, row: Row, columns: Sequence[str]) -> None:
    key = account.key_of(loaded.pages.layout, row)
    loaded.tally.incomplete.add(account.DOUBTFUL, columns, key)


def _belongs(layout: Layout, row: Row) -> bool:
    """Whether a record on a page of the table can be its row; less strict than for orphan pages."""
    if len(row.kinds) > len(layout.columns):
        return False
    place = layout.rowid_column
    if place is not None and row.kinds[place : place + 1] != [0]:
        return False
    fitting = sum(
        row_fit.fits_affinity(column.type, kind)
        for column, kind in zip(layout.columns, row.kinds, strict=False)
    )
    return row_fit.fits(layout, row) or 4 * fitting >= 3 * len(row.kinds)


def _straightened(ids: list[int], leaf: Leaf) -> list[int | None]:
    """Correct damaged rowids: they ascend on a page, so a wrong one is known if only one fits."""
    out: list[int | None] = []
    before = leaf.low
    for place, rowid in enumerate(ids):
        after = ids[place + 1] if place + 1 < len(ids) else leaf.high + 1
        if not before < rowid <= leaf.high or (rowid >= after > before + 1):
            if after == before + 2 and place:
                out.append(before + 1)
                before += 1
            else:
                out.append(None)
            continue
        out.append(rowid)
        before = rowid
    return out


def _mend_role(shape: ColumnMapping, row: Row) -> bool:
    """Correct a role with one wrong character, which is possible because there are few roles."""
    if shape.role is None or shape.role >= len(row.values):
        return False
    role = row.values[shape.role]
    if role in row_fit.ROLES or not isinstance(role, str):
        return False
    as_long = [known for known in row_fit.ROLES if len(known) == len(role)]
    near = [known for known in as_long if sum(map(operator.ne, known, role)) == 1]
    if len(near) == 1:
        row.values[shape.role] = near[0]
    return len(near) == 1


def load_clustered(survey: Survey, target: NewDatabase, layout: Layout, root: int) -> TableResult:
    """Copy all rows that are reachable from the table's root page."""
    tally = TableResult(layout.name)
    walk = trees.walk_index(survey, root)
    tally.unsure = not walk.whole
    columns = [name for name in layout.stored if name not in layout.computed]
    rows = _clustered_rows(survey, layout, walk, columns, tally)
    for count, added in insert_in_batches(target, layout.name, columns, rows):
        tally.saved += added
        tally.lost += count - added
    return tally


def _clustered_rows(
    survey: Survey,
    layout: Layout,
    walk: trees.IndexPages,
    columns: Sequence[str],
    tally: TableResult,
) -> Iterator[list[Value]]:
    keys = sum(bool(column.key) for column in layout.columns)
    defaults = {column.name: parse_literal(column.default) for column in layout.columns}
    for values in trees.index_entries(survey, walk):
        if not keys <= len(values) <= len(layout.stored):
            tally.lost += 1
            continue
        row = dict(defaults)
        for name, value in zip(layout.stored, values, strict=False):
            assert not isinstance(value, LostValue)  # an incomplete entry has no values
            row[name] = RawText(value.raw) if isinstance(value, ReplacedText) else value
        yield [row[name] for name in columns]
