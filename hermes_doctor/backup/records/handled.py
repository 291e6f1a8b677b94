"""When this tool worked on a home: its own stops and starts of the gateway are not crashes.

What such a run repaired and proved is over: older log lines and restart counters no longer count.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import Any

from hermes_doctor.backup.records.unfinished import LIMIT, RUN_FILE
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system.files import list_folder, read, snapshot

MOST = 50
"""The most runs that are read."""


class Handled(NamedTuple):
    """A stretch of time in which this tool worked on a home, in seconds since 1970."""

    began: float
    ended: float
    proved: bool
    """Whether a gateway was started and stayed up: the ends of earlier ones are over."""
    codes: frozenset[str] = frozenset()
    """The codes that were repaired, as a check proved."""


def find(home: Home, since: float) -> list[Handled]:
    """What this tool did since then, in order of its end."""
    return sorted([*_runs(home, since), *_updates(home, since)], key=lambda one: one.ended)


def _runs(home: Home, since: float) -> list[Handled]:
    """The runs that have ended; the id of a run is the time of its start."""
    try:
        first = f"{datetime.fromtimestamp(since, UTC):%Y%m%d-%H%M%S}"
        ids = sorted(name for name in list_folder(home.runs) if name >= first)
    except (CouldNotLook, ValueError, OverflowError, OSError):
        return []
    handled = []
    for id in ids[-MOST:]:
        try:
            handled.append(_of_run(json.loads(read(home.runs / id / RUN_FILE, LIMIT)[0])))
        except (OSError, CouldNotLook, ValueError, TypeError, LookupError, RecursionError):
            continue
    return handled


def _of_run(said: Any) -> Handled:
    """The stretch of time of a receipt; ValueError or the like if it is not finished."""
    in_place = said["state"] in ("done", "partly")
    verified = {one["code"] for one in said["items"] if one["outcome"] == "verified"}
    return Handled(
        datetime.fromisoformat(said["started_at"]).timestamp(),
        datetime.fromisoformat(said["ended_at"]).timestamp(),
        proved=in_place and said["gateway"] == "started",
        codes=frozenset(verified) if in_place and said["kind"] == "fix" else frozenset(),
    )


def _updates(home: Home, since: float) -> list[Handled]:
    """The updates and rollbacks whose result was checked; a record is last saved at the end."""
    if not os.path.isdir(home.vault / "updates"):
        return []
    from hermes_doctor.backup.records.updates import BACK, CHECKED, UpdateRecords

    records = UpdateRecords(home)
    handled = []
    for id in records.ids():
        try:
            update = records.load(id)
            ended = snapshot(records.file(id)).mtime_ns / 1e9
        except (Trouble, CouldNotLook, OSError):
            continue
        if update.stage in (CHECKED, BACK) and ended > since:
            proved = update.had_gateway or update.stage == BACK
            handled.append(Handled(update.began.timestamp(), ended, proved))
    return handled
