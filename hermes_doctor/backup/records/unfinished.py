"""Find runs of this tool that were interrupted before their end."""

from __future__ import annotations

import json
from datetime import datetime

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import open_files
from hermes_doctor.core.system.files import MEGABYTE, list_folder, read, snapshot

RUN_FILE = "run.json"
FINAL_STATES = frozenset({"done", "partly", "rolled-back", "abandoned", "undone"})
GOING = frozenset({"backing-up", "staging", "committing", "verifying", "ending"})
LIMIT = 32 * MEGABYTE
_MALFORMED = (AttributeError, TypeError, RecursionError)
MOST = 20
"""The most receipts that are read to find the latest one that names the gateway."""


class UnfinishedRun(NamedTuple):
    """A run whose journal has no final state."""

    id: str
    state: str
    started_at: datetime | None
    running: bool
    """Whether a process holds the home's lock, so the run is still going on."""
    waits_for_gateway: bool = False
    """Whether it told the gateway to end and still waits for that."""


class LeftDown(NamedTuple):
    """A run that stopped the gateway and left it down, although nobody had asked for that."""

    id: str
    ended_at: datetime
    undo: bool = False
    """An undo, and no gateway ran before the repair; else it could not start it again."""
    wanted: bool = True
    """Whether the gateway should have been running before."""


def run_that_left_gateway_down(home: Home) -> LeftDown | None:
    """Return the latest run that stopped or started the gateway, if it left it down.

    An undo that stopped a gateway restores the state before: down, and perhaps on purpose.
    """
    names = sorted(list_folder(home.runs), reverse=True)[:MOST]
    for name in names:
        try:
            said = json.loads(read(home.runs / name / RUN_FILE, LIMIT)[0])
            word, ended = said.get("gateway"), _time(said.get("ended_at"))
        except (FileNotFoundError, CouldNotLook, ValueError, AttributeError, RecursionError):
            continue
        if word in ("asked", "stopped", "started", "left-stopped"):
            if word == "started" or ended is None or ended.tzinfo is None:
                return None
            if word != "left-stopped":
                return LeftDown(name, ended)
            reasons = _why_down_before(home, names, name)
            wanted = "not-wanted" not in reasons
            return None if "on-purpose" in reasons else LeftDown(name, ended, True, wanted)
    return None


def _why_down_before(home: Home, names: list[str], undo: str) -> list[str]:
    """Why the gateway was down before the runs that an undo has undone."""
    found = []
    for name in names:
        try:
            said = json.loads(read(home.runs / name / RUN_FILE, LIMIT)[0])
            if said.get("undone_by") == undo:
                found += [str(item.get("down")) for item in said["items"]]
        except (OSError, CouldNotLook, ValueError, LookupError, *_MALFORMED):
            continue
    return found


def unfinished_runs(home: Home) -> list[UnfinishedRun]:
    """Return the runs of this home that have not ended, oldest first."""
    found: list[UnfinishedRun] = []
    names = list_folder(home.runs)
    busy = bool(names) and bool(open_files.lock_holders([home.path]))
    for name in names:
        try:
            data, _ = read(home.runs / name / RUN_FILE, LIMIT)
            journal = json.loads(data)
            state, started = journal["state"], journal.get("started_at")
            if state not in (*FINAL_STATES, *GOING):
                raise ValueError("an unknown state")
        except FileNotFoundError:
            if snapshot(home.runs / name / RUN_FILE).kind != "absent":  # a dangling symlink
                found.append(UnfinishedRun(name, "unreadable", None, busy))
            continue
        except (CouldNotLook, ValueError, KeyError, TypeError, RecursionError):
            found.append(UnfinishedRun(name, "unreadable", None, busy))
            continue
        if state not in FINAL_STATES:
            waits = journal.get("gateway") == "asked"
            found.append(UnfinishedRun(name, state, _time(started), busy, waits))
    return found


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None
