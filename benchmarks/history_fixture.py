"""Multiply a message history with a real release's own schema and triggers.

Run by the Python of that release: `python history_fixture.py DATABASE TIMES`. The sessions and
messages of the database are copied under other names until they exist TIMES times; Hermes' own
triggers fill its indexes and search indexes.
"""

from __future__ import annotations

import sys
from pathlib import Path

NEW = {"id": "id || '-{}'", "session_id": "session_id || '-{}'", "title": "title || ' {}'"}
"""Columns that need another value in every copy of a row."""


def main() -> None:
    """Write all copies, each in one transaction."""
    from hermes_state import SessionDB  # type: ignore[import-not-found]

    path, times = Path(sys.argv[1]), int(sys.argv[2])
    history = SessionDB(path)
    connection = history._conn
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA wal_autocheckpoint=20000")
    last = connection.execute("SELECT max(id) FROM messages").fetchone()[0]
    for number in range(2, times + 1):
        for table, leave in (("sessions", ""), ("messages", "id")):
            known = connection.execute(f"PRAGMA table_info({table})").fetchall()
            names = [row[1] for row in known if row[1] != leave]
            values = [NEW.get(name, name).format(number) for name in names]
            limit = f"id <= {last}" if table == "messages" else "instr(id, '-') = 0"
            connection.execute(
                f"INSERT INTO {table} ({', '.join(names)}) "
                f"SELECT {', '.join(values)} FROM {table} WHERE {limit} ORDER BY rowid"
            )
        connection.commit()
    history.close()


if __name__ == "__main__":
    main()
