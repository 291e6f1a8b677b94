"""The repairs of a database that a fix may plan; what carries them out is loaded when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.steps.database import ReplaceDatabase

if TYPE_CHECKING:
    from hermes_doctor.model import Copy
    from hermes_doctor.probes.probes import Probes


def database_repair(probes: Probes, path: Path, rungs: Sequence[str], why: str) -> ReplaceDatabase:
    """Repair a database by the first of these rungs that leads to a sound one.

    They are, from the least invasive to the most, "magic", "header", "indexes", "full text" and
    "rows"; and for a database that is lost as a whole "layers" (its log over an older copy) and
    "copies".
    """
    from hermes_doctor.planning import database_rungs

    return database_rungs.database_repair(probes, path, rungs, why)


def take_back(path: Path) -> ReplaceDatabase:
    """Undo a transaction that was cut off."""
    from hermes_doctor.planning import database_rungs

    return database_rungs.take_back(path)


def mend_rows(copy: Path, fault: str) -> list[str]:
    """Put the rows of one fault right: active, titles, settings or version."""
    from hermes_doctor.sqlite.repairs import rows

    return rows.mend(copy, fault)


def release_claims(copy: Path, tasks: Sequence[tuple[str, int, str]]) -> list[str]:
    """Make tasks of a board ready again that nobody works on any more."""
    from hermes_doctor.sqlite.repairs import claims

    return claims.release(copy, tasks)


def evict(copy: Path) -> list[str]:
    """Remove responses that cannot be read back, and conversations that lead to none."""
    from hermes_doctor.sqlite.repairs import responses

    return responses.evict(copy)


def compact(copy: Path) -> list[str]:
    """Write the database anew without the pages that nothing uses."""
    from hermes_doctor.sqlite.repairs import indexes

    return indexes.compact(copy)


def bring_back(copy: Path, candidates: Sequence[Copy]) -> list[str]:
    """Put the newest sound one of older copies in the place of the copy."""
    from hermes_doctor.sqlite.repairs import from_copy

    return from_copy.bring_back(copy, candidates)
