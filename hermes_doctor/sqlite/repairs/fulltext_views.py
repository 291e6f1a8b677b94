"""Let a full-text table read the view that it indexes, and nothing else.

SQLite up to 3.40 rejects JSON functions in a view unless the schema is trusted, and newer releases
of Hermes use them there. The schema comes from the file, so it is trusted only on a connection
whose authorizer permits harmless functions, ordinary tables, and writing only to the shadow tables
of that index.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite import fulltext, inspector
from hermes_doctor.sqlite.catalog import FTS, SHADOWS, Catalog, SchemaRow
from hermes_doctor.sqlite.fulltext_options import options

STEPS = 100_000
"""SQLite instructions after which the limit is checked."""
LEAST, PER_PAGE = 1000, 10
"""How many such checks are allowed: for any database, and for each of its pages. Hermes' own views
need a few instructions for each row, and a page has about ten rows."""


@contextmanager
def allow_view(connection: sqlite3.Connection, index: fulltext.FulltextIndex) -> Iterator[None]:
    """Trust the schema within limits while an index reads its text from a view."""
    catalog = catalog_of(connection)
    source = options(index.sql).get("content", "")
    if not any((entry.kind, entry.name) == ("view", source) for entry in catalog.entries):
        yield
        return
    tables = [e.name for e in catalog.entries if e.kind == "table" and not FTS.match(e.sql)]
    own = [index.name, *(f"{index.name}_{shadow}" for shadow in SHADOWS)]
    work = _Work(connection)
    connection.execute("PRAGMA trusted_schema=ON")
    connection.set_authorizer(inspector.reads_only([source, *tables], own))
    connection.set_progress_handler(work.goes_on_too_long, STEPS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if not work.stopped:
            raise
        raise CannotFix(
            text("the view {source} takes too long to evaluate", source=source)
        ) from error
    finally:
        connection.set_progress_handler(None, 0)
        connection.set_authorizer(None)
        connection.execute("PRAGMA trusted_schema=OFF")


class _Work:
    """Limits the work of a view by the size of the database, and lets Ctrl-C interrupt it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        [(pages,)] = connection.execute("PRAGMA page_count").fetchall()
        self.left = LEAST + PER_PAGE * int(pages)
        self.stopped = False

    def goes_on_too_long(self) -> bool:
        """Called by SQLite every STEPS instructions; True stops the statement."""
        self.left -= 1
        self.stopped = self.left < 0
        return self.stopped


def catalog_of(connection: sqlite3.Connection) -> Catalog:
    """Read the schema of an open database."""
    rows = connection.execute(
        "SELECT type, name, tbl_name, coalesce(rootpage, 0), coalesce(sql, '') FROM sqlite_master"
    )
    return Catalog(tuple(SchemaRow(*row) for row in rows))
