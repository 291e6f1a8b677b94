"""Report from inside a release its database schemas and which parts it cannot work without.

    python -I schema_lesson.py learn            prints the schema of every database, and for each
                                                part what the release does if it is missing
    python -I schema_lesson.py visit FOLDER     uses every database of every home in the folder;
                                                in the one called `fresh` it creates them all

`learn` reads from standard input the statements that create each database as older releases left
it, and also prints what these files are like after this release has used them.

Runs under the release's own interpreter, which is given the modules that are imported here and
nothing else of this project.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from hermes_doctor.operations.learning.lessons.schema_changes import (
    BARE,
    LOOSE,
    UNKEYED,
    columns,
    fill,
    redeclare,
    schema,
    take_away,
)
from hermes_doctor.operations.learning.lessons.schema_uses import (
    KINDS,
    USES,
    Use,
    optional,
    start_state,
)


def learn(root: Path, older: dict[str, list[list[str]]]) -> dict[str, Any]:
    """Describe every database that this release can create."""
    answers: dict[str, Any] = {}
    for name, use in USES.items():
        home = fresh(root / "made")
        try:
            use(home)
        except ImportError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        with contextlib.closing(sqlite3.connect(home / name)) as db:
            fill(db)
            answer = schema(db)
        if name == "state.db":
            start_state(fresh(root / "started"))
            with contextlib.closing(sqlite3.connect(root / "started" / name)) as db:
                at_once = schema(db)["tables"]
            for table, known in answer["tables"].items():
                known["lazy"] = table not in at_once
                there = [column["name"] for column in at_once.get(table, known)["columns"]]
                late = [one["name"] for one in known["columns"] if one["name"] not in there]
                known |= {"late": late} if late else {}
        answer["layouts"] = [
            layout for made in older.get(name, ()) for layout in upgraded(root, name, use, made)
        ]
        trial = Trial(home, root, name, use)
        for kind in KINDS:
            for part, known in answer[kind].items():
                known["if_missing"] = trial.without(kind, part)
        for table, known in answer["tables"].items():
            columns = known["columns"]
            for column in columns:
                column["if_missing"] = (
                    trial.without_column(table, column["name"])
                    if len(columns) > 1
                    else known["if_missing"]  # without its only column there is no table
                )
                if changed := trial.with_other_column(table, column):
                    column["if_changed"] = changed
            known["if_unkeyed"] = trial.without_key(table, columns)
        for kind in ("indexes", "triggers"):
            for part, known in answer[kind].items():
                known["if_changed"] = trial.with_other(kind, part, known["sql"])
        answers[name] = answer
    return answers


def upgraded(root: Path, name: str, use: Use, made: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the declarations of a file of an older release after this one has used it."""
    home = fresh(Path(tempfile.mkdtemp(dir=root)))
    with contextlib.closing(sqlite3.connect(home / name)) as db, db:
        for sql in made:
            db.execute(sql)
        fill(db, strict=False)  # a release may treat a search index without rows differently
    try:
        use(home)
    except Exception as error:  # noqa: BLE001 (it may refuse a file that is too old)
        print(f"{name}: {error}", file=sys.stderr)
        return
    with contextlib.closing(sqlite3.connect(home / name)) as db:
        found = schema(db)
    yield {
        "tables": {
            table: [column["name"] for column in known["columns"]]
            for table, known in found["tables"].items()
        },
        **{
            kind: {part: known["sql"] for part, known in found[kind].items()}
            for kind in ("virtual", "views", "triggers")
        },
    }


def visit(folder: Path) -> None:
    """Use the databases of each home; those in it afterwards were opened by this release."""
    for home in sorted(folder.iterdir()):
        os.environ["HERMES_HOME"] = str(home)
        for name, use in USES.items():
            if home.name == "fresh" or (home / name).exists():
                with contextlib.suppress(ImportError):
                    use(home)


def fresh(home: Path) -> Path:
    """Create an empty home, and set HERMES_HOME to it."""
    shutil.rmtree(home, ignore_errors=True)
    (home / "cron").mkdir(parents=True)
    (home / "gateway").mkdir()
    os.environ["HERMES_HOME"] = str(home)
    return home


