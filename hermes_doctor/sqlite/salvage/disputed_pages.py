"""List rows whose overflow pages another row claims, too: their text may be that of the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hermes_doctor.sqlite.cells import Row
from hermes_doctor.sqlite.salvage import partial_rows
from hermes_doctor.sqlite.salvage.fulltext_copies import FulltextCopies
from hermes_doctor.sqlite.salvage.load import LoadedTable
from hermes_doctor.sqlite.salvage.survey import Survey, decode
from hermes_doctor.sqlite.table_rows import Value


def list_doubtful(
    loaded: LoadedTable,
    survey: Survey,
    texts: FulltextCopies | None,
    facts: Callable[[set[int]], Mapping[int, Mapping[str, Value]]],
) -> None:
    """List the rows that were read first, unless an index confirms them.

    The row that claims a page second is cut before it.
    """
    leaves = {leaf.page for leaf in loaded.pages.tree.leaves}
    rows: dict[int, Row] = {}
    for mark in set(survey.disputed.values()):
        if mark >> 16 in leaves:
            row = decode(survey.cell(mark >> 16, mark & 0xFFFF))
            if row is not None and row.whole and not (texts is not None and texts.agree(row)):
                rows[row.rowid] = row
    known = facts(set(rows)) if rows else {}
    layout = loaded.pages.layout
    for rowid, row in sorted(rows.items()):
        if not _confirmed(layout.names, row, known.get(rowid, {})):
            loaded.tally.change(1)
            key = partial_rows.key_of(layout, row)
            columns = partial_rows.last_columns(layout, row)
            loaded.tally.incomplete.add(partial_rows.DOUBTFUL, columns, key)


def _confirmed(names: tuple[str, ...], row: Row, facts: Mapping[str, Value]) -> bool:
    """Whether an index has the same numbers as the row; they are behind its text."""
    told = [
        row.values[place] == facts[name]
        for place, name in enumerate(names[: len(row.values)])
        if name in facts and row.kinds[place] == 7
    ]
    return bool(told) and all(told)
