"""Tables of causes, places and successes: every mistake is reported with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_causes import place, table_source, tables
from hermes_doctor.diagnosis.plugins.tables.yaml_lists import RuleMistake

GOOD: dict[str, Any] = {
    "name": "door-closed",
    "rank": 30,
    "code": "GW-ERRORS",
    "title": "door {name} is closed | a door is closed",
    "advice": "Open the door.",
    "errors": ["EADDRINUSE"],
    "exceptions": ["DoorClosed"],
    "texts": [r"door (?P<name>\w{1,20}) is closed"],
    "examples": ["knock: door 3 is closed", "DoorClosed"],
    "near": ["door 3 is open"],
}


def written(folder: Path, *causes: object, family: str = "machine") -> table_source.CauseSource:
    """Read a file of these causes."""
    (folder / "causes").mkdir(exist_ok=True)
    path = folder / "causes" / f"{family}.yaml"
    path.write_text(yaml.safe_dump({"causes": list(causes)}), encoding="utf-8")
    return table_source.read_causes(folder)


def test_a_whole_cause(tmp_path: Path) -> None:
    """The family is the name of the file; what is left out has a sensible default."""
    found = written(tmp_path, GOOD)

    assert found.faults == ()
    [(cause, signs)] = found.causes
    assert (cause.family, cause.rank, cause.detail, cause.transient) == ("machine", 30, "", False)
    assert (signs.errors, signs.exceptions) == (("EADDRINUSE",), ("DoorClosed",))
    [(pattern, literals)] = signs.texts
    assert pattern == GOOD["texts"][0] and (" is closed",) in literals


def test_a_folder_without_causes(tmp_path: Path) -> None:
    """An operator need not have any."""
    assert table_source.read_causes(tmp_path) == table_source.CauseSource((), (), ())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"titel": "x"}, "has no field 'titel'; is 'title' meant?"),
        ({"name": "Door Closed"}, "`name` is made of small letters, digits and hyphens"),
        ({"rank": 0}, "`rank` must be a number from 1 to 99"),
        ({"rank": True}, "`rank` must be a number from 1 to 99"),
        ({"rank": "3"}, "`rank` must be a number from 1 to 99"),
        ({"code": "gw-errors"}, "'gw-errors' is not a code"),
        ({"codes": ["X", "y"]}, "'y' is not a code"),
        ({"codes": 3}, "`codes` must be a text or a list of texts"),
        ({"by_part": {"bots": "X"}}, "`by_part` names 'bots', which is not one of gateway"),
        ({"by_part": {"model": "x"}}, "'x' is not a code"),
        ({"by_part": ["model"]}, "`by_part` must be a mapping to codes"),
        ({"severity": "loud"}, "`severity` must be one of "),
        ({"fix": "free-space"}, "`lines`, `unless_ok` and `fix` need `severity`"),
        ({"by_platform": {"telegram": "x"}}, "'x' is not a code"),
        ({"title": "x" * 49}, "`title` is longer than 48 characters"),
        ({"title": "door {name}"}, "`title` needs a form without fields after ` | `"),
        ({"title": "x | {name}"}, "`title` has a field after ` | `"),
        ({"title": "{nme} | x"}, "`title` may not name {nme}"),
        ({"title": "{0 | x"}, "`title` may use braces only for {name}"),
        ({"advice": "Open {name}."}, "`advice` may not name {name}"),
        ({"advice": "x" * 161}, "`advice` is longer than 160 characters"),
        ({"advice": ""}, "`advice` must be a text"),
        ({"transient": "no"}, "`transient` must be true or false"),
        ({"errors": ["EDOOR"]}, "`errors` names 'EDOOR', which is not known"),
        ({"exceptions": ["a b"]}, "which is not the name of a class"),
        ({"texts": ["("]}, "is not a regular expression"),
        ({"texts": ["(a+)+bcd"]}, "repeats a repetition"),
        ({"texts": ["door.*"]}, "ends with `.*`"),
        ({"texts": [r"door (?P<who>\w)"]}, "uses the group 'who'"),
        ({"texts": [r"\d\d|door"]}, "has no three letters that are in every match"),
        ({"texts": [], "errors": [], "exceptions": []}, "needs `errors`, `exceptions` or `texts`"),
        ({"examples": ["one"]}, "needs two `examples` that name it and a `near` miss"),
        ({"near": []}, "needs two `examples` that name it and a `near` miss"),
    ],
)
def test_a_mistake(tmp_path: Path, change: dict[str, object], said: str) -> None:
    """It names file, line and cause; the other causes are read."""
    found = written(tmp_path, {**GOOD, "name": "fine", "errors": [], "exceptions": []},
                    {**GOOD, **change})  # fmt: skip

    assert [cause.name for cause, _ in found.causes] == ["fine"]
    [fault] = found.faults
    assert fault.line > 2 and said in str(fault)
    assert str(fault).startswith(f"machine.yaml:{fault.line}: cause ")


def test_a_file_that_is_not_yaml(tmp_path: Path) -> None:
    """The line of the mistake is named."""
    written(tmp_path, GOOD)
    path = tmp_path / "causes" / "data.yaml"
    path.write_text("causes:\n  - name: [x\n", encoding="utf-8")

    found = table_source.read_causes(tmp_path)

    assert len(found.causes) == 1
    [fault] = found.faults
    assert isinstance(fault, RuleMistake) and "data.yaml:3: is not YAML" in str(fault)


def test_an_unknown_family(tmp_path: Path) -> None:
    """A file's name is the family."""
    [fault] = written(tmp_path, GOOD, family="doors").faults

    assert str(fault).startswith("doors.yaml:1: is not one of machine, network")


