"""Compare the messages that Hermes kept in files with the message history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import read
from hermes_doctor.core.system.open_files import open_owned
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
from hermes_doctor.sqlite.unsaved_messages import (
    ANY_SESSION,
    Transcript,
    UnsavedMessages,
    find_unsaved,
)

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.probes.databases_view import DatabasesView
    from hermes_doctor.diagnosis.probes.unsaved_turns import UnsavedTurns
    from hermes_doctor.sqlite.saved_rows import RetiredRows

DATABASE = "state.db"


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
    from hermes_doctor.backup.vault.backup_rows import expired_before

    _refuse_deleted(databases)
    return saved_rows.compare_retired_log(
        folder,
        _ask(databases),
        partial(expired_before, databases.home),
        None if patient else saved_rows.SECONDS,
    )


def unsaved(databases: DatabasesView, turns: UnsavedTurns) -> UnsavedMessages:
    """Compare all transcripts of messages that were not saved."""
    kept = transcripts(turns)
    unsaved_messages = find_unsaved(kept.files, kept.pending, _ask(databases))
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
                files.append(_lines(file, data))
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


def _refuse_deleted(databases: DatabasesView) -> None:
    if any(lost.database.name == DATABASE for lost in databases.lost_files()):
        raise CouldNotLook("a process still writes to a deleted log of state.db")


def _ask(databases: DatabasesView) -> saved_rows.Ask:
    try:
        condition = databases.condition(databases.home / DATABASE)
    except FileNotFoundError:
        raise CouldNotLook("state.db is missing") from None
    if condition.reader is None or not condition.readable:
        raise CouldNotLook("state.db cannot be read")
    return saved_rows.query_function(condition.reader)


def _lines(file: KeptFile, data: bytes) -> Transcript:
    """A transcript with one message per line."""
    lines = [line for line in data.splitlines() if line.strip()]
    messages = [_message(file.path, parse(file.path, line)) for line in lines]
    return Transcript(file.path, file.path.stem, messages, file.at.timestamp())


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
