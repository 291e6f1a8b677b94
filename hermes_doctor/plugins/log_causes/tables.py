"""The tables of a folder: the built-in ones precompiled, others from YAML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.plugins.log_causes.cause import Cause, Signs
from hermes_doctor.plugins.log_causes.place import PlaceTables

if TYPE_CHECKING:
    from hermes_doctor.plugins.tables.yaml_lists import RuleMistake

COMPILED = "causes/compiled.json"
"""Made by tools/compile_signatures.py."""


class Tables(NamedTuple):
    """The tables of a folder, and the mistakes in them."""

    causes: Sequence[tuple[Cause, Signs]] = ()
    faults: Sequence[RuleMistake] = ()
    """Mistakes with file and line; what has one is left out."""
    places: PlaceTables = PlaceTables()
    """Places, operations, outcomes and successes."""


def load_tables(folder: Path, *, ours: bool = False) -> Tables:
    """Return the tables of a folder of log rules; the built-in ones from their compiled form."""
    path = folder / COMPILED
    return read_compiled(path.read_bytes()) if ours and path.is_file() else read_source(folder)


def read_source(folder: Path) -> Tables:
    """Read the tables from the YAML files."""
    from hermes_doctor.plugins.log_causes import cause_source, place_source

    found, places = cause_source.read(folder), place_source.read(folder)
    return Tables(found.causes, (*found.faults, *places.faults), places.tables)


def read_compiled(data: bytes) -> Tables:
    """Read the tables from their compiled form."""
    import json

    from hermes_doctor.plugins.log_causes import place
    from hermes_doctor.plugins.log_causes.cause import unpack

    found = json.loads(data)
    causes = [unpack(one) for one in found["causes"]]
    return Tables(causes, places=place.unpack(found["places"]))


def compile_tables(tables: Tables) -> str:
    """Compile the tables to JSON that is quick to read, one cause per line."""
    import json

    from hermes_doctor.plugins.log_causes import place
    from hermes_doctor.plugins.log_causes.cause import pack

    causes = ",\n".join(json.dumps(pack(*one)) for one in tables.causes)
    places = ",\n".join(map(json.dumps, place.pack(tables.places)))
    return f'{{"causes": [\n{causes}\n],\n"places": [\n{places}\n]}}\n'


def codes(tables: Tables) -> set[str]:
    """Return the codes of findings about the causes."""
    found = {code for cause, _ in tables.causes for code in cause.by_part.values()}
    return found | {cause.code for cause, _ in tables.causes}
