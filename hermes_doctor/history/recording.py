"""Writes one observation of a home into the history, inside a transaction.

Time is counted from the last moment that any process recorded for the home. So two watches on one
home do not count it twice, and time in which nothing was recorded stays unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes_doctor import __version__
from hermes_doctor.examination.condition import Condition
from hermes_doctor.history import identity, pruning
from hermes_doctor.history.episodes import record_findings
from hermes_doctor.history.gaps import longest_single_gap
from hermes_doctor.history.marks import add_mark
from hermes_doctor.history.moments import DAY, HOUR, from_text, number, split_by_hour, to_text
from hermes_doctor.history.observation import Observation
from hermes_doctor.history.receipts import EndedRun
from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import duration

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
    place = seen.identity or identity.identity_of(home.path)
    if not place:
        return []  # the home is gone, so this cannot be assigned to one
    path = identity.stored_path(home.path)
    row = identity.find_row(rows, path, place, boot)
    if row is None:
        last_run = runs[-1].id if runs else ""
        _first_record(
            db, home, seen, known, {"identity": place, "boot": boot, "last_run": last_run}
        )
        return []
    home_id, last = int(row["id"]), from_text(row["last_seen"])
    notes: list[str] = []
    changed: dict[str, Any] = {"boot": boot, "identity": place}
    if row["path"] != path and identity.identity_of_text(row["path"]) != place:
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
    new = [one for one in runs if one.id > str(row["last_run"] or "")]
    record_findings(db, home_id, seen, new, lambda last: _is_gap(row, last, seen.at, known))
    if new:
        changed["last_run"] = new[-1].id
    changed |= _changes(db, row, seen, unseen)
    if known.single and known.since is None and seen.at > last:
        changed["spacing"] = min(seen.at - last, DAY)
    changed["last_seen"] = to_text(seen.at)
    changed["due"] = known.due or _longest({**row, **changed}, known)
    changed |= pruning.prune_daily(db, {**row, **changed}, seen.at)
    db.table("homes").update(home_id, changed)
    return notes


def _first_record(
    db: Database, home: Home, seen: Observation, known: Continuity, more: dict[str, Any]
) -> None:
    now = to_text(seen.at)
    gateway = seen.gateways[0] if seen.gateways else None
    made = db.table("homes").insert(
        {
            "path": identity.stored_path(home.path),
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
    record_findings(db, int(str(made.last_pk)), seen, [], lambda _: False)


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
        found = list(hours.rows_where("home = ? and hour = ?", key))
        spent = {name.value: number(found[0][name.value]) if found else 0 for name in _COUNTED}
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
