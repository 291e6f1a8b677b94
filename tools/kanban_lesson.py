"""Runs under a release's own interpreter: its kanban schema, and which lost columns it heals.

Prints one JSON document. Imports nothing of this project: the release is alone with itself.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any


def main() -> None:
    """Make a board, read its schema back, then take each column away in turn."""
    folder = Path(tempfile.mkdtemp())
    os.environ["HERMES_HOME"] = str(folder)
    from hermes_cli import kanban_db  # type: ignore[import-not-found]

    def board(name: str) -> Path:
        path = folder / name
        connection = kanban_db.connect(path)
        kanban_db.create_task(connection, title="a task", body="its text")
        connection.close()
        return path

    fresh = schema(board("fresh.db"))
    n = 0
    for table, known in fresh["tables"].items():
        for column in known["columns"]:
            n += 1
            known["columns"][column]["healed"] = heals(kanban_db, board(f"{n}.db"), table, column)
    json.dump(fresh, sys.stdout)
    shutil.rmtree(folder)


def schema(path: Path) -> dict[str, Any]:
    """Tables with their columns as declared, and the indexes."""
    connection = sqlite3.connect(path)
    tables: dict[str, Any] = {}
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%'"
    ):
        rows = connection.execute(f"PRAGMA table_info({name})").fetchall()
        tables[name] = {
            "columns": {
                column: {"type": kind, "notnull": bool(must), "default": default, "key": key}
                for _, column, kind, must, default, key in rows
            }
        }
    indexes = {
        name: {
            "table": table,
            "columns": [row[2] for row in connection.execute(f"PRAGMA index_info({name})")],
            "unique": sql.upper().startswith("CREATE UNIQUE"),
        }
        for name, table, sql in connection.execute(
            "SELECT name, tbl_name, sql FROM sqlite_master WHERE type='index' AND sql IS NOT NULL"
        ).fetchall()
    }
    connection.close()
    return {"tables": tables, "indexes": indexes}


def heals(kanban_db: Any, path: Path, table: str, column: str) -> bool:
    """Whether the next start of this release brings a lost column back."""
    connection = sqlite3.connect(path)
    take_away(connection, table, column)
    connection.close()
    lost = path.with_name(path.stem + "-lost.db")  # another path: a start caches the first one
    path.rename(lost)
    try:
        connection = kanban_db.connect(lost)
        kanban_db.list_tasks(connection)
        names = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        connection.close()
    except Exception:  # noqa: BLE001 (whatever the release dies of, it did not heal)
        return False
    return column in names


def take_away(connection: sqlite3.Connection, table: str, column: str) -> None:
    """Rebuild the table without one column, and drop the indexes that need it."""
    (sql,) = connection.execute(
        "SELECT sql FROM sqlite_master WHERE type='table' AND name=?", (table,)
    ).fetchone()
    kept = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != column]
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type='index' AND tbl_name=? AND sql NOT NULL",
        (table,),
    ).fetchall()
    types = {row[1]: row[2] for row in connection.execute(f"PRAGMA table_info({table})")}
    extra = {
        row[1]: (" NOT NULL" if row[3] else "") + (f" DEFAULT {row[4]}" if row[4] else "")
        for row in connection.execute(f"PRAGMA table_info({table})")
    }
    key = [
        row[1]
        for row in sorted(connection.execute(f"PRAGMA table_info({table})"), key=lambda r: r[5])
        if row[5] and row[1] != column
    ]
    parts = [f"{name} {types[name]}{extra[name]}" for name in kept]
    if key == ["id"] and "AUTOINCREMENT" in sql.upper():
        parts = [p + " PRIMARY KEY AUTOINCREMENT" if p.startswith("id ") else p for p in parts]
    elif key:
        parts.append(f"PRIMARY KEY ({', '.join(key)})")
    names = ", ".join(kept)
    connection.execute(f"CREATE TABLE lesson ({', '.join(parts)})")
    connection.execute(f"INSERT INTO lesson ({names}) SELECT {names} FROM {table}")
    connection.execute(f"DROP TABLE {table}")
    connection.execute(f"ALTER TABLE lesson RENAME TO {table}")
    for _, index in indexes:
        if not re.search(rf"\b{column}\b", index.split("(", 1)[1]):
            connection.execute(index)
    connection.commit()


if __name__ == "__main__":
    main()
