"""What an installed Hermes is asked, and its answers in the form of the files of knowledge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.learning.isolation import Lesson
from hermes_doctor.learning.older_files import older_files

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
        return Lesson(script, ("learn",), older_files(version), _parts())
    if name in ("access", "enabling"):
        known = load_knowledge("platforms")["platforms"]
        return Lesson(script, (), {one: facts["variables"] for one, facts in known.items()})
    return Lesson(script, (), True if name == "keys" else None)


def _parts() -> dict[str, str]:
    """Return the parts of the lesson about schemas, by the names under which it imports them."""
    names = ("schema_changes", "schema_uses")
    return {f"{__package__}.lessons.{name}": (_HERE / f"{name}.py").read_text() for name in names}


def answers(version: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers by the name of the file; each database has a file of its own."""
    found: dict[str, Any] = {}
    for name, answer in said.items():
        if name == SCHEMAS:
            found |= {
                f"schemas/{PurePosixPath(database).stem}": schema(told)
                for database, told in answer.items()
            }
        else:
            found[name] = normalised(name, version, answer)
    return found


def normalised(name: str, version: str, said: Any) -> Any:
    """Return an answer in the form in which a file of knowledge is split."""
    if name == "keys":
        from hermes_doctor.settings.closest_word import closest_word

        known = {key.rpartition(".")[2] for key in said["keys"]}
        alike = [word for word in said["read"] if word not in known and closest_word(word, known)]
        return _by_entry({"releases": [version], **said, "read": alike})
    if name == "resolution":
        return _by_entry({"releases": [version], **said})
    if name == "cron":
        return {**said["platforms"], **{word: ["*"] for word in said["words"]}}
    if name == "loaders":
        return {kind: told for kind, told in said.items() if isinstance(told, dict)}
    return _service(*said) if name == "services" else said


def _by_entry(said: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every topic as a mapping; a topic that is a list has entries without details."""
    return {
        topic: entries if isinstance(entries, dict) else dict.fromkeys(map(_key, entries), True)
        for topic, entries in said.items()
    }


def _key(entry: Any) -> str:
    import json

    return entry if isinstance(entry, str) else json.dumps(entry)


def _service(unit: str, plist: str, drain: float) -> dict[str, Any]:
    import plistlib

    from hermes_doctor.supervisors import unit_file

    found: unit_file.Settings = {}
    unit_file.parse(unit, found)
    settings = {name: values[-1] for name, values in found.items() if name not in _PLACES}
    settings["ExecStart"] = settings["ExecStart"].partition(" ")[2]
    settings["ExecStopPost"] = found.get("ExecStopPost", [""])[-1].partition(" ")[2]
    job = plistlib.loads(plist.encode())
    return {
        "unit": dict(sorted((name, value) for name, value in settings.items() if value)),
        "job": {name: job[name] for name in _JOB if name in job},
        "drain": drain,
    }


def schema(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of one database, with what upgraded files have instead."""
    found = {kind: part for kind, part in told.items() if kind != "layouts"}
    layouts = told.get("layouts", [])
    found["tables"] = {name: _table(name, one, layouts) for name, one in told["tables"].items()}
    for kind in ("virtual", "triggers"):
        found[kind] = {
            name: one | _earlier(kind, name, one["sql"], layouts)
            for name, one in told[kind].items()
        }
    return found


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
    other = list(dict.fromkeys(one for one in there if one.split() != sql.split()))
    return {"earlier": other} if other else {}
