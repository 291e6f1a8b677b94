"""Compare what Hermes or this tool saved in files with the rows that the databases have."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.backup.records.receipts import SavedLog
from hermes_doctor.backup.vault.backup_rows import expired_before
from hermes_doctor.backup.vault.manifest import Backup, BackupEntry
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system.files import MEGABYTE, read, size, snapshot
from hermes_doctor.core.system.open_files import open_owned
from hermes_doctor.core.system.root_parent import NeedsRoot
from hermes_doctor.diagnosis.probes.unsaved_turns import (
    ALL,
    FILE,
    HISTORY,
    ROLES,
    Damaged,
    KeptFile,
    parse,
)
from hermes_doctor.sqlite import saved_rows
from hermes_doctor.sqlite.saved_rows import SavedMessage
from hermes_doctor.sqlite.unsaved_messages import (
    ANY_SESSION,
    Transcript,
    UnsavedMessages,
    find_unsaved,
)
from hermes_doctor.sqlite.wal import LOG_HEAD as LOG_HEAD

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.probes.databases_view import DatabasesView
    from hermes_doctor.diagnosis.probes.unsaved_turns import UnsavedTurns
    from hermes_doctor.sqlite.saved_rows import RetiredRows

DATABASE, BOARD = "state.db", "kanban.db"
LARGEST = 256 * MEGABYTE
"""The maximum size in bytes of a saved log that a check reads."""


class KeptTranscripts(NamedTuple):
    """What the files contain, before it is compared."""

    files: tuple[Transcript, ...]
    pending: frozenset[str]
    """Sessions to which Hermes adds messages at its next start."""
    unread: tuple[tuple[Path, str], ...]
    """The files that cannot be compared, each with the reason."""


def retired(databases: DatabasesView, folder: Path, *, patient: bool) -> RetiredRows:
    """Compare a log that was set aside; raise CouldNotLook if that is impossible.

    `patient` lets SQLite check the whole copy, however large it is.
    """
    if any(lost.database.name == DATABASE for lost in databases.lost_files()):
        raise CouldNotLook("a process still writes to a deleted log of state.db")
    return saved_rows.compare_retired_log(
        folder,
        _ask(databases, databases.home / DATABASE),
        partial(expired_before, databases.home),
        None if patient else saved_rows.SECONDS,
    )


def unsaved(databases: DatabasesView, turns: UnsavedTurns) -> UnsavedMessages:
    """Compare all transcripts of messages that were not saved."""
    kept = transcripts(turns)
    unsaved_messages = find_unsaved(
        kept.files, kept.pending, _ask(databases, databases.home / DATABASE)
    )
    unsaved_messages.unread.extend(kept.unread)
    return unsaved_messages


def transcripts(turns: UnsavedTurns) -> KeptTranscripts:
    """Read all transcripts; one that is too large or damaged does not hide the others."""
    left = ALL
    files: list[Transcript] = []
    waiting: set[str] = set()
    unread: list[tuple[Path, str]] = []
    for file in (*turns.diverted, *turns.pending):
        try:
            data = read(file.path, min(FILE, left), open_owned)[0]
            left -= len(data)
            if file.path.suffix == ".jsonl":
                lines = [line for line in data.splitlines() if line.strip()]
                messages = [_message(file.path, parse(file.path, line)) for line in lines]
                files.append(Transcript(file.path, file.path.stem, messages, file.at.timestamp()))
                continue
            said = parse(file.path, data)
            if not isinstance(said, dict):
                raise Damaged(text("{file}: does not contain messages", file=file.path.name))
            if said.get("reason") == HISTORY:
                files.append(_history(file, said))
            else:
                waiting.update(_sessions(said))
        except FileNotFoundError:
            continue
        except CouldNotLook as why:
            unread.append((file.path, str(why)))
            if not file.by_hand and not isinstance(why, Damaged):
                waiting.add(ANY_SESSION)  # Hermes may be able to read it
    return KeptTranscripts(tuple(files), frozenset(waiting), tuple(unread))


def _history(file: KeptFile, said: Mapping[str, Any]) -> Transcript:
    """The whole history of an agent that Hermes could not save when it stopped."""
    session, messages = said.get("session_id"), said.get("messages")
    if not isinstance(session, str) or not isinstance(messages, list):
        raise Damaged(text("{file}: does not name its session", file=file.path.name))
    spoken = [
        _message(file.path, message)
        for message in messages
        if not (isinstance(message, dict) and message.get("role") == "system")
    ]
    return Transcript(file.path, session, spoken, file.at.timestamp(), complete=True)


def _message(path: Path, said: object) -> Mapping[str, Any]:
    if not isinstance(said, dict) or said.get("role") not in ROLES:
        raise Damaged(text("{file}: has an entry that is not a message", file=path.name))
    return said


def _sessions(said: Mapping[str, Any]) -> Iterator[str]:
    """The sessions that a pending file may name."""
    data = said.get("data")
    inner = data.get("session_id") if isinstance(data, dict) else None
    for name in (inner, said.get("session_id"), said.get("session_key")):
        if isinstance(name, str) and name:
            yield name


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


def find_unrestored(
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
        known = entry.path.rpartition("/")[2] in (DATABASE, BOARD)
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
    ask = _ask(databases, path)
    copy = backup.copy_of(entry)
    addable = others = 0
    if entry.path.rpartition("/")[2] == BOARD:
        others = saved_rows.count_missing_tasks(copy, ask)
    else:
        since = partial(expired_before, databases.home)
        missing = saved_rows.find_missing_messages(saved_rows.read_messages(copy), ask, since)
        new = [(entry.path, message) for message in (*missing.own, *missing.renumbered)]
        rest = [(entry.path, message) for message in missing.left]
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


def _ask(databases: DatabasesView, path: Path) -> saved_rows.Ask:
    """Return a function that queries the live database."""
    try:
        condition = databases.condition(path)
    except FileNotFoundError:
        raise CouldNotLook("{path} is missing", path=path.name) from None
    if condition.reader is None or not condition.readable:
        raise CouldNotLook("{path} cannot be read", path=path.name)
    return saved_rows.query_function(condition.reader)
