"""Full-text tables made anew from the rows that they index.

FTS5's own 'rebuild' reads its second copy of the text, so it keeps what is missing there and
fails on physical damage; and a damaged full-text table cannot even be dropped. So its row in
the schema goes first, which makes its shadow tables ordinary ones.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.mending.work import at_work, complaints, forget, quoted, transaction

SHADOWS = ("data", "idx", "content", "docsize", "config")
_VIRTUAL = re.compile(
    r"\s*CREATE\s+VIRTUAL\s+TABLE\b.*?\bUSING\s+fts5\b", re.IGNORECASE | re.DOTALL
)
_FILL = re.compile(
    r"AFTER\s+INSERT\s+ON\s+\"?(?P<table>\w+)\"?\s+BEGIN\s+"
    r"INSERT\s+INTO\s+\"?(?P<fts>\w+)\"?\s*\((?P<columns>[^()]*)\)\s*"
    r"VALUES\s*\((?P<values>.*)\)\s*;\s*END\s*;?\s*$",
    re.IGNORECASE | re.DOTALL,
)


def rebuild(copy: Path, blueprint: Blueprint | None) -> list[str]:
    """Take the full-text tables out and make them anew, triggers included."""
    with at_work(copy, lenient=True) as connection:
        declared = _declared(connection, "table")
        triggers = _declared(connection, "trigger")
    virtual = {name: sql for name, sql in declared.items() if _VIRTUAL.match(sql)}
    for name, sql in (blueprint.virtual if blueprint else {}).items():
        virtual.setdefault(name, sql)
    wanted = dict(blueprint.triggers) if blueprint else {}
    fills = {
        found["fts"]: found
        for sql in (wanted | triggers).values()
        if (found := _FILL.search(sql)) and found["fts"] in virtual
    }
    if not virtual or set(fills) != set(virtual):
        raise CannotFix("how its full-text tables are filled is not known")
    _take_out(copy, virtual)
    said = []
    with at_work(copy) as connection:
        for name, sql in virtual.items():
            count = _fill(connection, name, sql, fills[name])
            said.append(f"{name} was made anew from {count} rows.")
        for name, sql in wanted.items():
            if name not in triggers and any(fts in sql for fts in virtual):
                connection.execute(sql)
                said.append(f"The trigger {name} was made anew.")
        verify(connection, virtual)
        if complaints(connection, 1):  # pages of a table that the schema had lost already
            connection.execute("VACUUM")
    return said


def _declared(connection: sqlite3.Connection, kind: str) -> dict[str, str]:
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = ? AND typeof(sql) = 'text'", (kind,)
    )
    return {str(name): str(sql) for name, sql in rows}


def _take_out(copy: Path, virtual: Mapping[str, str]) -> None:
    """Remove full-text tables that may be too damaged to be dropped."""
    _forget(copy, list(virtual))
    stubborn = []
    for shadow in (f"{name}_{part}" for name in virtual for part in SHADOWS):
        try:
            with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                connection.execute(f"DROP TABLE IF EXISTS {quoted(shadow)}")
        except sqlite3.DatabaseError:
            stubborn.append(shadow)
    if stubborn:
        _forget(copy, stubborn)
        with at_work(copy) as connection:
            connection.execute("VACUUM")  # their pages belong to nobody now


def _forget(copy: Path, tables: Sequence[str]) -> None:
    """Take tables out of the schema, doubled rows included; their triggers stay."""
    marks = ", ".join("?" for _ in tables)
    forget(copy, f"tbl_name IN ({marks}) AND type != 'trigger'", tables)


def _fill(connection: sqlite3.Connection, name: str, sql: str, fill: re.Match[str]) -> int:
    """Declare one full-text table and put every row into it as the trigger would have."""
    values = re.sub(r"\bnew\.", "", fill["values"], flags=re.IGNORECASE)
    with transaction(connection):
        connection.execute(sql)
        done = connection.execute(
            f"INSERT INTO {quoted(name)} ({fill['columns']}) "
            f"SELECT {values} FROM {quoted(fill['table'])}"
        )
    return done.rowcount


def verify(connection: sqlite3.Connection, tables: Mapping[str, str] | Sequence[str]) -> None:
    """Let FTS5 compare each index with its content; raises when they differ."""
    for name in tables:
        connection.execute(
            f"INSERT INTO {quoted(name)} ({quoted(name)}) VALUES ('integrity-check')"
        )
