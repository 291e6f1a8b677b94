"""Tables of places as people write them: every mistake is named, with its file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_causes import place, place_source, tables

PLACE: dict[str, Any] = {"name": "acme", "part": "platform", "label": "Acme", "words": ["acme"]}
SUCCESS: dict[str, Any] = {
    "operations": ["connect"],
    "pattern": "^Acme is back",
    "examples": ["2026-11-15 00:00:00,000 INFO acme: Acme is back"],
    "near": ["2026-11-15 00:00:00,000 INFO acme: Acme is gone"],
}


def written(folder: Path, name: str, *rows: object) -> place_source.PlaceSource:
    """Read a file of these rows."""
    (folder / f"{name}.yaml").write_text(yaml.safe_dump({name: list(rows)}), encoding="utf-8")
    return place_source.read(folder)


def test_a_whole_folder(tmp_path: Path) -> None:
    """An operator's own places are read; a file that is missing is an empty table."""
    assert place_source.read(tmp_path).tables == place.PlaceTables([], [], [], [])
    found = written(tmp_path, "places", PLACE)
    assert found.faults == []
    [row] = found.tables.places
    assert row.place == place.Place("platform", "acme", "Acme") and row.operation == "work"
    [success] = written(tmp_path, "successes", {**SUCCESS, "place": "acme"}).tables.successes
    assert (success.place, success.level, success.literals) == ("acme", "INFO", ("Acme is back",))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"part": "bots"}, "acme: `part` must be one of gateway"),
        ({"label": 3}, "acme: `label` must be a text"),
        ({"lable": "x"}, "acme: has no field 'lable'; is 'label' meant?"),
        ({"words": [], "loggers": []}, "acme: needs `loggers` or `words`"),
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
    found = written(tmp_path, "places", first, second)

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
    [fault] = written(tmp_path, name, row).faults

    assert str(fault).startswith(f"{name}.yaml:2: ") and said in str(fault)


def test_ours() -> None:
    """The built-in tables have no mistakes, and are the same after they were packed."""
    found = place_source.read(builtin("checks") / "signatures")

    assert found.faults == []
    assert 55 <= len(found.tables.places) <= 75
    whole = tables.Tables(places=found.tables)
    again = tables.read_compiled(tables.compile_tables(whole).encode())
    assert place.pack(again.places) == place.pack(found.tables)
