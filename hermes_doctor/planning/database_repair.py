"""The database repairs that fixes may plan; the code behind them is imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.steps.database import ReplaceDatabase

if TYPE_CHECKING:
    from hermes_doctor.model import Copy
    from hermes_doctor.probes.probes import Probes


def database_repair(probes: Probes, path: Path, rungs: Sequence[str], why: str) -> ReplaceDatabase:
    """Plan to repair a database with the first of these rungs that makes it sound.

    From the least to the most invasive they are "magic", "header", "indexes", "full text" and
    "rows"; and for a database that is lost completely "layers" (its log applied to an older copy)
    and "copies".
    """
    from hermes_doctor.planning import database_rungs

    return database_rungs.database_repair(probes, path, rungs, why)


def take_back(path: Path) -> ReplaceDatabase:
    """Plan to roll back a transaction that was interrupted."""
    from hermes_doctor.planning import database_rungs

    return database_rungs.take_back(path)


def mend_rows(copy: Path, fault: str) -> list[str]:
    """Correct the rows that have one fault: active, titles, settings or version."""
    from hermes_doctor.sqlite.repairs import rows

    return rows.mend(copy, fault)


def release_claims(copy: Path, tasks: Sequence[tuple[str, int, str]]) -> list[str]:
    """Make kanban tasks ready again that no worker is working on any more."""
    from hermes_doctor.sqlite.repairs import claims

    return claims.release(copy, tasks)


def evict(copy: Path) -> list[str]:
    """Remove responses that cannot be read, and conversations that point to a missing one."""
    from hermes_doctor.sqlite.repairs import responses

    return responses.evict(copy)


def compact(copy: Path) -> list[str]:
    """Rewrite the database without its unused pages."""
    from hermes_doctor.sqlite.repairs import indexes

    return indexes.compact(copy)


def bring_back(copy: Path, candidates: Sequence[Copy]) -> list[str]:
    """Replace the copy by the newest sound one of these older copies."""
    from hermes_doctor.sqlite.repairs import from_copy

    return from_copy.bring_back(copy, candidates)
