"""The blueprint of a database that a release's own code has just made."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from hermes_doctor.sqlite.blueprint import Blueprint, Column, Table

SHADOWS = ("_data", "_idx", "_content", "_docsize", "_config")


def blueprint_of(path: Path, release: str = "") -> Blueprint:
    """Read it back; the file must be at rest."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
        rows = db.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        kinds: dict[str, dict[str, str]] = {"table": {}, "index": {}, "trigger": {}, "view": {}}
        for kind, name, sql in rows:
            kinds[kind][name] = sql
        virtual = {
            n: s for n, s in kinds["table"].items() if s.upper().startswith("CREATE VIRTUAL")
        }
        hidden = {name + suffix for name in virtual for suffix in SHADOWS}
        tables = {
            name: Table(name, sql, _columns(db, name))
            for name, sql in kinds["table"].items()
            if name not in virtual and name not in hidden and not name.startswith("sqlite_")
        }
        version = None
        if "schema_version" in tables:
            (version,) = db.execute("SELECT version FROM schema_version").fetchone()
    return Blueprint(path.name, release, tables, virtual, kinds["index"], kinds["trigger"], version)


def _columns(db: sqlite3.Connection, table: str) -> tuple[Column, ...]:
    return tuple(
        Column(name, kind, bool(notnull), default, key)
        for _, name, kind, notnull, default, key, _ in db.execute(f'PRAGMA table_xinfo("{table}")')
    )
