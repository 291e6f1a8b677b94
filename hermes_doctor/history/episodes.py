"""Opens, continues and ends the episodes of problems.

An episode begins when a problem is first seen, and ends when its check ran and did not find it. A
problem that comes back soon continues its episode, so that one that flaps all year stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hermes_doctor.history.marks import add_mark
from hermes_doctor.history.moments import ImpossibleValue, from_text, number, to_text
from hermes_doctor.history.observation import Key, Observation, SeenFinding
from hermes_doctor.history.receipts import EndedRun
from hermes_doctor.model import Severity

if TYPE_CHECKING:
    from sqlite_utils import Database

SOON = 600
"""Seconds within which a problem that comes back continues its episode."""
GONE, REPAIRED, UNKNOWN = "gone", "repaired", "unknown"
"""How an episode ended; unknown if nobody was there to see it."""


def record_findings(
    db: Database,
    home: int,
    seen: Observation,
    runs: Sequence[EndedRun],
    is_gap: Callable[[int], bool],
) -> None:
    """Bring the episodes of a home up to date; `is_gap` tells if nobody watched since a moment."""
    table = db.table("episodes")
    repaired = _record_runs(db, home, runs)
    open_now: dict[Key, dict[str, Any]] = {
        (str(row["code"]), str(row["subject"])): row
        for row in table.rows_where("home = ? and ended is null", [home])
    }
    for key, run in repaired.items():
        if key not in open_now:
            _attach(db, home, key, run)
    for key, finding in seen.findings.items():
        known = open_now.get(key) or _ended_soon_before(db, home, key, seen.at)
        if known is None:
            table.insert(_new(home, key, finding, seen))
        else:
            table.update(known["id"], _continued(known, finding, seen))
    for key, row in open_now.items():
        found_run = repaired.get(key)
        if found_run:
            table.update(row["id"], {"repair": found_run.id})
        if key not in seen.findings and (end := _end(row, seen, found_run, is_gap)):
            table.update(row["id"], end)


def _continued(known: Any, finding: SeenFinding, seen: Observation) -> dict[str, Any]:
    """What changes in an episode whose problem is seen again."""
    worst = min(finding.severity, _severity(known["severity"]), key=lambda one: one.rank)
    needed = seen.options.intersection(str(known["options"] or "").split())
    return {
        **{"severity": worst.value, "title": finding.title, "check": finding.check},
        **{"last_seen": to_text(seen.at), "ended": None, "how": None, "repair": None},
        "returns": number(known["returns"]) + (known["ended"] is not None),
        "options": " ".join(sorted(needed)),
    }


def _end(
    row: Any, seen: Observation, run: EndedRun | None, is_gap: Callable[[int], bool]
) -> dict[str, Any] | None:
    """How an open episode ends; None if it may still be there."""
    code, check, last = str(row["code"]), str(row["check"]), from_text(row["last_seen"])
    repair = run.id if run else row["repair"]
    looked = seen.may_end(code, check, str(row["options"] or ""))
    if not looked:
        if seen.knows(check) and not seen.has_given_up(code, last):
            return None
        return {"ended": to_text(last), "how": UNKNOWN, "repair": repair}
    unseen = is_gap(last)
    return {
        "ended": to_text(last if unseen else seen.at),
        "how": REPAIRED if repair else UNKNOWN if unseen else GONE,
        "repair": repair,
    }


def _severity(stored: Any) -> Severity:
    try:
        return Severity(stored)
    except ValueError:
        raise ImpossibleValue("not a severity") from None


def _new(home: int, key: Key, finding: SeenFinding, seen: Observation) -> dict[str, Any]:
    at = to_text(seen.at)
    return {
        **{"home": home, "code": key[0], "subject": key[1], "severity": finding.severity.value},
        **{"title": finding.title, "check": finding.check, "returns": 0},
        **{"first_seen": at, "last_seen": at, "ended": None, "how": None, "repair": None},
        "options": " ".join(sorted(seen.options)),
    }


def _ended_soon_before(db: Database, home: int, key: Key, at: int) -> dict[str, Any] | None:
    """The episode that ended by itself a short time ago."""
    rows = db.table("episodes").rows_where(
        "home = ? and code = ? and subject = ? and ended >= ? and how = ?",
        [home, *key, to_text(max(0, at - SOON)), GONE],
        order_by="ended desc",
        limit=1,
    )
    return next(iter(list(rows)), None)


def _attach(db: Database, home: int, key: Key, run: EndedRun) -> None:
    """Note the run at an episode that ended while it worked, before its receipt said how."""
    db.execute(
        "UPDATE episodes SET how = ?, repair = ? WHERE home = ? AND code = ? AND subject = ? "
        "AND how = ? AND ended BETWEEN ? AND ?",
        (REPAIRED, run.id, home, *key, GONE, to_text(run.began), to_text(run.at)),
    )


def _record_runs(db: Database, home: int, runs: Sequence[EndedRun]) -> dict[Key, EndedRun]:
    """Mark the runs; return which problem which run repaired."""
    repaired: dict[Key, EndedRun] = {}
    for run in runs:
        for item in run.items:
            code, subject = item.key
            kind = "repair" if run.kind == "fix" else run.kind
            what = f"{item.fix}: {item.outcome}"
            add_mark(db, home, run.at, kind, what, code=code, subject=subject, run=run.id)
            if run.kind == "fix" and item.outcome == "verified":
                repaired[item.key] = run
    return repaired
