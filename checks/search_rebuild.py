"""Check for a search index that Hermes has not finished, or whose repair it puts off."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.database import Condition
from hermes_doctor.api.tools import count

_CODES = ["DB-FTS-UNFINISHED", "DB-FTS-STALE"]
_STALE, _DEFERRED = "fts_stale", "fts_rebuild_deferral"
_META = f"SELECT key, value FROM state_meta WHERE key IN ('{_STALE}', '{_DEFERRED}')"
_OFTEN = 3
"""A repair may wait for another process once or twice; that process may be starting or stopping."""


@check(id="search-rebuild", group="databases", codes=_CODES, limit=10)
def search_rebuild(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Has Hermes finished rebuilding the search index?"""
    if not probes.databases.files().paths:
        raise Skip("no database yet")
    for name, path, condition in probes.databases.conditions():
        if condition.flaws or (condition.damage and condition.damage.searches):
            continue  # damage is reported with its own repair
        if condition.rebuild is not None:
            yield _unfinished(name, condition)
        if path.name == "state.db":
            try:
                yield from _stale(probes, name, path, condition)
            except CouldNotLook as why:
                yield why


def _unfinished(name: str, condition: Condition) -> Finding:
    """Report a rebuild in small steps; an interrupted one if no process has the file open."""
    rebuild = condition.rebuild
    assert rebuild is not None
    total = rebuild.high_water
    if rebuild.progress is None:
        indexed = f"unknown how many of {total:,} messages are indexed"
    else:
        indexed = f"{rebuild.progress:,} of {total:,} messages are indexed"
    cut = not condition.holders
    return Finding(
        code="DB-FTS-UNFINISHED",
        severity=Severity.WARNING if cut else Severity.INFO,
        title=(
            text("the rebuild of the search index of {name} was interrupted", name=name)
            if cut
            else text("the search index of {name} is not finished", name=name)
        ),
        subject=name,
        detail=(
            "Searching older messages is slow or finds nothing, and no process continues the "
            "rebuild. Nothing is lost."
            if cut
            else "Searching older messages is slower until Hermes has finished. Nothing is lost."
        ),
        evidence=(Evidence(name, indexed),),
        next="Run `hermes sessions optimize-storage` to finish it now.",
        data={"progress": rebuild.progress, "high_water": rebuild.high_water},
    )


def _stale(probes: Probes, name: str, path: Path, condition: Condition) -> Iterator[Finding]:
    """Report an index that Hermes switched off and cannot rebuild."""
    if not condition.readable:
        return  # the database checks report why
    notes = {str(row[0]): row[1] for row in probes.databases.rows(path, _META, "state_meta")}
    if _STALE not in notes:
        return
    attempts, first, pids = _deferral(notes.get(_DEFERRED))
    blocked = attempts >= _OFTEN
    evidence = [Evidence(name, "state_meta: fts_stale")]
    if attempts:
        what = text("the repair was put off {times}", times=count(attempts, "time"))
        evidence.append(Evidence(name, what))
    holders = [_who(probes, pid) for pid in pids]
    if holders:
        evidence.append(Evidence(name, text("held by {holders}", holders=", ".join(holders))))
    yield Finding(
        code="DB-FTS-STALE",
        severity=Severity.WARNING if blocked or not condition.holders else Severity.INFO,
        title=(
            text("a process keeps Hermes from repairing the search of {name}", name=name)
            if blocked
            else text("Hermes switched off the search index of {name}", name=name)
        ),
        subject=name,
        detail=(
            "Searching old messages is slow and can miss some; saving works. Hermes rebuilds the "
            "index at a start when no other process has the file open."
        ),
        evidence=tuple(evidence),
        since=first,
        next=(
            "Stop every other Hermes process of this home (Desktop, `hermes serve`, dashboard), "
            "then restart the gateway."
        ),
        data={"attempts": attempts, "pids": pids},
    )


def _deferral(value: object) -> tuple[int, datetime | None, tuple[int, ...]]:
    """Return how often the repair was put off, since when, and because of which processes."""
    import json

    try:
        said = json.loads(value) if isinstance(value, (str, bytes)) else {}
        attempts, first, pids = (said.get(one) for one in ("attempts", "first_seen", "holder_pids"))
        since = datetime.fromtimestamp(float(first), UTC) if first else None
        numbers = tuple(pid for pid in pids or () if isinstance(pid, int))
        return int(attempts or 0), since, numbers[:3]
    except (ValueError, TypeError, AttributeError, OverflowError, OSError, RecursionError):
        return 0, None, ()


def _who(probes: Probes, pid: int) -> str:
    name = probes.machine.command(pid)
    return f"process {pid} ({name})" if name else f"process {pid}, which is gone"
