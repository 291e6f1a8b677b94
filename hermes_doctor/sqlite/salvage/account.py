"""Count saved, incomplete and lost rows of a salvage, and describe the result in sentences."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hermes_doctor.core.message import count, sentences, text
from hermes_doctor.core.system.files import shown
from hermes_doctor.sqlite.blueprint import Column
from hermes_doctor.sqlite.pages import LOST, ReplacedText, Row, Value
from hermes_doctor.sqlite.salvage import row_fit
from hermes_doctor.sqlite.salvage.layouts import Layout

MARK = " [hermes-doctor: the rest of this text was lost]"
"""The end of a text of which only the beginning is left."""
LISTED = 40
"""The most rows of a table that the receipt lists for one set of fields."""
GROUPS = 12
"""The most sets of fields of a table that the receipt lists."""
CUT, LOST_VALUE, OMITTED, DOUBTFUL, LEFT = "cut", "lost", "omitted", "doubtful", "left"
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
    if name not in row_fit.PROSE and rest.lstrip()[:1] in ("{", "["):
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


FROM_FULLTEXT_COPIES = "the full-text copies"
FROM_INDEXES = "the indexes"
FROM_TRANSCRIPTS = "the transcripts"
ONLY_FITTING_VALUE = "the only value that fits"


@dataclass
class TableResult:
    """The rows of one table, counted while they are salvaged; each is counted once."""

    name: str
    saved: int = 0
    """Rows read completely from the table's own pages."""
    restored: dict[str, int] = field(default_factory=dict)
    """By source: rows that were completed with its help."""
    partial: int = 0
    """Rows with some values lost or guessed."""
    lost: int = 0
    """Rows that are known to have existed and are not in the new database."""
    unsure: bool = False
    """More rows may be lost than are known: no complete index is left."""
    added: Counter[str] = field(default_factory=Counter)
    """By source: rows that only another file has; they may have been deleted since."""
    incomplete: PartialRows = field(default_factory=PartialRows)
    """The rows in part and their fields."""

    def restore(self, source: str, count: int = 1) -> None:
        """Count rows that were completed from a source."""
        if count:
            self.restored[source] = self.restored.get(source, 0) + count

    def change(self, count: int, source: str = "") -> None:
        """Recount saved rows that were corrected from a source, or that lost a value."""
        count = min(count, self.saved)
        self.saved -= count
        if source:
            self.restore(source, count)
        else:
            self.partial += count

    @property
    def there(self) -> int:
        """The original number of rows, as far as known."""
        return self.saved + sum(self.restored.values()) + self.partial + self.lost

    @property
    def kept(self) -> int:
        """Rows in the new database."""
        return self.there - self.lost + sum(self.added.values())

    @property
    def sentence(self) -> str:
        """The result for this table in one line."""
        parts = [f"{self.saved:,} saved"]
        parts += [f"{rows:,} restored from {source}" for source, rows in self.restored.items()]
        parts += [f"{self.partial:,} in part"] if self.partial else []
        parts += [f"{self.lost:,} lost"] if self.lost else []
        template = "{table}: {results} of {rows}."
        if self.unsure:
            template = "{table}: {results} of at least {rows}."
        rows, results = count(self.there, "row"), ", ".join(parts)
        more = (
            "{number:,} more came from {source}. They may have been deleted earlier; no record of "
            "that is left."
        )
        return sentences(
            text(template, table=shown([self.name]), results=results, rows=rows),
            *(text(more, number=number, source=source) for source, number in self.added.items()),
        )


@dataclass(frozen=True)
class SalvageResult:
    """The result of salvaging a whole database."""

    tables: tuple[TableResult, ...]
    notes: tuple[str, ...] = ()
    """What else was found and done, one sentence each."""
    proofs: tuple[str, ...] = ()
    """The checks that the new database passed."""
    lost: tuple[str, ...] = ()
    """Tables, views and the like that are not in the new database, by kind and name."""

    def table(self, name: str) -> TableResult | None:
        """The result for one table."""
        return next((table for table in self.tables if table.name == name), None)

    @property
    def has_rows(self) -> bool:
        """Whether any row was saved; every release knows its own schema version."""
        return any(table.kept for table in self.tables if table.name != "schema_version")

    @property
    def complete(self) -> bool:
        """Every row that there was is there again, as it was."""
        short = any(table.lost or table.partial or table.unsure for table in self.tables)
        return not (short or self.lost)

    @property
    def forecast(self) -> str:
        """What a trial run says will be lost, in one sentence; "" if nothing will be."""
        if self.complete:
            return ""
        wanted = self.table("messages")
        noun = "message" if wanted and wanted.there else "row"
        tables = (wanted,) if wanted and wanted.there else self.tables
        there = sum(table.there for table in tables)
        cut = sum(table.partial for table in tables)
        lost = sum(table.lost for table in tables)
        saved = there - cut - lost
        if any(table.unsure for table in tables):
            template = "Saves {saved}; {partial} in part; at least {lost} lost."
            sentence = text(template, saved=count(saved, noun), partial=cut, lost=lost)
        else:
            template = "Saves {saved} of {there}; {partial} in part; {lost} lost."
            known = count(there, noun)
            sentence = text(template, saved=f"{saved:,}", there=known, partial=cut, lost=lost)
        return sentences(sentence, *self._other_losses(tables), "The damaged file is kept.")

    def _other_losses(self, others: tuple[TableResult, ...]) -> Iterator[str]:
        """What is lost besides the rows of these tables, one sentence for each table."""
        for table in self.tables:
            if table in others or not (table.partial or table.lost):
                continue
            template = "{table}: {partial:,} in part; {lost:,} lost."
            if table.unsure:
                template = "{table}: {partial:,} in part; at least {lost:,} lost."
            name = shown([table.name])
            yield text(template, table=name, partial=table.partial, lost=table.lost)
        if self.lost:
            # not their names: in a damaged schema, a name can be any bytes of the file
            yield text("Lost completely: {parts}.", parts=count(len(self.lost), "part"))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything, for people; no content of any row is in it."""
        tables = [table.sentence for table in self.tables if table.there or table.added]
        rows = [line for table in self.tables for line in table.incomplete.sentences(table.name)]
        return (*(f"Lost: {part}." for part in self.lost), *tables, *rows, *self.notes)
