"""The rules of a folder: compiled where they come with the tool, else as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hermes_doctor.signatures.rule import Cause, Rule, cause, packed, unpacked

if TYPE_CHECKING:
    from hermes_doctor.signatures.source import Fault

COMPILED = "compiled.json"
"""Made by tools/compile_signatures.py: reading YAML and judging patterns takes too long for a
look that is to be over in a moment."""


class Folder(NamedTuple):
    """What a folder holds."""

    rules: tuple[Rule, ...]
    causes: tuple[Cause, ...]
    faults: tuple[Fault, ...] = ()
    """What is wrong with those that were left out."""


def load(folder: Path) -> Folder:
    """The rules of a folder, in the form that is there."""
    path = folder / COMPILED
    if not path.is_file():
        return written(folder)
    import json

    held = json.loads(path.read_bytes())
    return Folder(tuple(map(unpacked, held["rules"])), tuple(map(cause, held["causes"])))


def written(folder: Path) -> Folder:
    """The rules as people wrote them."""
    from hermes_doctor.signatures import causes, source

    found = source.read(folder)
    faults = list(found.faults)
    return Folder(found.rules, tuple(causes.read(folder, faults)), tuple(faults))


def compiled(folder: Folder) -> str:
    """All of it in the form that is quick to read, one rule a line."""
    import json

    def items(found: list[list[Any]]) -> str:
        return "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in found) + "\n]"

    rules = items([packed(one) for one in folder.rules])
    return f'{{"rules": {rules},\n"causes": {items([packed(one) for one in folder.causes])}}}\n'
