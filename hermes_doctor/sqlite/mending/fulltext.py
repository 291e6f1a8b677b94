"""Full-text tables made anew from the rows that they index.

FTS5's own 'rebuild' reads its second copy of the text, so it keeps what is missing there and
fails on physical damage; and a damaged full-text table cannot even be dropped. So its row in
the schema goes first, which makes its shadow tables ordinary ones.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite import fulltext
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.catalog import FTS, SHADOWS
from hermes_doctor.sqlite.declaration import quoted
from hermes_doctor.sqlite.mending.work import at_work, complaints, forget


def rebuild(copy: Path, blueprint: Blueprint | None) -> list[str]:
    """Take the full-text tables out and make them anew, triggers included.

    What the file declares itself comes first; the blueprint, where there is one, has what it lost.
    """
    with at_work(copy, lenient=True) as connection:
        tables = _declared(connection, "table")
        triggers = _declared(connection, "trigger")
    virtual = {name: sql for name, sql in tables.items() if FTS.match(sql)}
    wanted = dict(blueprint.triggers) if blueprint else {}
    virtual = (dict(blueprint.virtual) if blueprint else {}) | virtual
    indexes = fulltext.known(virtual, wanted | triggers)
    if not indexes or not all(index.table or index.external for index in indexes):
        raise CannotFix("how its full-text tables are filled is not known")
    _take_out(copy, [index.name for index in indexes])
    said = []
    with at_work(copy) as connection:
        for index in indexes:
            fulltext.fill(connection, index)
            count = f"SELECT count(*) FROM {quoted(index.name)}"
            (rows,) = connection.execute(count).fetchone()
            said.append(f"{index.name} was made anew from {rows} rows.")
        for name, sql in wanted.items():
            if name not in triggers and any(index.name in sql for index in indexes):
                connection.execute(sql)
                said.append(f"The trigger {name} was made anew.")
    with at_work(copy) as connection:  # which has seen nothing of how they were made
        for index in indexes:
            fulltext.prove(connection, index)
        if complaints(connection, 1):  # pages of a table that the schema had lost already
            connection.execute("VACUUM")
    return said


def _declared(connection: sqlite3.Connection, kind: str) -> dict[str, str]:
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = ? AND typeof(sql) = 'text'", (kind,)
    )
    return {str(name): str(sql) for name, sql in rows}


def _take_out(copy: Path, tables: Sequence[str]) -> None:
    """Remove full-text tables that may be too damaged to be dropped."""
    _forget(copy, tables)
    stubborn = []
    for shadow in (f"{name}_{part}" for name in tables for part in SHADOWS):
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
