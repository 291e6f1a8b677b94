"""Let a full-text table read the view that it indexes, and nothing else.

SQLite up to 3.40 calls the JSON functions unsafe in a view unless the schema is trusted, and
newer releases of Hermes use them there. The schema comes from the file, so it is trusted only on
a connection whose authorizer permits harmless functions, ordinary tables, and no writing except
into the tables behind that index.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from hermes_doctor.sqlite import fulltext, inspector
from hermes_doctor.sqlite.catalog import FTS, SHADOWS, Catalog, Entry
from hermes_doctor.sqlite.options import options


@contextmanager
def permitted(connection: sqlite3.Connection, index: fulltext.Index) -> Iterator[None]:
    """Trust the schema as far as this index needs it, where its text comes from a view."""
    catalog = catalog_of(connection)
    source = options(index.sql).get("content", "")
    if not any((entry.kind, entry.name) == ("view", source) for entry in catalog.entries):
        yield
        return
    tables = [e.name for e in catalog.entries if e.kind == "table" and not FTS.match(e.sql)]
    own = [index.name, *(f"{index.name}_{shadow}" for shadow in SHADOWS)]
    connection.execute("PRAGMA trusted_schema=ON")
    connection.set_authorizer(inspector.reads_only([source, *tables], own))
    try:
        yield
    finally:
        connection.set_authorizer(None)
        connection.execute("PRAGMA trusted_schema=OFF")


def catalog_of(connection: sqlite3.Connection) -> Catalog:
    """The schema of a database that is open."""
    rows = connection.execute(
        "SELECT type, name, tbl_name, coalesce(rootpage, 0), coalesce(sql, '') FROM sqlite_master"
    )
    return Catalog(tuple(Entry(*row) for row in rows))
