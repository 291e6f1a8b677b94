"""Rebuild a row from the few values that are left of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hermes_doctor.sqlite.column_rules import quote_name
from hermes_doctor.sqlite.salvage.catalog import Layout
from hermes_doctor.sqlite.salvage.target import NewDatabase
from hermes_doctor.sqlite.table_rows import Value

PLACEHOLDERS: Mapping[str, Mapping[str, Value]] = {
    "sessions": {"source": "recovered", "started_at": 0},
}
"""Placeholder values for a row of which only references to it are left."""


def foreign_keys(target: NewDatabase, name: str) -> Iterator[tuple[str, str, str]]:
    """The foreign keys of a table: column, referenced table, referenced column."""
    keys: dict[int, list[tuple[str, str, str | None]]] = {}
    for row in target.database.execute(f"PRAGMA foreign_key_list({quote_name(name)})"):
        keys.setdefault(row[0], []).append((row[3], row[2], row[4]))
    for pairs in keys.values():
        child, parent, column = pairs[0]
        if len(pairs) == 1 and parent in target.layouts:
            own = next((c.name for c in target.layouts[parent].columns if c.key), "rowid")
            yield child, parent, column or own


def has_required_values(layout: Layout, known: Mapping[str, Value]) -> bool:
    """Whether these values are enough for a row, without inventing any."""
    return all(
        known.get(column.name) is not None
        for place, column in enumerate(layout.columns)
        if place != layout.rowid_column
        and (column.key or (column.notnull and column.default is None))
    )


PARTS = re.compile(r"(?P<content>.*) (?P<tool_name>\S*) (?P<tool_calls>\[\{.*\}\])?", re.DOTALL)


def message_from_text(text: str) -> dict[str, Value]:
    """Parse a message from its full-text copy: content, tool name and tool calls in one text."""
    found = PARTS.fullmatch(text)
    content = found["content"] if found else text
    tool = (found["tool_name"] or None) if found else None
    calls = found["tool_calls"] if found else None
    role = "assistant" if calls else "tool" if tool else "user"
    return {"role": role, "content": content, "tool_name": tool, "tool_calls": calls}
