"""What receipts and journals say, read without loading them as journals.

- When this tool worked on a home: its own stops and starts of the gateway are not crashes. What
  such a run repaired and proved is over: older log lines and restart counters no longer count.
- Which runs were interrupted before their end, and which left the gateway down.
- Which backups of deleted write-ahead logs may have rows that the live database lacks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import open_files
from hermes_doctor.core.system.files import MEGABYTE, list_folder, read, snapshot

RUN_FILE = "run.json"
FINAL_STATES = frozenset({"done", "partly", "rolled-back", "abandoned", "undone"})
GOING = frozenset({"backing-up", "staging", "committing", "verifying", "ending"})
LIMIT = 32 * MEGABYTE
_MALFORMED = (ValueError, LookupError, AttributeError, TypeError, RecursionError)
"""What a document raises that is no receipt."""
MOST_RUNS = 50
"""The most runs that are read to find when this tool worked on a home."""
MOST_ABOUT_GATEWAY = 20
"""The most receipts that are read to find the latest one that names the gateway."""
MOST_LOGS = 20
"""The most backups of logs that are compared, newest first."""


def _read(home: Home, id: str) -> bytes:
    return read(home.runs / id / RUN_FILE, LIMIT)[0]


def _receipts(home: Home, ids: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The ids of runs with their receipts, without those that cannot be read."""
    for id in ids:
        with suppress(OSError, CouldNotLook):
            if receipt := _parsed(_read(home, id)):
                yield id, receipt


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        receipt = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return receipt if isinstance(receipt, dict) else None


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None


class Handled(NamedTuple):
    """A stretch of time in which this tool worked on a home, in seconds since 1970."""

    began: float
    ended: float
    proved: bool
    """Whether a gateway was started and stayed up: the ends of earlier ones are over."""
    codes: frozenset[str] = frozenset()
    """The codes that were repaired, as a check proved."""


def when_handled(home: Home, since: float) -> list[Handled]:
    """What this tool did since then, in order of its end."""
    return sorted([*_runs(home, since), *_updates(home, since)], key=lambda work: work.ended)


def _runs(home: Home, since: float) -> Iterator[Handled]:
    """The runs that have ended; the id of a run is the time of its start."""
    try:
        first = f"{datetime.fromtimestamp(since, UTC):%Y%m%d-%H%M%S}"
        ids = sorted(name for name in list_folder(home.runs) if name >= first)
    except (CouldNotLook, ValueError, OverflowError, OSError):
        return
    for _, receipt in _receipts(home, ids[-MOST_RUNS:]):
        try:
            in_place = receipt["state"] in ("done", "partly")
            verified = {i["code"] for i in receipt["items"] if i["outcome"] == "verified"}
            yield Handled(
                datetime.fromisoformat(receipt["started_at"]).timestamp(),
                datetime.fromisoformat(receipt["ended_at"]).timestamp(),
                proved=in_place and receipt["gateway"] == "started",
                codes=frozenset(verified if in_place and receipt["kind"] == "fix" else ()),
            )
        except (*_MALFORMED, OverflowError, OSError):  # or it has not ended
            continue


def _updates(home: Home, since: float) -> Iterator[Handled]:
    """The updates and rollbacks whose result was checked; a record is last saved at the end."""
    if not os.path.isdir(home.vault / "updates"):
        return
    from hermes_doctor.backup.records.updates import BACK, CHECKED, UpdateRecords

    records = UpdateRecords(home)
    for id in records.ids():
        try:
            update = records.load(id)
            ended = snapshot(records.file(id)).mtime_ns / 1e9
        except (Trouble, CouldNotLook, OSError):
            continue
        if update.stage in (CHECKED, BACK) and ended > since:
            proved = update.had_gateway or update.stage == BACK
            yield Handled(update.began.timestamp(), ended, proved)


class UnfinishedRun(NamedTuple):
    """A run whose journal has no final state."""

    id: str
    state: str
    started_at: datetime | None
    running: bool
    """Whether a process holds the home's lock, so the run is still going on."""
    waits_for_gateway: bool = False
    """Whether it told the gateway to end and still waits for that."""


