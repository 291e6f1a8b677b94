"""Read the declarations of a database, fill it, and take parts out of it or declare them otherwise.

Runs under the release's own interpreter, as a part of schema_lesson.py.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from typing import Any


def fill(db: sqlite3.Connection, *, strict: bool = True) -> None:
    """Insert a row into each empty table, since a table with rows accepts fewer new columns.

    If not `strict`, a table that rejects the row stays empty.
    """
    for table, known in schema(db)["tables"].items():
        if db.execute(f'SELECT 1 FROM "{table}"').fetchone() is None:
            marks = ", ".join("?" * len(known["columns"]))
            values = ["1" if column["type"] == "TEXT" else 1 for column in known["columns"]]
            with contextlib.nullcontext() if strict else contextlib.suppress(sqlite3.Error):
                db.execute(f'INSERT INTO "{table}" VALUES ({marks})', values)
    db.commit()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # only the main file is copied for the trials


def schema(db: sqlite3.Connection) -> dict[str, Any]:
    """Return tables with their columns, full-text tables, views, indexes, triggers, version."""
    master = db.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master"
        " WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    virtual = {name: {"sql": sql} for _, name, _, sql in master if "VIRTUAL" in sql[:20].upper()}
    tables: dict[str, Any] = {
        name: {"sql": sql, "columns": columns(db, name)}
        for kind, name, _, sql in master
        if kind == "table" and not any(name == v or name.startswith(f"{v}_") for v in virtual)
    }
    version = None
    if "schema_version" in tables:
        (version,) = db.execute("SELECT max(version) FROM schema_version").fetchone()
    return {
        "version": version,
        "tables": tables,
        "virtual": virtual,
        "views": {name: {"sql": sql} for kind, name, _, sql in master if kind == "view"},
        "indexes": {n: {"table": t, "sql": s} for kind, n, t, s in master if kind == "index"},
        "triggers": {n: {"table": t, "sql": s} for kind, n, t, s in master if kind == "trigger"},
    }


def columns(db: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    rows = db.execute(f'PRAGMA table_xinfo("{table}")').fetchall()
    return [
        {"name": r[1], "type": r[2], "notnull": bool(r[3]), "default": r[4], "key": r[5]}
        for r in rows
    ]


def take_away(db: sqlite3.Connection, table: str, column: str) -> None:
    """Remove a column with the indexes and triggers that need it."""
    others = _dependents(db, table)
    for kind, name, _ in others:
        db.execute(f'DROP {kind} "{name}"')
    try:
        db.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
    except sqlite3.OperationalError:  # a key, or part of another constraint
        rebuild_without(db, table, column)
    for _, _, sql in others:
        if not re.search(rf"\b{re.escape(column)}\b", sql):
            db.execute(sql)


def rebuild_without(db: sqlite3.Connection, table: str, column: str) -> None:
    """Rebuild a table without one column, keeping its other keys."""
    (sql,) = db.execute(
        "SELECT sql FROM sqlite_master WHERE type='table' AND name=?", (table,)
    ).fetchone()
    every = columns(db, table)
    kept = [one for one in every if one["name"] != column]
    alone = sum(bool(one["key"]) for one in every) == 1
    parts = []
    for one in kept:
        part = f'"{one["name"]}" {one["type"]}'
        if one["key"] and alone:
            part += " PRIMARY KEY" + (" AUTOINCREMENT" if "AUTOINCREMENT" in sql.upper() else "")
        elif one["notnull"]:
            part += " NOT NULL"
        parts.append(part + (f" DEFAULT {one['default']}" if one["default"] is not None else ""))
    keys = [f'"{one["name"]}"' for one in sorted(kept, key=lambda one: one["key"]) if one["key"]]
    if keys and not alone:
        parts.append(f"PRIMARY KEY ({', '.join(keys)})")
    names = ", ".join(f'"{one["name"]}"' for one in kept)
    _replace(db, table, f"({', '.join(parts)})", f"rowid, {names}")


def _dependents(db: sqlite3.Connection, table: str) -> list[tuple[str, str, str]]:
    """Let the table be replaced; return its indexes and triggers: kind, name, statement."""
    db.isolation_level = None
    db.execute("PRAGMA foreign_keys=OFF")
    db.execute("PRAGMA legacy_alter_table=ON")  # a view may need the table
    return db.execute(
        "SELECT type, name, sql FROM sqlite_master"
        " WHERE tbl_name=? AND type IN ('index', 'trigger') AND sql IS NOT NULL",
        (table,),
    ).fetchall()


def _replace(db: sqlite3.Connection, table: str, declaration: str, names: str) -> None:
    """Declare a table otherwise, and keep these columns of its rows."""
    db.execute(f"CREATE TABLE lesson {declaration}")
    db.execute(f'INSERT INTO lesson ({names}) SELECT {names} FROM "{table}"')
    db.execute(f'DROP TABLE "{table}"')
    db.execute(f'ALTER TABLE lesson RENAME TO "{table}"')


BARE, LOOSE, UNKEYED = "bare", "loose", "unkeyed"
"""A column without its default, or also without NOT NULL; a table without its primary key."""
_DEFAULT = r"\s+DEFAULT\s+(?:\([^()]*\)|'(?:[^']|'')*'|[^\s,]+)"
_KEY = r"\s*\bPRIMARY\s+KEY\b(?:\s+AUTOINCREMENT\b)?"


def redeclare(db: sqlite3.Connection, table: str, column: str, way: str) -> None:
    """Rebuild a table with one declaration changed, keeping its rows."""
    others = _dependents(db, table)
    (sql,) = db.execute(
        "SELECT sql FROM sqlite_master WHERE type='table' AND name=?", (table,)
    ).fetchone()
    names = ", ".join(f'"{known["name"]}"' for known in columns(db, table))
    _replace(db, table, declared_otherwise(sql, column, way), names)
    for _, _, statement in others:
        db.execute(statement)


def declared_otherwise(sql: str, column: str, way: str) -> str:
    """Return the columns and constraints of a CREATE TABLE with one declaration changed."""
    sql = re.sub(r"--[^\n]*", "", sql)
    start, end = sql.index("("), sql.rindex(")")
    parts = []
    for part in re.findall(
        r"(?:[^,()']|'(?:[^']|'')*'|\((?:[^()]|\([^()]*\))*\))+", sql[start + 1 : end]
    ):
        part = part.strip()
        if way == UNKEYED:
            part = (
                "" if part.upper().startswith("PRIMARY KEY") else re.sub(_KEY, "", part, flags=re.I)
            )
        elif part.split()[0].strip('"`[]') == column:
            if way in (BARE, LOOSE):
                part = re.sub(_DEFAULT, "", part, flags=re.IGNORECASE)
            if way == LOOSE:
                part = re.sub(r"\s+NOT\s+NULL", "", part, flags=re.IGNORECASE)
        parts += [part] if part else []
    return f"({', '.join(parts)}){sql[end + 1 :]}"
