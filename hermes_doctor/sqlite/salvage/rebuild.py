"""What a row must have, and what can be made of the little that is left of one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hermes_doctor.sqlite.cells import LOST, Row
from hermes_doctor.sqlite.column_rules import quoted
from hermes_doctor.sqlite.records import Value
from hermes_doctor.sqlite.salvage.catalog import Layout
from hermes_doctor.sqlite.salvage.target import Target

STUB: Mapping[str, Mapping[str, Value]] = {
    "sessions": {"source": "recovered", "started_at": 0},
}
"""What to put where nothing is known but that a row was there and others hang on it."""


def references(target: Target, name: str) -> Iterator[tuple[str, str, str]]:
    """The columns of a table that name rows of others: column, table, column there."""
    keys: dict[int, list[tuple[str, str, str | None]]] = {}
    for row in target.database.execute(f"PRAGMA foreign_key_list({quoted(name)})"):
        keys.setdefault(row[0], []).append((row[3], row[2], row[4]))
    for pairs in keys.values():
        child, parent, column = pairs[0]
        if len(pairs) == 1 and parent in target.layouts:
            own = next((c.name for c in target.layouts[parent].columns if c.key), "rowid")
            yield child, parent, column or own


def enough(layout: Layout, known: Mapping[str, Value]) -> bool:
    """Whether a row can be made of these values without inventing any."""
    return all(
        known.get(column.name) is not None
        for place, column in enumerate(layout.columns)
        if place != layout.rowid_column
        and (column.key or (column.notnull and column.default is None))
    )


def keep_beginning(layout: Layout, row: Row) -> None:
    """The part of the text that is left, where it broke off in the middle of one."""
    place = row.values.index(LOST)
    declared = layout.columns[place].type
    if row.rest and row.kinds[place] & 1 and row.kinds[place] >= 13 and "TEXT" in declared:
        row.values[place] = row.rest.decode("utf-8", "ignore")


PARTS = re.compile(r"(?P<content>.*) (?P<tool_name>\S*) (?P<tool_calls>\[\{.*\}\])?", re.DOTALL)


def message(text: str) -> dict[str, Value]:
    """A message by the copy of its text: content, tool name and tool calls in one."""
    found = PARTS.fullmatch(text)
    content = found["content"] if found else text
    tool = (found["tool_name"] or None) if found else None
    calls = found["tool_calls"] if found else None
    role = "assistant" if calls else "tool" if tool else "user"
    return {"role": role, "content": content, "tool_name": tool, "tool_calls": calls}
