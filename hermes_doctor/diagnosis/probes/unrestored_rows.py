"""Rows that a run saved from a deleted write-ahead log and that the live database lacks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.backup.records.saved_logs import SavedLog
from hermes_doctor.backup.vault.backup_rows import expired_before
from hermes_doctor.backup.vault.manifest import Backup, BackupEntry
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system.files import MEGABYTE, size, snapshot
from hermes_doctor.core.system.root_parent import NeedsRoot
from hermes_doctor.sqlite import saved_rows
from hermes_doctor.sqlite.saved_rows import SavedMessage
from hermes_doctor.sqlite.wal import LOG_HEAD as LOG_HEAD

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.probes.databases_view import DatabasesView

HISTORY, BOARD = "state.db", "kanban.db"
LARGEST = 256 * MEGABYTE
"""The maximum size in bytes of a saved log that a check reads."""


class UnrestoredRows(NamedTuple):
    """The rows that a backup has and the live database lacks."""

    backup: str
    saved_at: datetime
    run: str
    database: str
    """Its path within the home."""
    noun: str
    addable: int
    """How many rows the tool can add."""
    not_addable: int
    """How many rows it cannot add without mixing them up with existing ones."""
    options: str
    """The command line options for this home, and for the vault if it is not the default."""


def find(
    databases: DatabasesView, logs: Sequence[SavedLog]
) -> Iterator[UnrestoredRows | CouldNotLook]:
    """Compare each backup with the live databases; rows in several backups count once."""
    counted: set[tuple[str, SavedMessage]] = set()
    for log in logs:
        try:
            backup = _loaded(databases, log)
            for entry in _databases(backup, log):
                if rows := _compared(databases, log, backup, entry, counted):
                    yield rows
        except (CouldNotLook, Trouble) as why:
            reason = str(why).rstrip(".")
            yield CouldNotLook("could not compare backup {id}: {reason}", id=log.id, reason=reason)
        except OSError:
            yield CouldNotLook("could not compare backup {id}: it cannot be read", id=log.id)


def _loaded(databases: DatabasesView, log: SavedLog) -> Backup:
    if snapshot(log.root).kind == "absent":
        raise CouldNotLook("the vault {root} is missing", root=log.root)
    try:
        return Vault(databases.home, log.root).load(log.id)
    except NeedsRoot:
        raise CouldNotLook("only root may read the vault") from None


def _databases(backup: Backup, log: SavedLog) -> Iterator[BackupEntry]:
    """Yield the databases with rows in their log that were not restored from this backup."""
    for entry in backup.entries:
        known = entry.path.rpartition("/")[2] in (HISTORY, BOARD)
        if not known or entry.kind != "file" or entry.path in log.restored:
            continue
        beside = backup.entry(f"{entry.path}-wal")
        if beside is None or beside.size < LOG_HEAD:
            continue
        if beside.size > LARGEST:
            raise CouldNotLook(
                "its write-ahead log (-wal) is too large to read ({size})", size=size(beside.size)
            )
        yield entry


def _compared(
    databases: DatabasesView,
    log: SavedLog,
    backup: Backup,
    entry: BackupEntry,
    counted: set[tuple[str, SavedMessage]],
) -> UnrestoredRows | None:
    path = databases.home / entry.path
    if any(lost.database == path for lost in databases.lost_files()):
        return None  # the process that holds the deleted log still runs: another check reports it
    ask = _asking(databases, path)
    copy = backup.copy_of(entry)
    addable = others = 0
    if entry.path.rpartition("/")[2] == BOARD:
        others = saved_rows.count_missing_tasks(copy, ask)
    else:
        since = partial(expired_before, databases.home)
        missing_messages = saved_rows.find_missing_messages(
            saved_rows.read_messages(copy), ask, since
        )
        new = [
            (entry.path, message)
            for message in (*missing_messages.own, *missing_messages.renumbered)
        ]
        rest = [(entry.path, saved_message) for saved_message in missing_messages.left]
        addable = sum(one not in counted for one in new)
        others = sum(one not in counted for one in rest)
        counted.update(new, rest)
    if not addable and not others:
        return None
    options = f"--home {shlex.quote(str(databases.home.path))}"
    if log.root != databases.home.vault:
        options += f" --vault {shlex.quote(str(log.root))}"
    noun = "task" if entry.path.rpartition("/")[2] == BOARD else "message"
    return UnrestoredRows(
        log.id, backup.created_at, log.run, entry.path, noun, addable, others, options
    )


def _asking(databases: DatabasesView, path: Path) -> saved_rows.Ask:
    """Return a function that queries the live database."""
    try:
        condition = databases.condition(path)
    except FileNotFoundError:
        raise CouldNotLook("{path} is missing", path=path.name) from None
    if condition.reader is None or not condition.readable:
        raise CouldNotLook("{path} cannot be read", path=path.name)
    return saved_rows.query_function(condition.reader)
