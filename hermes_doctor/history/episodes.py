"""Opens, continues and ends the episodes of problems.

An episode begins when a problem is first seen, and ends when its check ran and did not find it. A
problem that comes back soon continues its episode, so that one that flaps all year stays small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes_doctor.history.marks import add_mark
from hermes_doctor.history.moments import to_text
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
    db: Database, home: int, seen: Observation, unseen: bool, runs: Sequence[EndedRun]
) -> None:
    """Bring the episodes of a home up to date; `unseen` if there was a gap before."""
    table = db.table("episodes")
    open_now: dict[Key, dict[str, Any]] = {
        (str(row["code"]), str(row["subject"])): row
        for row in table.rows_where("home = ? and ended is null", [home])
    }
    for key, finding in seen.findings.items():
        known = open_now.get(key) or _ended_soon_before(db, home, key, seen.at)
        if known is None:
            table.insert(_new(home, key, finding, seen.at))
            continue
        worst = min(finding.severity, Severity(known["severity"]), key=lambda one: one.rank)
        now: dict[str, Any] = {
            "severity": worst.value,
            "title": finding.title,
            "check": finding.check,
        }
        now |= {"last_seen": to_text(seen.at), "ended": None, "how": None, "repair": None}
        now["returns"] = int(known["returns"]) + (known["ended"] is not None)
        table.update(known["id"], now)
    repaired = _record_runs(db, home, runs)
    for key, row in open_now.items():
        run = repaired.get(key)
        if run:
            table.update(row["id"], {"repair": run})
        if key in seen.findings or not seen.may_end(key[0], str(row["check"])):
            continue
        run = run or row["repair"]
        how = REPAIRED if run else UNKNOWN if unseen else GONE
        ended = str(row["last_seen"]) if unseen else to_text(seen.at)
        table.update(row["id"], {"ended": ended, "how": how, "repair": run})


def _new(home: int, key: Key, finding: SeenFinding, at: int) -> dict[str, Any]:
    return {
        **{"home": home, "code": key[0], "subject": key[1], "severity": finding.severity.value},
        **{"title": finding.title, "check": finding.check, "returns": 0},
        **{"first_seen": to_text(at), "last_seen": to_text(at)},
        **{"ended": None, "how": None, "repair": None},
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


def _record_runs(db: Database, home: int, runs: Sequence[EndedRun]) -> dict[Key, str]:
    """Mark the runs; return which problem which run repaired."""
    repaired: dict[Key, str] = {}
    for run in runs:
        for item in run.items:
            code, subject = item.key
            kind = "repair" if run.kind == "fix" else run.kind
            what = f"{item.fix}: {item.outcome}"
            add_mark(db, home, run.at, kind, what, code=code, subject=subject, run=run.id)
            if run.kind == "fix" and item.outcome == "verified":
                repaired[item.key] = run.id
    return repaired
