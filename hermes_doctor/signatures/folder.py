"""The rules of a folder: compiled where they come with the tool, else as they are written."""

from __future__ import annotations

import json
from pathlib import Path

from hermes_doctor.signatures.rule import Rule, packed, unpacked
from hermes_doctor.signatures.source import Fault, Written

COMPILED = "compiled.json"
"""Made by tools/compile_signatures.py: reading YAML and judging patterns takes too long for a
look that is to be over in a moment."""


def load(folder: Path) -> tuple[list[Rule], list[Fault]]:
    """The rules, and what is wrong with those that were left out."""
    compiled = folder / COMPILED
    if compiled.is_file():
        return [unpacked(one) for one in json.loads(compiled.read_bytes())], []
    from hermes_doctor.signatures.source import read

    written = read(folder)
    return list(written.rules), list(written.faults)


def compiled(written: Written) -> str:
    """The rules in the form that is quick to read, one a line."""
    lines = (json.dumps(packed(rule), ensure_ascii=False) for rule in written.rules)
    return "[\n" + ",\n".join(lines) + "\n]\n"
