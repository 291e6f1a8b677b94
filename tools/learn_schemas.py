"""Write hermes_doctor/knowledge/schemas/*.json: the database schemas of each release.

    python -m tools.learn_schemas            all releases, a few minutes
    python -m tools.learn_schemas 0.19.0     prints the answers of one release

Each file is the atlas of one database. It lists every variant of every part, with the releases
that have this variant and what they do if the part is missing; and for each table the possible
orders of its columns in a file, since an upgrade adds columns at the end.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools import real_home, releases, schema_lesson

TARGET = Path(__file__).parent.parent / "hermes_doctor" / "knowledge" / "schemas"
KINDS = ("tables", "virtual", "indexes", "triggers")
WIDTH = 100

Orders = dict[str, list[str]]
"""The columns of each table of one file, in the order in which they are stored."""


def ask(version: str) -> dict[str, Any]:
    """Return what one release reports about its databases."""
    answer: dict[str, Any] = json.loads(_lesson(version, "learn"))
    return answer


def _lesson(version: str, *args: str) -> str:
    with tempfile.TemporaryDirectory() as nowhere:
        done = subprocess.run(
            [str(releases.python_of(version)), "-I", schema_lesson.__file__, *args],
            env=real_home.environment(Path(nowhere) / "home"),
            cwd=nowhere,
            capture_output=True,
            text=True,
            timeout=600,
        )
    if done.returncode:
        raise RuntimeError(f"{version}: {done.stderr.strip()[-500:]}")
    return done.stdout


def upgrade_paths(versions: tuple[str, ...] = releases.ALL) -> dict[str, dict[str, list[Orders]]]:
    """Return for each release and database the file layouts that it may have worked on.

    Each release in turn creates new files, and opens one of every layout that earlier releases
    left behind. This covers every upgrade path, each of them once.
    """
    found: dict[str, dict[str, list[Orders]]] = {}
    with tempfile.TemporaryDirectory() as place:
        pool: list[tuple[str, Path, Orders]] = []
        for version in versions:
            folder = Path(place) / version
            for n, (name, path, _) in enumerate(pool):
                home = empty(folder / str(n))
                shutil.copyfile(path, home / name)
            empty(folder / "fresh")
            visit(version, folder)
            seen = found.setdefault(version, {})
            for home in sorted(folder.iterdir(), reverse=True):  # the new home first
                for name in schema_lesson.USES:
                    path = home / name
                    if path.exists():
                        orders = _orders(path)
                        layouts = seen.setdefault(name, [])
                        if orders not in layouts:
                            layouts.append(orders)
                        if (name, orders) not in [(one, known) for one, _, known in pool]:
                            pool.append((name, path, orders))
    return found


def visit(version: str, folder: Path) -> None:
    """Let a release use the databases of each home in the folder; raises if it fails on one."""
    _lesson(version, "visit", str(folder))


def empty(home: Path) -> Path:
    """Create an empty home with the folders of its databases."""
    for folder in ("cron", "gateway"):
        (home / folder).mkdir(parents=True)
    return home


def _orders(path: Path) -> Orders:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # only the main file is copied
        return {
            table: [column["name"] for column in known["columns"]]
            for table, known in schema_lesson.schema(db)["tables"].items()
        }


def merge(
    database: str,
    answers: dict[str, dict[str, Any]],
    layouts: dict[str, dict[str, list[Orders]]],
) -> dict[str, Any]:
    """Return the atlas of one database: every variant of every part, with its releases."""
    having = {version: told[database] for version, told in answers.items() if database in told}
    atlas: dict[str, Any] = {
        "database": database,
        "releases": {version: told["version"] for version, told in having.items()},
    }
    for kind in KINDS:
        parts: dict[str, list[dict[str, Any]]] = {}
        for version, told in having.items():
            for name, known in told[kind].items():
                form = _form(known)
                if kind == "tables":
                    form["orders"] = _other_orders(form, name, layouts[version][database])
                forms = parts.setdefault(name, [])
                for one in forms:
                    if {**one, "releases": []} == {**form, "releases": []}:
                        one["releases"].append(version)
                        break
                else:
                    forms.append({"releases": [version], **form})
        atlas[kind] = parts
    return atlas


def _form(known: dict[str, Any]) -> dict[str, Any]:
    """Return one variant of a part; a column becomes a list of its attributes."""
    form = dict(known)
    if "columns" in form:
        form["columns"] = [list(column.values()) for column in known["columns"]]
    return form


def _other_orders(form: dict[str, Any], table: str, layouts: list[Orders]) -> list[list[int]]:
    """Return the orders that differ from the declared one, as indexes into it."""
    declared = [column[0] for column in form["columns"]]
    other: list[list[int]] = []
    for layout in layouts:
        if table in layout:
            order = [declared.index(column) for column in layout[table]]
            if order != sorted(order) and order not in other:
                other.append(order)
    return sorted(other)


def written(value: Any, indent: int = 0) -> str:
    """Return JSON that is easy to read and compare: what fits into a line stays on one."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= WIDTH or not isinstance(value, dict | list):
        return flat
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        inner = [f"{pad}{json.dumps(k)}: {written(v, indent + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(inner) + "\n" + " " * indent + "}"
    inner = [pad + written(one, indent + 1) for one in value]
    return "[\n" + ",\n".join(inner) + "\n" + " " * indent + "]"


def main() -> None:
    """Learn from one release or from all."""
    if sys.argv[1:]:
        print(written(ask(sys.argv[1])))
        return
    with ThreadPoolExecutor(2) as workers:
        answers = dict(zip(releases.ALL, workers.map(ask, releases.ALL), strict=True))
    layouts = upgrade_paths()
    for database in schema_lesson.USES:
        atlas = merge(database, answers, layouts)
        target = TARGET / f"{Path(database).stem}.json"
        target.write_text(written(atlas) + "\n")
        print(f"{target.name}: {len(atlas['releases'])} releases, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
