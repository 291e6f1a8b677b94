"""Add messages of transcripts to the end of their sessions in the message history."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_doctor.message import count
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.column_rules import quote_name
from hermes_doctor.sqlite.reader import OnConnection
from hermes_doctor.sqlite.repairs import fulltext
from hermes_doctor.sqlite.repairs.saved_rows import triggers_limited, triggers_removed
from hermes_doctor.sqlite.repairs.work import open_copy, transaction
from hermes_doctor.sqlite.salvage.log_rows import MESSAGES, SESSIONS
from hermes_doctor.sqlite.saved_rows import query_function
from hermes_doctor.sqlite.table_rows import Value
from hermes_doctor.sqlite.unsaved_messages import Transcript, UnsavedMessages, find_unsaved
from hermes_doctor.system import progress


def add_unsaved_messages(
    copy: Path, files: Sequence[Transcript], pending: frozenset[str], plan: Blueprint | None
) -> list[str]:
    """Add the messages that `copy` lacks; no existing message is changed.

    With `plan` the search index is rebuilt afterwards. Without it, the schema is of an unknown
    release, so the triggers of the database itself fill its search index.
    """
    progress.report("adding the unsaved messages")
    with open_copy(copy) as database:
        try:
            found = find_unsaved(files, pending, query_function(OnConnection(database), None))
        except CouldNotLook as why:
            raise CannotFix(str(why)) from why
        if not found.addable:
            raise CannotFix("the database lacks no message that can be added")
        guarded = triggers_limited if plan is None else triggers_removed
        with transaction(database), guarded(database):
            for session, messages in found.addable.items():
                _append(database, session, messages)
    if plan is not None and plan.virtual:
        fulltext.rebuild(copy, plan)
    return _sentences(found)


def _append(
    database: sqlite3.Connection, session: str, messages: Sequence[Mapping[str, Value]]
) -> None:
    columns = {row[1] for row in database.execute(f"PRAGMA table_info({MESSAGES})")}
    calls = 0
    for message in messages:
        row = {name: value for name, value in message.items() if name in columns}
        row["session_id"] = session
        names = ", ".join(map(quote_name, row))
        marks = ", ".join("?" * len(row))
        database.execute(f"INSERT INTO {MESSAGES} ({names}) VALUES ({marks})", list(row.values()))
        calls += _calls(message.get("tool_calls"))
    there = {row[1] for row in database.execute(f"PRAGMA table_info({SESSIONS})")}
    for name, more in (("message_count", len(messages)), ("tool_call_count", calls)):
        if name in there and more:
            database.execute(
                f"UPDATE {SESSIONS} SET {name} = coalesce({name}, 0) + ? WHERE id = ?",
                (more, session),
            )


def _calls(text: Value) -> int:
    try:
        said = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return 0
    return len(said) if isinstance(said, list) else 0


def _sentences(found: UnsavedMessages) -> list[str]:
    added = count(found.count, "message")
    sessions = count(len(found.addable), "session")
    verb = "was" if found.count == 1 else "were"
    said = [f"{added} of {sessions} {verb} added. No message of the database was changed."]
    for why, number in found.left.items():
        said.append(f"{count(number, 'message')} cannot be added: {why}.")
    return said
