"""Create an empty database with the schema of a release."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.missing_parts import triggers_feeding


def create(path: Path, plan: Blueprint) -> sqlite3.Connection:
    """Create the database without its lazy tables and return an open connection.

    A full-text table that this SQLite cannot create is omitted with its triggers, as Hermes does.
    """
    db = sqlite3.connect(path)
    lazy = {table.name for table in plan.tables.values() if table.created_on_demand}
    for table in plan.tables.values():
        if not table.created_on_demand:
            db.execute(table.sql)
    for name, sql in plan.indexes.items():
        if plan.table_of[name] not in lazy:
            db.execute(sql)
    for sql in plan.views.values():
        db.execute(sql)
    for name, sql in plan.virtual.items():
        with contextlib.suppress(sqlite3.OperationalError):
            db.execute(sql)
            for trigger in triggers_feeding(plan, name):
                db.execute(plan.triggers[trigger])
    if plan.version is not None:
        db.execute("INSERT INTO schema_version VALUES (?)", (plan.version,))
    db.commit()
    return db
