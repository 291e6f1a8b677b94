"""Writes one observation of a home into the history, inside a transaction.

Time is counted from the last moment that any process recorded for the home. So two watches on one
home do not count it twice, and time in which nothing was recorded stays unknown.

An episode begins when a problem is first seen, and ends when its check ran and did not find it. A
problem that comes back soon continues its episode, so that one that flaps all year stays small.
Marks are moments at which something changed, such as an update or a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hermes_doctor import __version__
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import duration
from hermes_doctor.core.model import Severity
from hermes_doctor.diagnosis.examination.condition import Condition
from hermes_doctor.operations.history import place, prune
from hermes_doctor.operations.history.layout import (
    DAY,
    HOUR,
    ImpossibleValue,
    from_text,
    longest_single_gap,
    number,
    split_by_hour,
    to_text,
)
from hermes_doctor.operations.history.observation import EndedRun, Key, Observation, SeenFinding

if TYPE_CHECKING:
    from sqlite_utils import Database


SLACK = 120
"""Seconds by which a record may be older than the last one without meaning a changed clock."""
JITTER = 120
"""Seconds by which the start of one process may differ: it is derived from the clock."""
JUMP = 30 * DAY
"""A gap from which on the clock must prove itself again before anything is pruned."""
_COUNTED = (Condition.WORKING, Condition.LIMITED, Condition.SILENT)


class Continuity(NamedTuple):
    """What the recorder knows about the time since its last record."""

    longest: int
    """Seconds without a record that still count as watched."""
    since: int | None = None
    """When this watch wrote its last record; it has watched without a gap since then."""
    single: bool = False
    """Single checks, such as those of cron: they may be as far apart as the last two were."""
    gap: bool = False
    """The machine slept or its clock was set since the last record."""
    due: int = 0
    """Seconds within which the next record follows if nothing changes; 0 if only `longest` says."""


def record(
    db: Database,
    home: Home,
    seen: Observation,
    known: Continuity,
    boot: str,
    runs: Sequence[EndedRun] = (),
) -> list[str]:
    """Record an observation and the runs that ended before it, oldest first.

    Return what the operator should know, such as a changed clock.
    """
    rows = list(db.table("homes").rows)
    identity = seen.identity or place.identity_of(home.path)
    if not identity:
        return []  # the home is gone, so this cannot be assigned to one
    path = place.stored_path(home.path)
    row = place.find_row(rows, path, identity, boot)
    if row is None:
        last_run = runs[-1].id if runs else ""
        _first_record(
            db, home, seen, known, {"identity": identity, "boot": boot, "last_run": last_run}
        )
        return []
    home_id, last = int(row["id"]), from_text(row["last_seen"])
    notes: list[str] = []
    changed: dict[str, Any] = {"boot": boot, "identity": identity}
    if row["path"] != path and place.identity_of_text(row["path"]) != identity:
        add_mark(db, home_id, seen.at, "moved", f"{row['path']} → {path}")
        changed["path"] = path
    if seen.at < last - SLACK:
        notes.append(f"the clock was set back by {duration(last - seen.at)}; the history continues")
        _set_back(db, home_id, seen.at)
        add_mark(db, home_id, seen.at, "clock", f"set back by {duration(last - seen.at)}")
        changed |= {"counted_until": None, "steady_since": to_text(seen.at)}
        row, last, known = {**row, **changed}, seen.at, known._replace(gap=True, since=None)
    elif seen.at - last > JUMP:
        changed["steady_since"] = to_text(seen.at)
    seen = seen._replace(at=max(seen.at, last))
    unseen = _is_gap(row, last, seen.at, known)
    if seen.condition is not None:
        changed |= _count_time(db, row, seen, known)
    new = [run for run in runs if run.id > str(row["last_run"] or "")]
    record_findings(db, home_id, seen, new, lambda last: _is_gap(row, last, seen.at, known))
    if new:
        changed["last_run"] = new[-1].id
    changed |= _changes(db, row, seen, unseen)
    if known.single and known.since is None and seen.at > last:
        changed["spacing"] = min(seen.at - last, DAY)
    changed["last_seen"] = to_text(seen.at)
    changed["due"] = known.due or _longest({**row, **changed}, known)
    changed |= prune.prune_daily(db, {**row, **changed}, seen.at)
    db.table("homes").update(home_id, changed)
    return notes


def _first_record(
    db: Database, home: Home, seen: Observation, known: Continuity, more: dict[str, Any]
) -> None:
    now = to_text(seen.at)
    gateway = seen.gateways[0] if seen.gateways else None
    homes = db.table("homes").insert(
        {
            "path": place.stored_path(home.path),
            **more,
            "first_seen": now,
            "last_seen": now,
            "condition": None if seen.condition is None else seen.condition.value,
            "counted_until": now if seen.condition is not None else None,
            "spacing": 0,
            "hermes": seen.hermes,
            "doctor": __version__,
            "gateway": gateway.pid if gateway else None if seen.gateways is None else 0,
            "gateway_started": to_text(gateway.started) if gateway else None,
            "steady_since": now,
            "pruned": now,
            "due": known.due or known.longest,
        }
    )
    record_findings(db, int(str(homes.last_pk)), seen, [], lambda _: False)


def _is_gap(row: Any, last: int, at: int, known: Continuity) -> bool:
    """Whether nobody knows how the home was between the last record and this one."""
    if known.gap:
        return True
    if known.since is not None and last >= known.since:
        return False
    return at - last > _longest(row, known)


def _longest(row: Any, known: Continuity) -> int:
    if known.single:
        return longest_single_gap(known.longest, number(row["spacing"]))
    return known.longest


def _count_time(db: Database, row: Any, seen: Observation, known: Continuity) -> dict[str, Any]:
    """Add the time since the last full check to the condition that the bot was in."""
    changed = {"condition": str(seen.condition), "counted_until": to_text(seen.at)}
    if row["counted_until"] is None or row["condition"] not in _COUNTED:
        return changed
    column, start = str(row["condition"]), from_text(row["counted_until"])
    if _is_gap(row, start, seen.at, known):
        return changed
    hours = db.table("hours")
    for hour, more in split_by_hour(start, seen.at):
        key = (row["id"], to_text(hour))
        before = list(hours.rows_where("home = ? and hour = ?", key))
        spent = {name.value: number(before[0][name.value]) if before else 0 for name in _COUNTED}
        spent[column] += min(more, max(0, HOUR - sum(spent.values())))
        hours.upsert({"home": key[0], "hour": key[1], **spent}, pk=("home", "hour"))
    return changed


def _changes(db: Database, row: Any, seen: Observation, unseen: bool) -> dict[str, Any]:
    """Mark a new version and a gateway that was started or stopped; return what to remember."""
    changed: dict[str, Any] = {}
    if row["doctor"] != __version__:
        add_mark(db, row["id"], seen.at, "doctor", f"{row['doctor']} → {__version__}")
        changed["doctor"] = __version__
    if seen.hermes is not None and seen.hermes != row["hermes"]:
        if row["hermes"]:
            add_mark(db, row["id"], seen.at, "update", f"{row['hermes']} → {seen.hermes}")
        changed["hermes"] = seen.hermes
    if seen.gateways is None:
        return changed
    before, gateway = row["gateway"], seen.gateways[0] if seen.gateways else None
    pid = gateway.pid if gateway else 0
    started = to_text(gateway.started) if gateway else None
    if before is not None and pid != before:
        kind = "stop" if not pid else "restart" if before else "start"
        last = from_text(row["last_seen"])
        at = gateway.started if gateway and last < gateway.started <= seen.at else seen.at
        add_mark(db, row["id"], at, kind, f"gateway, process {pid or before}")
    elif gateway and row["gateway_started"] and not unseen:
        moved = abs(gateway.started - from_text(row["gateway_started"]))
        if moved > JITTER:  # in a container, each gateway has the same process number
            add_mark(db, row["id"], seen.at, "restart", f"gateway, process {pid}")
    return changed | {"gateway": pid, "gateway_started": started}


def _set_back(db: Database, home_id: int, at: int) -> None:
    """Move what was recorded in the future, when the clock was wrong, to the current time."""
    now = to_text(at)
    db.execute(
        "UPDATE episodes SET first_seen = min(first_seen, ?), last_seen = min(last_seen, ?), "
        "ended = min(ended, ?) WHERE home = ?",
        (now, now, now, home_id),
    )
    db.execute(
        "UPDATE marks SET at = min(at, ?), until = min(until, ?) WHERE home = ?",
        (now, now, home_id),
    )
    db.execute("DELETE FROM hours WHERE home = ? AND hour > ?", (home_id, now))
    db.execute(
        "UPDATE homes SET first_seen = min(first_seen, ?), pruned = min(pruned, ?) WHERE id = ?",
        (now, now, home_id),
    )


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
    worst = min(finding.severity, _severity(known["severity"]), key=lambda severity: severity.rank)
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


JOINED = ("start", "stop", "restart", "clock", "doctor", "moved")
"""Kinds of which one mark per hour is kept, with a count: a gateway may restart all night."""


def add_mark(
    db: Database,
    home: int,
    at: int,
    kind: str,
    what: str,
    *,
    code: str = "",
    subject: str = "",
    run: str = "",
) -> None:
    """Add a mark; one of the same kind within the last hour is counted instead."""
    table = db.table("marks")
    now = to_text(at)
    if kind in JOINED:
        same = list(
            table.rows_where("home = ? and kind = ?", [home, kind], order_by="at desc", limit=1)
        )
        if same and abs(at - from_text(same[0]["at"])) < HOUR:
            last = max(now, str(same[0]["until"] or now))
            table.update(same[0]["id"], {"times": number(same[0]["times"]) + 1, "until": last})
            return
    table.insert(
        {
            **{"home": home, "at": now, "kind": kind, "what": what, "code": code or None},
            **{"subject": subject or None, "run": run or None, "times": 1, "until": None},
        }
    )
