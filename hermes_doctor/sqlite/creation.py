"""Makes an empty database as a release makes it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.missing_parts import feeds


def create(path: Path, plan: Blueprint) -> sqlite3.Connection:
    """An open connection to it; what is made only when first needed is not there yet.

    A full-text table that this SQLite cannot make is left out with its triggers, as Hermes
    leaves it out.
    """
    db = sqlite3.connect(path)
    lazy = {table.name for table in plan.tables.values() if table.lazy}
    for table in plan.tables.values():
        if not table.lazy:
            db.execute(table.sql)
    for name, sql in plan.indexes.items():
        if plan.table_of[name] not in lazy:
            db.execute(sql)
    for name, sql in plan.virtual.items():
        with contextlib.suppress(sqlite3.OperationalError):
            db.execute(sql)
            for trigger in feeds(plan, name):
                db.execute(plan.triggers[trigger])
    if plan.version is not None:
        db.execute("INSERT INTO schema_version VALUES (?)", (plan.version,))
    db.commit()
    return db
