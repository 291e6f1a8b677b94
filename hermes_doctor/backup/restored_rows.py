"""Say before a restore how the rows of a backup differ from those of the live databases."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from datetime import UTC, datetime

from hermes_doctor.backup.entry import BackupEntry
from hermes_doctor.backup.manifest import Backup
from hermes_doctor.backup.row_comparison import COMPARED_ROWS, Contents
from hermes_doctor.backup.unique_rows import LastRows, more_rows
from hermes_doctor.message import clock, text
from hermes_doctor.model import CouldNotLook


def differences(rows: LastRows, backup: Backup, names: Container[str]) -> Iterator[str]:
    """How the databases of a backup differ from the live ones, in sentences."""
    for entry in backup.entries:
        counted = COMPARED_ROWS.get(entry.path.rpartition("/")[2])
        if not counted or entry.kind != "file" or entry.path not in names:
            continue
        name = entry.path
        mine = rows.copied(backup, entry, counted)
        live = rows.current(name, counted)
        if isinstance(mine, str):
            yield f"Could not compare {name} of backup {backup.id}: {mine}."
            continue
        if isinstance(live, str):
            yield f"Could not compare backup {backup.id} with the current {name}: {live}."
            continue
        try:
            lacks, new = more_rows(mine, live), more_rows(live, mine)
        except (CouldNotLook, OSError) as why:
            yield f"Could not compare backup {backup.id} with the current {name}: {why}."
            continue
        has = f"lacks {counted.number(lacks)} that" if lacks else f"has every {counted.noun} that"
        yield f"{name} {has} backup {backup.id} has."
        if new:
            yield (
                f"{name} has {counted.number(new)} that backup {backup.id} lacks: the restore "
                f"removes them from {name} and keeps them in a backup. To get them back: "
                f"hermes-doctor undo"
            )


def removed_by(rows: LastRows, backup: Backup, entries: Iterable[BackupEntry]) -> list[str]:
    """Say how many rows a restore of these entries removes from the live databases."""
    since = backup.created_at.timestamp()
    return [said for entry in entries if (said := removed(rows, backup, entry, since))]


def removed(rows: LastRows, backup: Backup, entry: BackupEntry, since: float) -> str:
    """Say how many rows a restore of this entry removes from the live database; "" if none.

    If the copy cannot be compared, the rows from after the time `since` are counted.
    """
    name = entry.path
    counted = COMPARED_ROWS.get(name.rpartition("/")[2])
    there = os.path.lexists(rows.vault.home.path / name)
    if counted is None or entry.kind == "mode" or not there:
        return ""
    live = rows.current(name, counted)
    if isinstance(live, str):
        return text(
            "Could not count what is new in {file}: {reason}. The current file is kept in a "
            "backup.",
            file=name,
            reason=live,
        )
    mine = rows.copied(backup, entry, counted) if entry.kind == "file" else ""
    try:
        new = _later(live, since) if isinstance(mine, str) else more_rows(live, mine)
    except (CouldNotLook, OSError) as why:
        return text("Could not count what is new in {file}: {reason}.", file=name, reason=why)
    if not new:
        return ""
    if isinstance(mine, str):
        return text(
            "{rows} from after {time} will be removed from {file} and kept in a backup.",
            rows=counted.number(new),
            time=clock(datetime.fromtimestamp(since, UTC)),
            file=name,
        )
    return text(
        "{rows} that the restored copy lacks will be removed from {file} and kept in a backup.",
        rows=counted.number(new),
        file=name,
    )


def _later(live: Contents, since: float) -> int:
    """How many rows have a time after `since`."""
    with live.opened() as rows:
        return sum(at is not None and at > since for _, _, at in rows)
