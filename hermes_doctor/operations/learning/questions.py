"""What an installed Hermes is asked, and its answers in the form of the files of knowledge.

A release that opens a database of an older one adds what is new at the end of a table, and may keep
an older search index. So the files that it works on differ from those that it creates. The lesson
about schemas lets the release upgrade one file of each kind that older releases left.
"""

from __future__ import annotations

import json
import plistlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from hermes_doctor.hermes.knowledge import atlas, parse_release
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from hermes_doctor.hermes.supervisors import units
from hermes_doctor.operations.learning.isolation import Lesson
from hermes_doctor.sqlite.blueprint import Blueprint, TableBlueprint

_HERE = Path(__file__).parent / "lessons"
SCHEMAS = "schemas"
SCRIPTS = {
    SCHEMAS: "schema",
    "access": "access",
    "keys": "key",
    "enabling": "platform",
    "cron": "cron",
    "breaks": "break",
    "loaders": "store",
    "services": "service",
    "resolution": "provider",
}
"""The script for each file of knowledge; the slow ones first."""
_PLACES = ("Environment", "WorkingDirectory", "ExecStopPost", "Description", "WantedBy")
"""Settings of a unit that contain paths or have no effect."""
_JOB = ("KeepAlive", "RunAtLoad", "ThrottleInterval", "ExitTimeOut")


def lessons(version: str) -> dict[str, Lesson]:
    """Return everything to ask, by the name of the file of knowledge."""
    return {name: lesson(name, version) for name in SCRIPTS}


def lesson(name: str, version: str) -> Lesson:
    """Return what to ask for one file of knowledge."""
    script = (_HERE / f"{SCRIPTS[name]}_lesson.py").read_text()
    if name == SCHEMAS:
        names = ("schema_changes", "schema_uses")
        return Lesson(
            script,
            ("learn",),
            {
                database: [*_distinct(database, parse_release(version))]
                for database in atlas.DATABASES
            },
            {f"{__package__}.lessons.{name}": (_HERE / f"{name}.py").read_text() for name in names},
        )
    if name in ("access", "enabling"):
        known = load_knowledge("platforms")["platforms"]
        return Lesson(
            script, (), {platform: facts["variables"] for platform, facts in known.items()}
        )
    return Lesson(script, (), True if name == "keys" else None)


