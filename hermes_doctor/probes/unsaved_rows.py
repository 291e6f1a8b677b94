"""Compare the messages that Hermes kept in files with the message history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes.unsaved_turns import ALL, FILE, HISTORY, ROLES, Damaged, KeptFile, parse
from hermes_doctor.sqlite import retired_log, saved_rows
from hermes_doctor.sqlite.unsaved_messages import (
    ANY_SESSION,
    Transcript,
    UnsavedMessages,
    find_unsaved,
)
from hermes_doctor.system.files import read
from hermes_doctor.system.open_files import open_owned

if TYPE_CHECKING:
    from hermes_doctor.probes.database_files import DatabaseProbes
    from hermes_doctor.sqlite.retired_log import RetiredRows

DATABASE = "state.db"


class KeptTranscripts(NamedTuple):
    """What the files contain, before it is compared."""

    files: tuple[Transcript, ...]
    pending: frozenset[str]
    """Sessions to which Hermes adds messages at its next start."""
    unread: tuple[tuple[Path, str], ...]
    """The files that cannot be compared, each with the reason."""


def retired(probes: DatabaseProbes, folder: Path, *, patient: bool) -> RetiredRows:
    """Compare a log that was set aside; raise CouldNotLook if that is impossible.

    `patient` lets SQLite check the whole copy, however large it is.
    """
    from hermes_doctor.backup.unique_rows import expired_before

    _refuse_deleted(probes)
    return retired_log.compare(
        folder,
        _ask(probes),
        partial(expired_before, probes.home),
        None if patient else saved_rows.SECONDS,
    )


def unsaved(probes: DatabaseProbes) -> UnsavedMessages:
    """Compare all transcripts of messages that were not saved."""
    kept = transcripts(probes)
    found = find_unsaved(kept.files, kept.pending, _ask(probes))
    found.unread.extend(kept.unread)
    return found


def transcripts(probes: DatabaseProbes) -> KeptTranscripts:
    """Read all transcripts; one that is too large or damaged does not hide the others."""
    found = probes.unsaved()
    left = ALL
    files: list[Transcript] = []
    waiting: set[str] = set()
    unread: list[tuple[Path, str]] = []
    for one in (*found.diverted, *found.pending):
        try:
            data = read(one.path, min(FILE, left), open_owned)[0]
            left -= len(data)
            if one.path.suffix == ".jsonl":
                files.append(_lines(one, data))
                continue
            said = parse(one.path, data)
            if not isinstance(said, dict):
                raise Damaged(text("{file}: does not contain messages", file=one.path.name))
            if said.get("reason") == HISTORY:
                files.append(_history(one, said))
            else:
                waiting.update(_sessions(said))
        except FileNotFoundError:
            continue
        except CouldNotLook as why:
            unread.append((one.path, str(why)))
            if not one.by_hand and not isinstance(why, Damaged):
                waiting.add(ANY_SESSION)  # Hermes may be able to read it
    return KeptTranscripts(tuple(files), frozenset(waiting), tuple(unread))


def _refuse_deleted(probes: DatabaseProbes) -> None:
    if any(lost.database.name == DATABASE for lost in probes.lost_files()):
        raise CouldNotLook("a process still writes to a deleted log of state.db")


def _ask(probes: DatabaseProbes) -> saved_rows.Ask:
    try:
        found = probes.condition(probes.home / DATABASE)
    except FileNotFoundError:
        raise CouldNotLook("state.db is missing") from None
    if found.reader is None or not found.readable:
        raise CouldNotLook("state.db cannot be read")
    return saved_rows.query_function(found.reader)


def _lines(one: KeptFile, data: bytes) -> Transcript:
    """A transcript with one message per line."""
    lines = [line for line in data.splitlines() if line.strip()]
    messages = [_message(one.path, parse(one.path, line)) for line in lines]
    return Transcript(one.path, one.path.stem, messages, one.at.timestamp())


def _history(one: KeptFile, said: Mapping[str, Any]) -> Transcript:
    """The whole history of an agent that Hermes could not save when it stopped."""
    session, messages = said.get("session_id"), said.get("messages")
    if not isinstance(session, str) or not isinstance(messages, list):
        raise Damaged(text("{file}: does not name its session", file=one.path.name))
    spoken = [
        _message(one.path, message)
        for message in messages
        if not (isinstance(message, dict) and message.get("role") == "system")
    ]
    return Transcript(one.path, session, spoken, one.at.timestamp(), complete=True)


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
