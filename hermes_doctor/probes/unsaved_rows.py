"""Compare the messages that Hermes kept in files with the message history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.backup.unique_rows import expired_before
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes.unsaved_turns import HISTORY, KeptFile
from hermes_doctor.sqlite import retired_log, saved_rows
from hermes_doctor.sqlite.unsaved_messages import (
    ROLES,
    Transcript,
    UnsavedMessages,
    find_unsaved,
)
from hermes_doctor.system.files import MEGABYTE, read

if TYPE_CHECKING:
    from hermes_doctor.probes.database_files import DatabaseProbes
    from hermes_doctor.sqlite.retired_log import RetiredRows

DATABASE = "state.db"
FILE, ALL = 8 * MEGABYTE, 64 * MEGABYTE
"""The largest transcript that is read, and the most of all together."""


class KeptTranscripts(NamedTuple):
    """What the files contain, before it is compared."""

    files: tuple[Transcript, ...]
    pending: frozenset[str]
    """Sessions to which Hermes adds messages at its next start."""


def retired(probes: DatabaseProbes, folder: Path) -> RetiredRows:
    """Compare a log that was set aside; raise CouldNotLook if that is impossible."""
    _refuse_deleted(probes)
    return retired_log.compare(folder, _ask(probes), partial(expired_before, probes.home))


def unsaved(probes: DatabaseProbes) -> UnsavedMessages:
    """Compare all transcripts of messages that were not saved."""
    kept = transcripts(probes)
    return find_unsaved(kept.files, kept.pending, _ask(probes))


def transcripts(probes: DatabaseProbes) -> KeptTranscripts:
    """Read all transcripts; raise CouldNotLook if one is too large or damaged."""
    found = probes.unsaved()
    left = ALL
    files: list[Transcript] = []
    waiting: set[str] = set()
    for one in (*found.diverted, *found.pending):
        data = _read(one.path, min(FILE, left))
        left -= len(data)
        if one.path.suffix == ".jsonl":
            files.append(_lines(one, data))
            continue
        said = _document(one.path, data)
        if said.get("reason") == HISTORY:
            files.append(_history(one, said))
        else:
            waiting.update(_sessions(said))
    return KeptTranscripts(tuple(files), frozenset(waiting))


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


def _read(path: Path, limit: int) -> bytes:
    try:
        return read(path, limit)[0]
    except FileNotFoundError:
        raise CouldNotLook(text("{file} has just been removed", file=path.name)) from None


def _lines(one: KeptFile, data: bytes) -> Transcript:
    """A transcript with one message per line."""
    lines = [line for line in data.splitlines() if line.strip()]
    messages = [_message(one.path, _parsed(one.path, line)) for line in lines]
    return Transcript(one.path.stem, messages, one.at.timestamp())


def _history(one: KeptFile, said: Mapping[str, Any]) -> Transcript:
    """The whole history of an agent that Hermes could not save when it stopped."""
    session, messages = said.get("session_id"), said.get("messages")
    if not isinstance(session, str) or not isinstance(messages, list):
        raise CouldNotLook(text("{file} does not name its session", file=one.path.name))
    spoken = [
        _message(one.path, message)
        for message in messages
        if not (isinstance(message, dict) and message.get("role") == "system")
    ]
    return Transcript(session, spoken, one.at.timestamp(), complete=True)


def _message(path: Path, said: object) -> Mapping[str, Any]:
    if not isinstance(said, dict) or said.get("role") not in ROLES:
        raise CouldNotLook(text("{file} has an entry that is not a message", file=path.name))
    return said


def _document(path: Path, data: bytes) -> Mapping[str, Any]:
    said = _parsed(path, data)
    return said if isinstance(said, dict) else {}


def _parsed(path: Path, data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise CouldNotLook(text("{file} is damaged", file=path.name)) from None


def _sessions(said: Mapping[str, Any]) -> Iterator[str]:
    """The sessions that a pending file may name."""
    data = said.get("data")
    inner = data.get("session_id") if isinstance(data, dict) else None
    for name in (inner, said.get("session_id"), said.get("session_key")):
        if isinstance(name, str) and name:
            yield name
