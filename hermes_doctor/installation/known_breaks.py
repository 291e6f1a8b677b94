"""Find platforms that the installed release cannot start with any settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes_doctor.installation.find import Installation
from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, read

MANIFEST = "the manifest"


class Break(NamedTuple):
    """One platform that is broken in the installed release."""

    platform: str
    file: str
    lacks: str
    cured_by: str | None

    @property
    def packed(self) -> bool:
        """Whether the cause is a file missing from the package, not wrong code."""
        return self.lacks == MANIFEST

    @property
    def cure(self) -> str:
        """One sentence that says how to fix it."""
        if self.cured_by is None:
            return "No known release fixes it."
        return f"Update Hermes to {self.cured_by} or newer."


def find(installed: Installation, wanted: Iterable[str]) -> list[Break]:
    """Return the wanted platforms that are broken in this release and were not fixed by hand."""
    known = load_knowledge("breaks")
    return [
        Break(name, fault["file"], fault["lacks"], fault["cured_by"])
        for name in wanted
        for fault in known.get(name, ())
        if installed.version in fault["releases"] and _still(installed.where, fault)
    ]


def _still(where: Path, fault: dict[str, str]) -> bool:
    """Whether the installed files still have the fault; a checkout may have been fixed by hand."""
    for base in _bases(where):
        path = base / fault["file"]
        if fault["lacks"] == MANIFEST:
            if path.parent.is_dir():
                return not path.exists() and not path.with_suffix(".yml").exists()
            continue
        try:
            return fault["lacks"].encode() not in read(path, 4 * MEGABYTE)[0]
        except (FileNotFoundError, CouldNotLook):
            continue
    return False


def _bases(where: Path) -> Iterator[Path]:
    """Yield the folders that may have the code: site-packages, or the checkout around them."""
    yield from where.glob("lib/python3*/site-packages")
    yield where
    yield where.parent
