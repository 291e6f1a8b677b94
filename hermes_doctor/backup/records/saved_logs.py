"""Find backups of deleted write-ahead logs whose rows may be missing in the live database."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hermes_doctor.backup.records.unfinished import LIMIT, RUN_FILE
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import list_folder, read

MOST = 20
"""The most backups that are compared, newest first."""
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
    found: dict[str, bytes] = {}
    for name in list_folder(home.runs):
        try:
            found[name] = read(home.runs / name / RUN_FILE, LIMIT)[0]
        except (FileNotFoundError, CouldNotLook):
            continue  # another check reports receipts that cannot be read
    if not any(_NAME in data and _EMPTY not in data for data in found.values()):
        return []
    receipts = {name: receipt for name, data in found.items() if (receipt := _parsed(data))}
    done = [one for one in receipts.values() if one.get("state") == "done"]
    settled = {id for one in done for id in _texts(one.get("settled"))}
    logs = [
        SavedLog(id, run, Path(one.get("vault") or home.vault), _restored(done, id))
        for run, one in receipts.items()
        for id in _texts(one.get("saved"))
        if id not in settled and id == os.path.basename(id)
    ]
    return sorted(filter(_is_kept, logs), reverse=True)[:MOST]


def _is_kept(log: SavedLog) -> bool:
    """Whether the backup still exists; True for a missing vault, which may be mounted again."""
    return os.path.lexists(log.root / log.id) or not os.path.isdir(log.root)


def _restored(done: list[dict[str, Any]], id: str) -> frozenset[str]:
    """Return the paths that `backup restore` restored from a backup, unless that was undone."""
    mine = [one for one in done if (one.get("kind"), one.get("of")) == ("restore", id)]
    paths = [record for one in mine for record in one.get("paths") or () if type(record) is dict]
    return frozenset(str(record.get("path")) for record in paths)


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        receipt = json.loads(data)
    except (ValueError, RecursionError):
        return None
    whole = type(receipt) is dict and isinstance(receipt.get("vault", ""), str)
    return receipt if whole else None


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
