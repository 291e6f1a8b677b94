"""Rebuild full-text tables that are not Hermes' own, from the text that they store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite import fulltext
from hermes_doctor.sqlite.column_rules import quote_name
from hermes_doctor.sqlite.repairs import fulltext_views
from hermes_doctor.sqlite.repairs.work import open_copy
from hermes_doctor.system.files import shown

TakeOut = Callable[[Path, Sequence[str]], None]


def rebuild(copy: Path, indexes: Sequence[fulltext.FulltextIndex], take_out: TakeOut) -> list[str]:
    """Save their rows and fill new tables with them; raise if that text is damaged too."""
    said = []
    for index in indexes:
        if index.contentless:
            raise CannotFix(
                text(
                    "{index} stores no text from which it could be rebuilt",
                    index=shown([index.name]),
                )
            )
        settings = [] if index.external else _put_by(copy, index)
        take_out(copy, [index.name])
        with open_copy(copy) as connection:
            if index.external:
                fulltext.fill(connection, index, permit=fulltext_views.allow_view)
            else:
                _fill(connection, index, settings)
            (rows,) = connection.execute(fulltext.row_count_sql(index)).fetchone()
        whence = "its table" if index.external else "the text it keeps"
        said.append(f"{shown([index.name])} was rebuilt from {whence}, {rows} rows.")
    return said


def _aside(index: fulltext.FulltextIndex) -> str:
    return quote_name(f"{index.name} put by")


def _put_by(copy: Path, index: fulltext.FulltextIndex) -> list[tuple[str, object]]:
    """Copy its text into a temporary table; return its settings."""
    try:
        with open_copy(copy, lenient=True) as connection:
            name = quote_name(index.name + "_content")
            connection.execute(f"CREATE TABLE {_aside(index)} AS SELECT * FROM {name}")
            try:
                return fulltext.read_settings(connection, quote_name(index.name + "_config"))
            except sqlite3.DatabaseError:  # settings only affect speed
                return []
    except CannotFix as why:
        raise CannotFix(
            text("the text that {index} stores is damaged, too", index=shown([index.name]))
        ) from why


def _fill(
    connection: sqlite3.Connection,
    index: fulltext.FulltextIndex,
    settings: list[tuple[str, object]],
) -> None:
    fulltext.create(connection, index)
    fulltext.refill(connection, index, _aside(index))
    fulltext.clear_settings(connection, index)
    fulltext.apply_settings(connection, index, settings)
    connection.execute(f"DROP TABLE {_aside(index)}")