def answers(version: str, answered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers by the name of the file; each database has a file of its own."""
    files: dict[str, Any] = {}
    for name, answer in answered.items():
        if name == SCHEMAS:
            files |= {
                f"schemas/{PurePosixPath(database).stem}": schema(told)
                for database, told in answer.items()
            }
        else:
            files[name] = normalised(name, version, answer)
    return files


def normalised(name: str, version: str, answer: Any) -> Any:
    """Return an answer in the form in which a file of knowledge is split."""
    if name == "keys":
        from hermes_doctor.hermes.settings.misspellings import closest_word

        known = {key.rpartition(".")[2] for key in answer["keys"]}
        alike = [word for word in answer["read"] if word not in known and closest_word(word, known)]
        return _by_entry({"releases": [version], **answer, "read": alike})
    if name == "resolution":
        return _by_entry({"releases": [version], **answer})
    if name == "cron":
        return {**answer["platforms"], **{word: ["*"] for word in answer["words"]}}
    if name == "loaders":
        return {kind: told for kind, told in answer.items() if isinstance(told, dict)}
    return _service(*answer) if name == "services" else answer


def _by_entry(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every topic as a mapping; a topic that is a list has entries without details."""
    return {
        topic: entries if isinstance(entries, dict) else dict.fromkeys(map(_key, entries), True)
        for topic, entries in answer.items()
    }


def _key(entry: Any) -> str:
    return entry if isinstance(entry, str) else json.dumps(entry)


def _service(unit: str, plist: str, drain: float) -> dict[str, Any]:
    parsed: units.Settings = {}
    units.parse(unit, parsed)
    settings = {name: values[-1] for name, values in parsed.items() if name not in _PLACES}
    settings["ExecStart"] = settings["ExecStart"].partition(" ")[2]
    settings["ExecStopPost"] = parsed.get("ExecStopPost", [""])[-1].partition(" ")[2]
    job = plistlib.loads(plist.encode())
    return {
        "unit": dict(sorted((name, value) for name, value in settings.items() if value)),
        "job": {name: job[name] for name in _JOB if name in job},
        "drain": drain,
    }


def schema(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of one database, with what upgraded files have instead."""
    parts = {kind: part for kind, part in told.items() if kind != "layouts"}
    layouts = told.get("layouts", [])
    parts["tables"] = {name: _table(name, one, layouts) for name, one in told["tables"].items()}
    for kind in ("virtual", "triggers"):
        parts[kind] = {
            name: declared | _earlier(kind, name, declared["sql"], layouts)
            for name, declared in told[kind].items()
        }
    return parts


def _table(name: str, told: Mapping[str, Any], layouts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one table; a column becomes a list of its attributes.

    `orders` has the orders of columns that differ from the declared one, as indexes into it.
    """
    columns = [list(column.values()) for column in told["columns"]]
    declared = [column[0] for column in columns]
    other: list[list[int]] = []
    for layout in layouts:
        there = layout["tables"].get(name, [])
        if sorted(there) == sorted(declared):
            order = [declared.index(column) for column in there]
            if order != sorted(order) and order not in other:
                other.append(order)
    return {**told, "columns": columns, "orders": sorted(other)}


def _earlier(kind: str, name: str, sql: str, layouts: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the other statements that upgraded files have under this name."""
    there = [layout[kind][name] for layout in layouts if name in layout[kind]]
    other = list(
        dict.fromkeys(statement for statement in there if statement.split() != sql.split())
    )
    return {"earlier": other} if other else {}


_PARTS = re.compile(r"(?:[^,()']|'(?:[^']|'')*'|\((?:[^()]|\([^()]*\))*\))+")


def _distinct(database: str, version: tuple[int, ...]) -> Iterator[list[str]]:
    seen = set()
    for release in atlas.releases(database):
        plan = atlas.blueprint(database, release)
        if plan is None or parse_release(release) >= version:
            continue
        for statements in _variants(plan):
            key = tuple(statements)
            if key not in seen:
                seen.add(key)
                number = f"INSERT INTO schema_version VALUES ({plan.version})"
                yield [*statements, *([number] if plan.version is not None else [])]


def _variants(plan: Blueprint) -> Iterator[list[str]]:
    """Yield the file as declared, with each order of columns, and with an older search index."""
    longest = max((len(table.orders) for table in plan.tables.values()), default=1)
    for place in range(longest):
        yield _statements(plan, place)
    kept = {name: plan.earlier[name][-1] for name in plan.virtual if plan.earlier.get(name)}
    if kept:
        yield _statements(plan.with_earlier(kept), 0)


def _statements(plan: Blueprint, place: int) -> list[str]:
    tables = [
        _reordered(table, table.orders[place]) if place < len(table.orders) else table.sql
        for table in plan.tables.values()
    ]
    parts = (plan.indexes, plan.views, plan.virtual, plan.triggers)
    return [*tables, *(sql for part in parts for sql in part.values())]


def _reordered(table: TableBlueprint, order: tuple[str, ...]) -> str:
    """Return the statement with the columns in another order."""
    sql = re.sub(r"--[^\n]*", "", table.sql)
    start, end = sql.index("("), sql.rindex(")")
    parts = [part.strip() for part in _PARTS.findall(sql[start + 1 : end]) if part.strip()]
    named = {part.split()[0].strip('"`[]'): part for part in parts}
    columns = [named[name] for name in order]
    rest = [part for part in parts if part not in columns]
    return f"{sql[:start]}({', '.join([*columns, *rest])}){sql[end + 1 :]}"
