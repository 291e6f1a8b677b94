"""Find columns, keys, indexes and triggers that differ from the release's declaration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from hermes_doctor.lazy import NamedTuple, pattern

if TYPE_CHECKING:
    from hermes_doctor.sqlite.blueprint import Blueprint, Column, TableBlueprint
    from hermes_doctor.sqlite.schema import Schema

_WORDS = pattern(r"--[^\n]*|'(?:[^']|'')*'|\w+|[^\w\s\"`\[\];]")


class ChangedPart(NamedTuple):
    """One part of the schema that differs from the release's declaration."""

    kind: str
    """column, key, index or trigger."""
    table: str
    name: str
    what: str
    """How it differs. Of the file's content it names only tables and columns."""
    effect: str
    """The effect on this release of Hermes: healed, harmless, silent or crash."""

    @property
    def breaks(self) -> bool:
        """Whether it causes an error that Hermes does not repair by itself."""
        return self.effect in ("silent", "crash")

    def __str__(self) -> str:
        if self.kind == "key":
            return f"the key of {self.table}"
        return f"{self.table}.{self.name}" if self.kind == "column" else self.name


def find_changed(found: Schema, plan: Blueprint) -> list[ChangedPart]:
    """List all differences that are more than spelling.

    An upgrade appends columns and keeps the rest of the SQL as an older release wrote it. So the
    SQL text of tables is not compared, only what it declares.
    """
    return [*_tables(found, plan), *_owned(found, plan)]


def _tables(found: Schema, plan: Blueprint) -> Iterator[ChangedPart]:
    for name, table in plan.tables.items():
        if found.declarations.get(name, table.sql) == table.sql:
            continue  # missing, or identical to the letter
        there = {column.name.lower(): column for column in found.tables.get(name, {}).values()}
        if not all(column.name.lower() in there for column in table.columns if column.key):
            continue  # a key column is missing, which is reported as missing
        yield from _key(table, there)
        for column in table.columns:
            mine = there.get(column.name.lower())
            if mine is not None:
                yield from _column(name, column, mine)


def _key(table: TableBlueprint, there: Mapping[str, Column]) -> Iterator[ChangedPart]:
    wanted = _keys({column.name.lower(): column for column in table.columns})
    mine = _keys(there)
    if mine == wanted:
        return
    lost = not mine or (len(mine) == 1 and mine[0][0] == wanted[0][0])
    what = f"{table.name} has {'no' if lost else 'another'} primary key"
    yield ChangedPart("key", table.name, table.name, what, table.if_unkeyed if lost else "crash")


def _keys(columns: Mapping[str, Column]) -> list[tuple[str, bool]]:
    """The columns of a key, and whether it is a rowid alias that SQLite numbers by itself."""
    parts = sorted((column.key, name) for name, column in columns.items() if column.key)
    numbered = len(parts) == 1 and columns[parts[0][1]].type.upper() == "INTEGER"
    return [(name, numbered) for _, name in parts]


def _column(table: str, column: Column, mine: Column) -> Iterator[ChangedPart]:
    place = f"{table}.{column.name}"
    told = []
    effects = {"harmless"}
    wanted, has = _value(column.default), _value(mine.default)
    if wanted != has:
        way = "loose" if column.notnull and not mine.notnull else "bare"
        effect = column.if_changed.get(way, "harmless") if wanted is not None else "harmless"
        if has is not None and effect == "crash":
            effect = "silent"  # a value is written, but not the one that Hermes expects
        effects.add(effect)
        told.append("has no default" if has is None else "has another default")
    if column.notnull and not mine.notnull and not column.key:
        told.append("may be NULL")
    if mine.notnull and not column.notnull and not column.key:
        effects.add("crash")
        told.append("must not be NULL")
    if _affinity(column.type) != _affinity(mine.type) and not column.key:
        told.append("has another type")
    if told:
        effect = next(one for one in ("crash", "silent", "healed", "harmless") if one in effects)
        yield ChangedPart("column", table, column.name, f"{place} {' and '.join(told)}", effect)


def _owned(found: Schema, plan: Blueprint) -> Iterator[ChangedPart]:
    for kind, parts, there in (
        ("index", plan.indexes, found.indexes),
        ("trigger", plan.triggers, found.triggers),
    ):
        for name, sql in parts.items():
            mine = there.get(name, sql)
            if mine == sql or _words(mine) == _words(sql):
                continue
            what = f"{name} is another {kind}"
            effect = plan.if_changed.get(name, "harmless")
            if kind == "index":
                unique, must = _unique(mine), _unique(sql)
                if unique and _words(mine)[2:] != _words(sql)[2:]:
                    effect, what = "crash", f"{name} lets a value be there only once"
                elif must and not unique:
                    what = f"{name} is not unique"
            yield ChangedPart(kind, plan.table_of[name], name, what, effect)


def _words(sql: str) -> list[str]:
    """The tokens of a statement, so that spaces, case and quotes make no difference."""
    words = [w if w[0] == "'" else w.lower() for w in _WORDS.findall(sql) if w[:2] != "--"]
    for place in range(len(words) - 2):
        if words[place : place + 3] == ["if", "not", "exists"]:
            return words[:place] + words[place + 3 :]
    return words


def _unique(sql: str) -> bool:
    return _words(sql)[1:2] == ["unique"]


def _value(default: str | None) -> str | None:
    """Normalise a default: 0, (0) and '0' are equal for a numeric column."""
    if default is None:
        return None
    text = default.strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    if text.upper() == "NULL":
        return None
    return text[1:-1] if text[:1] in ("'", '"') and len(text) > 1 else text.upper()


def _affinity(declared: str) -> str:
    """The affinity that SQLite derives from a declared type."""
    text = declared.upper()
    for words, affinity in (
        (("INT",), "integer"),
        (("CHAR", "CLOB", "TEXT"), "text"),
        (("BLOB",), "blob"),
        (("REAL", "FLOA", "DOUB"), "real"),
    ):
        if any(word in text for word in words):
            return affinity
    return "numeric" if text else "blob"
