"""Add messages saved from a deleted write-ahead log to the message history that lacks them."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.lazy import pattern
from hermes_doctor.message import count, text
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite import inspector
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.column_rules import quote_name
from hermes_doctor.sqlite.errors import name_of
from hermes_doctor.sqlite.reader import OnConnection
from hermes_doctor.sqlite.repairs import fulltext
from hermes_doctor.sqlite.repairs.work import open_copy, transaction
from hermes_doctor.sqlite.salvage.log_rows import MESSAGES, SESSIONS
from hermes_doctor.sqlite.saved_rows import (
    MissingMessages,
    SavedMessages,
    find_missing_messages,
    query_function,
)
from hermes_doctor.sqlite.soundness import address
from hermes_doctor.system import progress

_VIRTUAL = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND rootpage = 0"
_INDEX = pattern(r"(?i)CREATE VIRTUAL TABLE\s+(IF NOT EXISTS\s+)?[\w\"'`\[\]]+\s+USING\s+fts5\b")
_VIEWS = "SELECT name FROM sqlite_master WHERE type = 'view'"
_SHADOWS = ("data", "idx", "content", "docsize", "config")
_TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN (?, ?)"
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
            found = find_missing_messages(
                saved, query_function(OnConnection(database)), lambda: wanted_since
            )
        except CouldNotLook as why:
            raise CannotFix(str(why)) from why
        if not found.addable:
            raise CannotFix(text("{copy} lacks no message that can be added", copy=copy.name))
        guarded = triggers_limited if plan is None else triggers_removed
        with _attached(database, source), transaction(database), guarded(database):
            said = _added(database, found, origin)
    if plan is not None and plan.virtual:
        fulltext.rebuild(copy, plan)
    return said


@contextmanager
def _attached(database: sqlite3.Connection, source: Path) -> Iterator[None]:
    try:
        database.execute("ATTACH ? AS saved", (address(source, "&immutable=1"),))
    except sqlite3.Error as error:
        raise CannotFix(
            text("SQLite cannot read the backup ({error})", error=name_of(error))
        ) from error
    try:
        yield
    finally:
        database.execute("DETACH saved")


@contextmanager
def triggers_removed(database: sqlite3.Connection) -> Iterator[None]:
    """Remove the triggers of messages and sessions; create them again at the end."""
    triggers = database.execute(_TRIGGERS, (SESSIONS, MESSAGES)).fetchall()
    for name, _ in triggers:
        database.execute(f"DROP TRIGGER {quote_name(name)}")
    yield
    for _, sql in triggers:
        database.execute(sql)


@contextmanager
def triggers_limited(database: sqlite3.Connection) -> Iterator[None]:
    """Let the triggers of the file fill its search index, and do nothing else.

    SQLite lets no trigger write to a full-text table unless it trusts the whole schema. That is
    from the file, so what triggers and views may touch is limited here.
    """
    own = {MESSAGES, SESSIONS}
    names = [name for name, sql in database.execute(_VIRTUAL) if _INDEX.match(sql or "")]
    shadows = {f"{name}_{kind}" for name in names for kind in _SHADOWS}
    views = {name for (name,) in database.execute(_VIEWS)}
    judge = inspector.reads_only(own | views, {*names, *shadows})

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


def _added(database: sqlite3.Connection, found: MissingMessages, origin: str) -> list[str]:
    columns = _columns(database, SESSIONS)
    untitled = 0
    for name in found.sessions:
        plain = ["NULL" if one == "title" else quote_name(one) for one in columns]
        used = "title" in columns and database.execute(_TAKEN, (name,)).fetchone()
        untitled += bool(used)
        values = plain if used else [quote_name(one) for one in columns]
        _insert(database, SESSIONS, columns, values, name)
    marks = ", ".join("?" * len(found.sessions))
    if "parent_session_id" in columns:  # as Hermes does when it deletes a parent
        database.execute(
            f"UPDATE main.sessions SET parent_session_id = NULL WHERE id IN ({marks}) "
            "AND parent_session_id NOT IN (SELECT id FROM main.sessions)",
            found.sessions,
        )
    grown = _add_messages(database, found)
    if "message_count" in columns:
        database.executemany(
            "UPDATE main.sessions SET message_count = message_count + ? WHERE id = ?",
            [(count, name) for name, count in grown.items() if name not in found.sessions],
        )
    what = f"{count(found.addable, 'message')} and {count(len(found.sessions), 'session')}"
    said = [f"{what} of {origin} were added. No message of the database was changed."]
    if found.renumbered:
        those = count(len(found.renumbered), "message")
        said.append(f"{those} got new numbers, because the database uses theirs.")
    if untitled:
        those = count(untitled, "session")
        said.append(f"{those} got no title, because the database uses it.")
    if found.left:
        those = count(len(found.left), "message")
        said.append(f"{those} cannot be added: the conversation continued without them.")
    return said


def _add_messages(database: sqlite3.Connection, found: MissingMessages) -> Counter[str]:
    """Add the messages; return how many each session got."""
    columns = [one for one in _columns(database, MESSAGES) if one != "id"]
    [(last,)] = database.execute("SELECT coalesce(max(id), 0) FROM main.messages").fetchall()
    used = database.execute("SELECT seq FROM main.sqlite_sequence WHERE name = 'messages'")
    highest = [last, *(row[0] for row in used), *(one.id for one in found.own)]
    free = 1 + max(one for one in highest if isinstance(one, int))
    values = [quote_name(one) for one in columns]
    for one in found.own:
        _insert(database, MESSAGES, ["id", *columns], [str(one.id), *values], one.id)
    for new, one in enumerate(sorted(found.renumbered), free):
        _insert(database, MESSAGES, ["id", *columns], [str(new), *values], one.id)
    return Counter(one.session for one in (*found.own, *found.renumbered))


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    """The columns of the saved table; raise if the database lacks one, which would lose values."""
    saved, there = (
        [str(row[1]) for row in database.execute(f"PRAGMA {schema}.table_info({table})")]
        for schema in ("saved", "main")
    )
    if unknown := [one for one in saved if one not in there]:
        raise CannotFix(
            text(
                "{table} of the backup has an unknown column: {unknown}",
                table=table,
                unknown=unknown[0],
            )
        )
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
        raise CannotFix(text("a row of {table} is no longer in the backup", table=table))
