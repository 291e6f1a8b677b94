"""Mark truncated texts, and list the rows and fields of a salvage that are not complete."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hermes_doctor.core.message import text
from hermes_doctor.core.system.files import shown
from hermes_doctor.sqlite.blueprint import Column
from hermes_doctor.sqlite.cells import LOST, ReplacedText, Row, Value
from hermes_doctor.sqlite.salvage import row_fit
from hermes_doctor.sqlite.salvage.layouts import Layout

MARK = " [hermes-doctor: the rest of this text was lost]"
"""The end of a text of which only the beginning is left."""
LISTED = 40
"""The most rows of a table that the receipt lists for one set of fields."""
GROUPS = 12
"""The most sets of fields of a table that the receipt lists."""
CUT, LOST_VALUE, OMITTED, DOUBTFUL, LEFT = "cut", "lost", "omitted", "doubtful", "left"
PROSE = frozenset({"content", "reasoning", "reasoning_content", "body", "text", "prompt"})
"""Texts that Hermes does not parse, even if they look like JSON."""
_PARSED = ("_json", "_metadata", "_details", "_items", "_config", "_calls")
_NAMES = ("_id", "_key", "_hash", "_url", "_path", "_kind", "_type", "_mode", "_state")
_WORDS = frozenset({"id", "key", "role", "source", "status", "kind", "state", "cwd", "model"})
_VERBATIM = "api_content"
"""Hermes sends it instead of the content if it is there, so a part of it is worse than none."""
_PARTS = "\0json:"
"""Hermes' prefix of a content that is a list of parts: texts and images."""
_TEXT_PART = re.compile(r'"text":\s*"((?:[^"\\]|\\.)*)', re.DOTALL)
_WHAT = {
    CUT: "Rows of {table} in part, {fields} cut off and marked: {rows}.",
    LOST_VALUE: "Rows of {table} in part, {fields} lost: {rows}.",
    OMITTED: "Rows of {table} in part, {fields} lost (Hermes cannot use a piece of it): {rows}.",
    DOUBTFUL: "Rows of {table} in part, {fields} guessed or perhaps wrong: {rows}.",
    LEFT: "Rows of {table} in part, only {fields} left: {rows}.",
}


@dataclass
class PartialRows:
    """The incomplete rows of one table, by what is missing; each list is limited."""

    groups: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """By kind and fields: the keys of the rows."""
    more: dict[tuple[str, str], int] = field(default_factory=dict)
    """By kind and fields: how many rows are not listed."""

    def add(self, kind: str, fields: Iterable[str], key: object) -> None:
        """List a row; `fields` are the columns of this kind."""
        named = ", ".join(_plain(name) for name in fields)
        if not named:
            return
        group = (kind, named)
        if group not in self.groups and len(self.groups) >= GROUPS:
            group = (kind, "several fields")
        keys = self.groups.setdefault(group, [])
        if len(keys) < LISTED:
            keys.append(_plain(str(key)))
        else:
            self.more[group] = self.more.get(group, 0) + 1

    def sentences(self, table: str) -> Iterator[str]:
        """One sentence for each kind and set of fields."""
        for (kind, fields), keys in self.groups.items():
            rows = _joined(keys)
            if more := self.more.get((kind, fields)):
                rows = f"{rows} and {more:,} more"
            yield text(_WHAT[kind], table=shown([table]), fields=fields, rows=rows)


def keep_beginning(layout: Layout, row: Row) -> dict[str, list[str]]:
    """Keep the beginning of a truncated text, with a mark; return the columns by what they lost.

    A value that Hermes parses, and a name or id, is left out instead: half of it would be wrong.
    Only the first lost value has a beginning.
    """
    lost = [place for place, value in enumerate(row.values) if value is LOST]
    losses: dict[str, list[str]] = {}
    if lost and row.rest:
        place = lost.pop(0)
        kept = _beginning(layout.columns[place], row, place)
        losses[OMITTED if kept is None else CUT] = [layout.columns[place].name]
        row.values[place] = LOST if kept is None else kept
    losses[LOST_VALUE] = [layout.columns[place].name for place in lost]
    return losses


def _beginning(column: Column, row: Row, place: int) -> str | None:
    """The beginning of a text with the mark; None if the value must be left out."""
    kind = row.kinds[place]
    if kind < 13 or not kind & 1 or "TEXT" not in column.type:
        return None
    rest = row.rest.decode("utf-8", "ignore")
    name = column.name.lower()
    if column.key or name in _WORDS or name == _VERBATIM or name.endswith(_NAMES):
        return None
    if rest.startswith(_PARTS):
        return " ".join(_texts(rest)) + MARK
    if name in row_fit.JSON or name.endswith(_PARSED):
        return None
    if name not in PROSE and rest.lstrip()[:1] in ("{", "["):
        return None
    return rest + MARK


def _texts(parts: str) -> Iterator[str]:
    """The texts of a truncated list of parts, without its images."""
    for part in _TEXT_PART.findall(parts):
        for end in range(7):  # an escape at the end may be truncated
            try:
                yield str(json.loads(f'"{part[: len(part) - end]}"', strict=False))
            except ValueError:
                continue
            break


def doubtful_columns(layout: Layout, row: Row) -> list[str]:
    """The columns of a row that was read but may be wrong."""
    names = layout.names
    odd = [names[n] for n, value in enumerate(row.values) if type(value) is ReplacedText]
    return last_columns(layout, row) if row.bad_overflow and not odd else odd


def last_columns(layout: Layout, row: Row) -> list[str]:
    """The columns that can be on the last overflow page."""
    names = layout.names
    long = [n for n, kind in enumerate(row.kinds) if kind >= 12]
    return list(names[long[-1] : len(row.kinds)]) if long else []


def key_of(layout: Layout, row: Row) -> object:
    """What identifies a row for people: its primary key if that is one value, else its rowid."""
    keys = [place for place, column in enumerate(layout.columns) if column.key]
    if layout.rowid_column is None and len(keys) == 1 and keys[0] < len(row.values):
        value = row.values[keys[0]]
        if isinstance(value, str | int):
            return value
    return row.rowid if layout.rowid_column is not None else f"rowid {row.rowid}"


def key_in(layout: Layout, values: Mapping[str, Value], rowid: int) -> object:
    """The same for a row that is known by the names of its columns."""
    keys = [column.name for column in layout.columns if column.key]
    if layout.rowid_column is None and len(keys) == 1 and values.get(keys[0]) is not None:
        return values[keys[0]]
    return rowid if layout.rowid_column is not None else f"rowid {rowid}"


def _plain(name: str) -> str:
    """A name or key that is safe to show: a damaged file can contain any text."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "_-.:@+ ") else "?" for c in name)
    return kept if len(kept) <= 48 else kept[:45] + "..."


def _joined(keys: list[str]) -> str:
    """List keys in order; consecutive numbers become ranges."""
    if not all(key.isdecimal() for key in keys):
        return ", ".join(sorted(set(keys)))
    numbers = sorted({int(key) for key in keys})
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
