"""The tables of a folder, read from YAML or from their compiled form.

The compiled form is JSON Lines. The first line has the index and the places; the causes and the
patterns follow, a line each, which is decoded when the index leads there. Indexing the causes at
each start instead takes 8 ms more CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.diagnosis.plugins.log_causes.cause_index import Cause, CauseIndex
from hermes_doctor.diagnosis.plugins.log_causes.place import PlaceTables

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.plugins.tables.yaml_lists import RuleMistake

T = TypeVar("T")


class Tables(NamedTuple):
    """The tables of a folder, and the mistakes in them."""

    cause_index: CauseIndex = CauseIndex()
    faults: Sequence[RuleMistake] = ()
    """Mistakes with file and line; what has one is left out."""
    places: PlaceTables = PlaceTables()
    """Places, operations, outcomes and successes."""

    @property
    def causes(self) -> Sequence[Cause]:
        """The causes, in the order of the files."""
        return self.cause_index.causes


class _Lines(Sequence[T]):
    """Values that are decoded when they are asked for."""

    def __init__(self, lines: Sequence[str], made: Callable[..., T]) -> None:
        self._lines = lines
        self._made = made
        self._known: dict[int, T] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, number: Any) -> Any:
        found = self._known.get(number)
        if found is None:
            import json

            found = self._known[number] = self._made(*json.loads(self._lines[number]))
        return found


def read_source(folder: Path) -> Tables:
    """Read the tables from the YAML files."""
    from hermes_doctor.diagnosis.plugins.log_causes import table_source
    from hermes_doctor.diagnosis.plugins.log_causes.cause_index import index_of

    found, places = table_source.read_causes(folder), table_source.read_places(folder)
    return Tables(index_of(found.causes), (*found.faults, *places.faults), places.tables)


def read_compiled(data: bytes) -> Tables:
    """Read the tables from their compiled form."""
    import json

    from hermes_doctor.diagnosis.plugins.log_causes import place
    from hermes_doctor.diagnosis.plugins.log_causes.cause_index import Sign
    from hermes_doctor.diagnosis.plugins.word_index import WordIndex

    first, *lines = data.decode().splitlines()
    count, words, *names, places = json.loads(first)
    causes, signs = _Lines(lines[:count], Cause), _Lines(lines[count:], Sign)
    index = CauseIndex(causes, signs, WordIndex.unpacked(*words), *names)
    return Tables(index, places=place.unpack(places))


def compile_tables(tables: Tables) -> str:
    """Compile the tables to a form that is quick to read."""
    import json

    index = tables.cause_index
    names = map(dict, (index.names, index.errors, index.codes))
    first = [len(index.causes), index.words.packed(), *names, tables.places]
    return "".join(f"{json.dumps(one)}\n" for one in (first, *index.causes, *index.signs))


def codes(tables: Tables) -> set[str]:
    """Return the codes of findings about the causes."""
    return {
        code
        for cause in tables.causes
        for code in (cause.code, *cause.by_part.values(), *cause.by_platform.values())
    }