class Trial:
    """Remove or change one part of a database, and let the release use the rest."""

    def __init__(self, made: Path, root: Path, name: str, use: Use) -> None:
        self.made, self.root, self.name, self.use = made, root, name, use

    def without(self, kind: str, part: str) -> str:
        """Return the effect of removing this table, full-text table, view, index or trigger."""
        word = {
            **{"tables": "TABLE", "virtual": "TABLE", "views": "VIEW"},
            **{"indexes": "INDEX", "triggers": "TRIGGER"},
        }

        def drop(db: sqlite3.Connection) -> None:
            db.execute("PRAGMA foreign_keys=OFF")
            db.execute(f'DROP {word[kind]} "{part}"')

        return self._verdict(drop, lambda db: part in schema(db)[kind])

    def without_column(self, table: str, column: str) -> str:
        """Return the effect of removing this column; healed means that its key is back too."""

        def key(db: sqlite3.Connection) -> object:
            return {known["name"]: known["key"] for known in columns(db, table)}.get(column)

        with contextlib.closing(sqlite3.connect(self.made / self.name)) as db:
            before = key(db)
        return self._verdict(lambda db: take_away(db, table, column), lambda db: key(db) == before)

    def with_other_column(self, table: str, column: dict[str, Any]) -> dict[str, str]:
        """Return the effect of removing a column's default, unless that is harmless."""
        name = column["name"]
        if column["default"] is None:
            return {}

        def same(db: sqlite3.Connection) -> bool:
            wanted = [column[fact] for fact in ("type", "notnull", "default", "key")]
            found = {one["name"]: one for one in columns(db, table)}[name]
            return [found[fact] for fact in ("type", "notnull", "default", "key")] == wanted

        def unfilled(db: sqlite3.Connection) -> bool:
            sql = f'SELECT 1 FROM "{table}" WHERE "{name}" IS NULL'
            return db.execute(sql).fetchone() is not None

        verdicts = {
            way: self._verdict(
                partial(redeclare, table=table, column=name, way=way), same, unfilled
            )
            for way in ([BARE, LOOSE] if column["notnull"] else [BARE])
        }
        return {way: verdict for way, verdict in verdicts.items() if verdict != "harmless"}

    def without_key(self, table: str, every: list[dict[str, Any]]) -> str:
        """Return the effect of a missing primary key: duplicate rows, or rows with a NULL key."""
        keys = [f'"{one["name"]}"' for one in every if one["key"]]
        if not keys:
            return "harmless"

        def keyed(db: sqlite3.Connection) -> bool:
            return any(column["key"] for column in columns(db, table))

        def doubled(db: sqlite3.Connection) -> bool:
            fields = ", ".join(keys)
            unnamed = " OR ".join(f"{key} IS NULL" for key in keys)
            twice = f'SELECT 1 FROM "{table}" GROUP BY {fields} HAVING count(*) > 1 OR {unnamed}'
            return db.execute(twice).fetchone() is not None

        return self._verdict(lambda db: redeclare(db, table, "", UNKEYED), keyed, doubled)

    def with_other(self, kind: str, part: str, sql: str) -> str:
        """Return the effect of a unique index made non-unique, or of a trigger made empty."""
        if kind == "indexes" and "UNIQUE" not in sql[:20].upper():
            return "harmless"
        other = re.sub(r"\bUNIQUE\s+", "", sql, count=1, flags=re.IGNORECASE)
        if kind == "triggers":
            other = re.sub(r"\bBEGIN\b.*", "BEGIN SELECT 1; END", sql, flags=re.DOTALL)
        word = {"indexes": "INDEX", "triggers": "TRIGGER"}[kind]

        def harm(db: sqlite3.Connection) -> None:
            db.execute(f'DROP {word} "{part}"')
            db.execute(other)

        return self._verdict(harm, lambda db: schema(db)[kind][part]["sql"] != other)

    def _verdict(
        self,
        harm: Callable[[sqlite3.Connection], None],
        back: Callable[[sqlite3.Connection], bool],
        seen: Callable[[sqlite3.Connection], bool] | None = None,
    ) -> str:
        """Return healed, crash or silent; with `seen` also harmless, if no row shows the change."""
        home = fresh(Path(tempfile.mkdtemp(dir=self.root)))  # releases remember their home
        path = home / self.name
        shutil.copyfile(self.made / self.name, path)
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            harm(db)
        try:
            self.use(home)
        except Exception:  # noqa: BLE001 (any failure is a crash)
            return "crash"
        with contextlib.closing(sqlite3.connect(path)) as db:
            if back(db):
                return "healed"
            return "silent" if seen is None or seen(db) else "harmless"


def hurry() -> None:
    """Let nothing wait for the disk: the files of the trials are thrown away."""
    connect = sqlite3.connect

    def quick(*args: Any, **options: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*args, **options)
        with contextlib.suppress(sqlite3.Error):
            db.execute("PRAGMA synchronous=OFF")
        return db

    sqlite3.connect = quick  # type: ignore[assignment]
    os.fsync = os.fdatasync = lambda *_: None
    # Both load settings and plugins again for every new home.
    state, board = optional("hermes_state"), optional("hermes_cli.kanban_db")
    if hasattr(state, "resolve_journal_mode"):
        mode = state.resolve_journal_mode()
        state.resolve_journal_mode = lambda *_, **__: mode
    if hasattr(board, "_fire_kanban_lifecycle_hook"):
        board._fire_kanban_lifecycle_hook = lambda *_, **__: None


def main() -> None:
    """Learn, or visit the homes of a folder."""
    logging.disable(logging.CRITICAL)
    if sys.argv[1] == "visit":
        visit(Path(sys.argv[2]))
        print("null")
        return
    root = Path(tempfile.mkdtemp())
    hurry()
    try:
        print(json.dumps(learn(root, json.load(sys.stdin) or {})))
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