def unfinished_runs(home: Home) -> list[UnfinishedRun]:
    """Return the runs of this home that have not ended, oldest first."""
    unfinished: list[UnfinishedRun] = []
    names = list_folder(home.runs)
    busy = bool(names) and bool(open_files.lock_holders([home.path]))
    for name in names:
        try:
            journal = json.loads(_read(home, name))
            state, started = journal["state"], journal.get("started_at")
            if state not in (*FINAL_STATES, *GOING):
                raise ValueError("an unknown state")
        except FileNotFoundError:
            if snapshot(home.runs / name / RUN_FILE).kind != "absent":  # a dangling symlink
                unfinished.append(UnfinishedRun(name, "unreadable", None, busy))
            continue
        except (CouldNotLook, ValueError, KeyError, TypeError, RecursionError):
            unfinished.append(UnfinishedRun(name, "unreadable", None, busy))
            continue
        if state not in FINAL_STATES:
            waits = journal.get("gateway") == "asked"
            unfinished.append(UnfinishedRun(name, state, _time(started), busy, waits))
    return unfinished


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
    names = sorted(list_folder(home.runs), reverse=True)[:MOST_ABOUT_GATEWAY]
    for id, receipt in _receipts(home, names):
        word, ended = receipt.get("gateway"), _time(receipt.get("ended_at"))
        if word in ("asked", "stopped", "started", "left-stopped"):
            if word == "started" or ended is None or ended.tzinfo is None:
                return None
            if word != "left-stopped":
                return LeftDown(id, ended)
            reasons = _why_down_before(home, names, id)
            wanted = "not-wanted" not in reasons
            return None if "on-purpose" in reasons else LeftDown(id, ended, True, wanted)
    return None


def _why_down_before(home: Home, names: list[str], undo: str) -> list[str]:
    """Why the gateway was down before the runs that an undo has undone."""
    reasons = []
    for _, receipt in _receipts(home, names):
        if receipt.get("undone_by") == undo:
            try:
                reasons += [str(item.get("down")) for item in receipt["items"]]
            except _MALFORMED:
                continue
    return reasons


_NAME, _EMPTY = b'"saved": [', b'"saved": []'


class SavedLog(NamedTuple):
    """A backup of a database together with its deleted write-ahead log."""

    id: str
    run: str
    root: Path
    """The vault that the run used."""
    restored: frozenset[str]
    """Databases that were restored from it since."""


def unsettled_logs(home: Home) -> list[SavedLog]:
    """Return the backups whose rows may be missing in the live database, newest first.

    A backup is settled if a finished run compared it with the database or added its rows. In a
    home without such backups, each receipt is only searched for their field, not parsed.
    """
    written: dict[str, bytes] = {}
    for name in list_folder(home.runs):
        try:
            written[name] = _read(home, name)
        except (FileNotFoundError, CouldNotLook):
            continue  # another check reports receipts that cannot be read
    if not any(_NAME in data and _EMPTY not in data for data in written.values()):
        return []
    receipts = {
        run: receipt
        for run, data in written.items()
        if (receipt := _parsed(data)) and isinstance(receipt.get("vault", ""), str)
    }
    done = [receipt for receipt in receipts.values() if receipt.get("state") == "done"]
    settled = {id for receipt in done for id in _texts(receipt.get("settled"))}
    logs = [
        SavedLog(id, run, Path(receipt.get("vault") or home.vault), _restored(done, id))
        for run, receipt in receipts.items()
        for id in _texts(receipt.get("saved"))
        if id not in settled and id == os.path.basename(id)
    ]
    # A vault that is missing may be mounted again. Only root may be able to look into its folder.
    logs = [
        log for log in logs if os.path.lexists(log.root / log.id) or not os.path.isdir(log.root)
    ]
    return sorted(logs, reverse=True)[:MOST_LOGS]


def _restored(done: list[dict[str, Any]], id: str) -> frozenset[str]:
    """Return the paths that `backup restore` restored from a backup, unless that was undone."""
    mine = [run for run in done if (run.get("kind"), run.get("of")) == ("restore", id)]
    paths = [record for run in mine for record in run.get("paths") or ()]
    return frozenset(str(record.get("path")) for record in paths if type(record) is dict)


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