def test_what_belongs_to_two_causes(tmp_path: Path) -> None:
    """Names, errors and exception classes belong to one cause."""
    other = {**GOOD, "errors": [], "exceptions": []}
    assert "another cause 'door-closed'" in str(written(tmp_path, GOOD, other).faults[0])

    other = {**GOOD, "name": "other", "exceptions": []}
    assert "EADDRINUSE belongs to 'door-closed'" in str(written(tmp_path, GOOD, other).faults[0])

    other = {**GOOD, "name": "other", "errors": []}
    assert "DoorClosed belongs to 'door-closed'" in str(written(tmp_path, GOOD, other).faults[0])


PLACE: dict[str, Any] = {"name": "acme", "part": "platform", "label": "Acme", "words": ["acme"]}
SUCCESS: dict[str, Any] = {
    "operations": ["connect"],
    "pattern": "^Acme is back",
    "examples": ["2026-11-15 00:00:00,000 INFO acme: Acme is back"],
    "near": ["2026-11-15 00:00:00,000 INFO acme: Acme is gone"],
}


def places_written(folder: Path, name: str, *rows: object) -> table_source.PlaceSource:
    """Read a file of these rows."""
    (folder / f"{name}.yaml").write_text(yaml.safe_dump({name: list(rows)}), encoding="utf-8")
    return table_source.read_places(folder)


def test_a_whole_folder(tmp_path: Path) -> None:
    """An operator's own places are read; a file that is missing is an empty table."""
    assert table_source.read_places(tmp_path).tables == place.PlaceTables([], [], [], [])
    found = places_written(tmp_path, "places", PLACE)
    assert found.faults == []
    [row] = found.tables.places
    assert row.place == place.Place("platform", "acme", "Acme") and row.operation == "work"
    [success] = places_written(tmp_path, "successes", {**SUCCESS, "place": "acme"}).tables.successes
    assert (success.place, success.level, success.literals) == ("acme", "INFO", ("Acme is back",))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"part": "bots"}, "acme: `part` must be one of gateway"),
        ({"label": 3}, "acme: `label` must be a text"),
        ({"lable": "x"}, "acme: has no field 'lable'; is 'label' meant?"),
        ({"part": "data", "words": [], "loggers": []}, "acme: needs `loggers` or `words`"),
        ({"words": ["x"]}, "acme: `words` have at least two characters"),
        ({"words": [], "loggers": ["a"], "common": True}, "acme: `common` is about `words`"),
        ({"common": "yes"}, "acme: `common` must be true or false"),
        ({"operation": "dance"}, "acme: `operation` must be one of connect"),
        ({"name": "other"}, "other: names 'loud', which another one has"),
    ],
)
def test_a_mistake_in_a_place(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    """It costs this place only."""
    first = {**PLACE, "name": "first", "loggers": ["loud"]}
    second = {**PLACE, "loggers": ["loud"] if "name" in change else ["quiet"], **change}
    found = places_written(tmp_path, "places", first, second)

    assert [row.name for row in found.tables.places] == ["first"]
    [fault] = found.faults
    assert fault.path.name == "places.yaml" and fault.line > 1 and said in str(fault)


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        ("operations", {"name": "dance", "phrases": ["x"]}, "`name` must be one of connect"),
        ("operations", {"name": "send", "phrases": []}, "send: needs `phrases`"),
        ("operations", {"name": "send", "phrases": ["(a+)+b"]}, "repeats a repetition"),
        ("outcomes", {"name": "won", "phrases": ["x"]}, "`name` must be one of retried"),
        ("successes", {**SUCCESS, "place": "mars"}, "`place` 'mars' is not in places.yaml"),
        ("successes", {**SUCCESS, "operations": ["dance"]}, "`operations` must be of connect"),
        ("successes", {**SUCCESS, "pattern": "("}, "`pattern` is not a regular expression"),
        ("successes", {**SUCCESS, "near": []}, "needs `examples` that match and `near`"),
        ("successes", {**SUCCESS, "level": "loud"}, "`level` must be one of debug"),
    ],
)
def test_a_mistake_elsewhere(name: str, row: dict[str, Any], said: str, tmp_path: Path) -> None:
    """It is reported with the file and the line."""
    [fault] = places_written(tmp_path, name, row).faults

    assert str(fault).startswith(f"{name}.yaml:2: ") and said in str(fault)


def test_ours() -> None:
    """The built-in tables have no mistakes, and are the same after they were packed."""
    found = table_source.read_places(builtin("checks") / "signatures")

    assert found.faults == []
    assert 55 <= len(found.tables.places) <= 75
    whole = tables.Tables(places=found.tables)
    again = tables.read_compiled(tables.compile_tables(whole).encode())
    assert json.dumps(again.places) == json.dumps(found.tables)
