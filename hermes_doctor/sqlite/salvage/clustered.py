"""Save the rows of tables WITHOUT ROWID, whose b-trees have the format of indexes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hermes_doctor.sqlite.cells import LostValue, RawText, ReplacedText
from hermes_doctor.sqlite.records import Value
from hermes_doctor.sqlite.salvage import trees
from hermes_doctor.sqlite.salvage.account import Tally
from hermes_doctor.sqlite.salvage.catalog import Layout
from hermes_doctor.sqlite.salvage.load import insert_in_batches
from hermes_doctor.sqlite.salvage.shape import parse_literal
from hermes_doctor.sqlite.salvage.survey import Survey
from hermes_doctor.sqlite.salvage.target import NewDatabase


def load(survey: Survey, target: NewDatabase, layout: Layout, root: int) -> Tally:
    """Copy all rows that are reachable from the table's root page."""
    tally = Tally(layout.name)
    walk = trees.walk_index(survey, root)
    tally.unsure = not walk.whole
    columns = [name for name in layout.stored if name not in layout.computed]
    for count, added in insert_in_batches(
        target, layout.name, columns, _rows(survey, layout, walk, columns, tally)
    ):
        tally.saved += added
        tally.lost += count - added
    return tally


def _rows(
    survey: Survey, layout: Layout, walk: trees.IndexPages, columns: Sequence[str], tally: Tally
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
