"""Add rows of another file to the message history that lacks them; no existing row is replaced."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.message import count
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import progress
from hermes_doctor.sqlite import query_process
from hermes_doctor.sqlite.blueprint import Blueprint, quote_name
from hermes_doctor.sqlite.examine.soundness import address, name_of
from hermes_doctor.sqlite.pages import Value
from hermes_doctor.sqlite.reader import OnConnection
from hermes_doctor.sqlite.repairs import rebuild_search
from hermes_doctor.sqlite.repairs.work import columns_of, open_copy, transaction, without_triggers
from hermes_doctor.sqlite.salvage import log_rows
from hermes_doctor.sqlite.salvage.log_rows import MESSAGES, SESSIONS, OnlyInLog
from hermes_doctor.sqlite.saved_rows import (
    MissingMessages,
    SavedMessages,
    find_missing_messages,
    query_function,
)
from hermes_doctor.sqlite.schema import SHADOWS
from hermes_doctor.sqlite.unsaved_messages import Transcript, find_unsaved

_VIRTUAL = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND rootpage = 0"
_INDEX = pattern(r"(?i)CREATE VIRTUAL TABLE\s+(IF NOT EXISTS\s+)?[\w\"'`\[\]]+\s+USING\s+fts5\b")
_VIEWS = "SELECT name FROM sqlite_master WHERE type = 'view'"
_TAKEN = "SELECT 1 FROM main.sessions a, saved.sessions b WHERE b.id = ? AND a.title = b.title"


def add_saved_messages(
    copy: Path,
    source: Path,
    saved: SavedMessages,
    wanted_since: float,
    plan: Blueprint | None,
    origin: str = "the backup",
) -> list[str]:
    """Add the saved messages that `copy` lacks, and their sessions; no existing row is replaced.

    `source` is the saved database joined with its log. The triggers that fill the search index are
    removed while rows are added and created again; then the search index is rebuilt. Without `plan`
    the release is unknown, so its own triggers stay and fill the search index.
    """
    progress.report("adding the saved messages")
    with open_copy(copy) as database:
        try:
            missing = find_missing_messages(
                saved, query_function(OnConnection(database)), lambda: wanted_since
            )
        except CouldNotLook as why:
            raise CannotFix(str(why)) from why
        if not missing.addable:
            raise CannotFix("{copy} lacks no message that can be added", copy=copy.name)
        with _attached(database, source), _changing_messages(database, plan):
            sentences = _added(database, missing, origin)
    if plan is not None and plan.virtual:
        rebuild_search.rebuild_tables(copy, plan)
    return sentences


@contextmanager
def _attached(database: sqlite3.Connection, source: Path) -> Iterator[None]:
    try:
        database.execute("ATTACH ? AS saved", (address(source, "&immutable=1"),))
    except sqlite3.Error as error:
        raise CannotFix("SQLite cannot read the backup ({error})", error=name_of(error)) from error
    try:
        yield
    finally:
        database.execute("DETACH saved")


@contextmanager
def _changing_messages(database: sqlite3.Connection, plan: Blueprint | None) -> Iterator[None]:
    """A transaction in which the triggers of the file do nothing, or no harm without a plan."""
    tables = (SESSIONS, MESSAGES)
    guarded = _triggers_limited(database) if plan is None else without_triggers(database, tables)
    with transaction(database), guarded:
        yield


@contextmanager
def _triggers_limited(database: sqlite3.Connection) -> Iterator[None]:
    """Let the triggers of the file fill its search index, and do nothing else.

    SQLite lets no trigger write to a full-text table unless it trusts the whole schema. That is
    from the file, so what triggers and views may touch is limited here.
    """
    own = {MESSAGES, SESSIONS}
    names = [name for name, sql in database.execute(_VIRTUAL) if _INDEX.match(sql or "")]
    shadows = {f"{name}_{kind}" for name in names for kind in SHADOWS}
    views = {name for (name,) in database.execute(_VIEWS)}
    judge = query_process.reads_only(own | views, {*names, *shadows})

    def permit(
        action: int, one: str | None, two: str | None, _: str | None, inside: str | None
    ) -> int:
        return judge(action, one, two) if inside else sqlite3.SQLITE_OK

    database.execute("PRAGMA trusted_schema=ON")
    database.set_authorizer(permit)
    try:
        yield
    finally:
        database.set_authorizer(None)
        database.execute("PRAGMA trusted_schema=OFF")


def _added(database: sqlite3.Connection, missing: MissingMessages, origin: str) -> list[str]:
    columns = _columns(database, SESSIONS)
    untitled = 0
    for name in missing.sessions:
        plain = ["NULL" if column == "title" else quote_name(column) for column in columns]
        used = "title" in columns and database.execute(_TAKEN, (name,)).fetchone()
        untitled += bool(used)
        values = plain if used else [quote_name(column) for column in columns]
        _insert(database, SESSIONS, columns, values, name)
    marks = ", ".join("?" * len(missing.sessions))
    if "parent_session_id" in columns:  # as Hermes does when it deletes a parent
        database.execute(
            f"UPDATE main.sessions SET parent_session_id = NULL WHERE id IN ({marks}) "
            "AND parent_session_id NOT IN (SELECT id FROM main.sessions)",
            missing.sessions,
        )
    grown = _add_messages(database, missing)
    for name in missing.sessions:
        del grown[name]  # the backup has their count
    _add_message_counts(database, grown)
    what = f"{count(missing.addable, 'message')} and {count(len(missing.sessions), 'session')}"
    sentences = [f"{what} of {origin} were added. No message of the database was changed."]
    if missing.renumbered:
        those = count(len(missing.renumbered), "message")
        sentences.append(f"{those} got new numbers, because the database uses theirs.")
    if untitled:
        those = count(untitled, "session")
        sentences.append(f"{those} got no title, because the database uses it.")
    if missing.left:
        those = count(len(missing.left), "message")
        sentences.append(f"{those} cannot be added: the conversation continued without them.")
    return sentences


def _add_messages(database: sqlite3.Connection, missing: MissingMessages) -> Counter[str]:
    """Add the messages; return how many each session got."""
    columns = [column for column in _columns(database, MESSAGES) if column != "id"]
    [(last,)] = database.execute("SELECT coalesce(max(id), 0) FROM main.messages").fetchall()
    used = database.execute("SELECT seq FROM main.sqlite_sequence WHERE name = 'messages'")
    highest = [last, *(row[0] for row in used), *(message.id for message in missing.own)]
    free = 1 + max(message for message in highest if isinstance(message, int))
    values = [quote_name(column) for column in columns]
    for message in missing.own:
        _insert(database, MESSAGES, ["id", *columns], [str(message.id), *values], message.id)
    for new, message in enumerate(sorted(missing.renumbered), free):
        _insert(database, MESSAGES, ["id", *columns], [str(new), *values], message.id)
    return Counter(message.session for message in (*missing.own, *missing.renumbered))


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    """The columns of the saved table; raise if the database lacks one, which would lose values."""
    saved, there = (columns_of(database, table, schema) for schema in ("saved", "main"))
    if unknown := [column for column in saved if column not in there]:
        what = "{table} of the backup has an unknown column: {unknown}"
        raise CannotFix(what, table=table, unknown=unknown[0])
    return saved


def _insert(
    database: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    values: Sequence[str],
    key: int | str,
) -> None:
    """Copy one row by its key."""
    done = database.execute(
        f"INSERT INTO main.{table} ({', '.join(map(quote_name, columns))}) "
        f"SELECT {', '.join(values)} FROM saved.{table} WHERE id = ?",
        (key,),
    )
    if done.rowcount != 1:
        raise CannotFix("a row of {table} is no longer in the backup", table=table)


def add_log_rows(copy: Path, log: Path, plan: Blueprint) -> list[str]:
    """Add the sessions and messages whose keys are free; no other row of the database changes.

    Only the message count of their sessions is increased. The triggers that fill the search index
    are removed while rows are added and created again; then the search index is rebuilt.
    """
    progress.report("reading the rows of the log")
    try:
        rows = log_rows.read(log, plan)
    except (CouldNotLook, FileNotFoundError) as why:
        raise CannotFix(str(why)) from why
    with open_copy(copy) as database:
        only = log_rows.find_only_in_log(rows, lambda sql: database.execute(sql).fetchall())
        if not only.any:
            raise CannotFix("the database lacks no row that can be added from the log")
        with _changing_messages(database, plan):
            sentences = _add_rows_of_log(database, only)
    if plan.virtual:
        rebuild_search.rebuild_tables(copy, plan)
    return sentences


def _add_rows_of_log(database: sqlite3.Connection, only: OnlyInLog) -> list[str]:
    sessions = {
        key for key, record in only.sessions.items() if _can_insert(database, SESSIONS, record)
    }
    refused = len(only.sessions) - len(sessions)
    grown: Counter[Value] = Counter()
    messages = 0
    for record in only.messages.values():
        home = record["session_id"]
        if home in only.sessions and home not in sessions:
            refused += 1
        elif _can_insert(database, MESSAGES, record):
            messages += 1
            grown[home] += home not in sessions
        else:
            refused += 1
    _add_message_counts(database, grown)
    what = f"{count(messages, 'message')} and {count(len(sessions), 'session')}"
    sentences = [f"{what} of the log were added. No other row was changed."]
    if refused:
        sentences.append(
            f"{count(refused, 'row')} of the log cannot be added: "
            "a value that must be unique is in use."
        )
    return sentences + only.left_out()


def _can_insert(database: sqlite3.Connection, table: str, record: log_rows.Record) -> bool:
    """Add one row; False if one of its unique values is in use."""
    try:
        _insert_record(database, table, record)
    except sqlite3.IntegrityError:
        return False
    return True


def _insert_record(database: sqlite3.Connection, table: str, record: log_rows.Record) -> None:
    """Add one row, without values of columns that the table does not have."""
    there = columns_of(database, table)
    row = {name: value for name, value in record.items() if name in there}
    names, marks = ", ".join(map(quote_name, row)), ", ".join("?" * len(row))
    database.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))


def _add_message_counts(database: sqlite3.Connection, added: Mapping[Any, int]) -> None:
    """Increase the message counts of sessions."""
    if "message_count" in columns_of(database, SESSIONS):
        database.executemany(
            "UPDATE main.sessions SET message_count = message_count + ? WHERE id = ?",
            [(count, session) for session, count in added.items() if count],
        )


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
            unsaved = find_unsaved(files, pending, query_function(OnConnection(database), None))
        except CouldNotLook as why:
            raise CannotFix(str(why)) from why
        if not unsaved.addable:
            raise CannotFix("the database lacks no message that can be added")
        with _changing_messages(database, plan):
            for session, messages in unsaved.addable.items():
                _append_messages(database, session, messages)
    if plan is not None and plan.virtual:
        rebuild_search.rebuild_tables(copy, plan)
    added = count(unsaved.count, "message")
    sessions = count(len(unsaved.addable), "session")
    verb = "was" if unsaved.count == 1 else "were"
    sentences = [f"{added} of {sessions} {verb} added. No message of the database was changed."]
    for reason, number in unsaved.left.items():
        sentences.append(f"{count(number, 'message')} cannot be added: {reason}.")
    return sentences


def _append_messages(
    database: sqlite3.Connection, session: str, messages: Sequence[Mapping[str, Value]]
) -> None:
    calls = 0
    for message in messages:
        _insert_record(database, MESSAGES, {**message, "session_id": session})
        calls += _calls(message.get("tool_calls"))
    there = columns_of(database, SESSIONS)
    for name, more in (("message_count", len(messages)), ("tool_call_count", calls)):
        if name in there and more:
            database.execute(
                f"UPDATE {SESSIONS} SET {name} = coalesce({name}, 0) + ? WHERE id = ?",
                (more, session),
            )


def _calls(text: Value) -> int:
    try:
        calls = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return 0
    return len(calls) if isinstance(calls, list) else 0
