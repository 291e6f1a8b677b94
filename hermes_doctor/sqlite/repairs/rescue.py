"""The last repair methods: salvage rows, restore an older copy, or create an empty database."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.core.file_copies import DatabaseCopy
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import disk, progress
from hermes_doctor.core.system.files import list_folder, open_regular, snapshot
from hermes_doctor.sqlite import wal
from hermes_doctor.sqlite.blueprint import Blueprint, quote_name
from hermes_doctor.sqlite.completion import create
from hermes_doctor.sqlite.examine.first_page import has_rows
from hermes_doctor.sqlite.examine.soundness import name_of, require_sound
from hermes_doctor.sqlite.repairs import rebuild_search
from hermes_doctor.sqlite.repairs.work import (
    columns_of,
    open_copy,
    put_in_place,
    remove_database,
    transaction,
    without_triggers,
)
from hermes_doctor.sqlite.salvage.account import SalvageResult
from hermes_doctor.sqlite.salvage.older_copies import OlderFile
from hermes_doctor.sqlite.salvage.run import salvage


def restore_from_copy(copy: Path, candidates: Sequence[DatabaseCopy]) -> list[str]:
    """Replace `copy` by the sound candidate with the newest content.

    A candidate that may be of another home is used only if there is no other candidate.
    """
    if not candidates:
        raise CannotFix("no older copy was found")
    own = [candidate for candidate in candidates if not candidate.doubtful]
    for candidate_copy in sorted(own or candidates, key=lambda candidate: candidate.rank):
        remove_database(copy)
        try:
            copy_candidate(candidate_copy, copy)
            require_sound(copy)
        except CannotFix:
            continue
        when = candidate_copy.written_at
        where = f"{candidate_copy.path.parent.name}/{candidate_copy.path.name}" + (
            candidate_copy.member and f":{candidate_copy.member}"
        )
        sentences = [f"It is {where} of {when:%Y-%m-%d %H:%M} UTC; what came later is not in it."]
        return [*sentences, "It may be of another home."] if candidate_copy.doubtful else sentences
    if own and len(own) < len(candidates):
        what = "every older copy is damaged, too, except copies that may be of another home"
        raise CannotFix(what)
    raise CannotFix("every older copy is damaged, too")


def copy_candidate(candidate: DatabaseCopy, copy: Path) -> None:
    """Copy a candidate with its log, or extract it from its zip."""
    if candidate.member:
        with disk.new_file(copy) as fd:
            for chunk in _chunks(candidate):
                disk.write(fd, chunk)
        return
    if snapshot(candidate.path).kind != "file":
        raise CannotFix("the copy was removed")
    for suffix in ("", "-wal"):
        source = candidate.path.with_name(candidate.path.name + suffix)
        if snapshot(source).kind == "file":
            with disk.new_file(copy.with_name(copy.name + suffix)) as fd:
                try:
                    disk.copy(source, fd)
                except (FileNotFoundError, CouldNotLook) as error:
                    raise CannotFix("the copy cannot be read") from error


def _chunks(candidate: DatabaseCopy) -> Iterator[bytes]:
    """Read a database in a zip, at most as many bytes as its table of contents says."""
    import zipfile

    left = candidate.size
    try:
        with (
            os.fdopen(open_regular(candidate.path), "rb") as file,
            zipfile.ZipFile(file) as archive,
            archive.open(candidate.member) as member,
        ):
            while left and (chunk := member.read(min(left, disk.CHUNK))):
                left -= len(chunk)
                yield chunk
            if left or member.read(1):
                raise CannotFix("the zip is damaged")
    except Exception as error:
        # zlib.error, LZMAError, BadZipFile, CouldNotLook, FileNotFoundError, …
        raise CannotFix("the zip is damaged") from error


@contextmanager
def _salvaged_path(copy: Path) -> Iterator[Path]:
    """A path for the salvaged database next to `copy`; what is there at the end is removed."""
    path = copy.with_name(copy.name + ".rescued")
    try:
        yield path
    finally:
        remove_database(path)


def save_rows(copy: Path, plan: Blueprint, home: Home, copies: Sequence[DatabaseCopy]) -> list[str]:
    """Replace the damaged copy by a new database with every row that can be saved."""
    with _salvaged_path(copy) as rescued:
        try:
            account = salvage(
                copy,
                rescued,
                plan,
                older_copies=sources(plan, home, copies),
                progress=lambda done, total: progress.report("saving its rows", done / total),
            )
        except CouldNotLook as why:
            raise CannotFix(str(why)) from why
        if not account.has_rows:
            raise CannotFix("no row can be read")
        put_in_place(rescued, copy)
    return list(account.sentences)


def sources(plan: Blueprint, home: Home, copies: Sequence[DatabaseCopy]) -> list[OlderFile]:
    """Other files with the same rows: older copies, and for state.db the session transcripts."""
    older = [OlderFile(copy.path, home.name_of(copy.path), copy.mtime_ns / 1e9) for copy in copies]
    folder = home / "sessions"
    names = list_folder(folder) if plan.database == "state.db" else []
    for name in names:
        state = snapshot(folder / name)
        if name.endswith((".json", ".jsonl")) and state.kind == "file":
            older.append(OlderFile(folder / name, f"sessions/{name}", state.mtime_ns / 1e9))
    return older


def save_rows_of_copy(copy: Path, plan: Blueprint, candidates: Sequence[DatabaseCopy]) -> list[str]:
    """Replace `copy` by a new database with the readable rows of the newest copy that has any."""
    with _salvaged_path(copy) as rescued:
        for candidate in candidates:
            remove_database(copy)
            remove_database(rescued)
            try:
                copy_candidate(candidate, copy)
                account = salvage(copy, rescued, plan)
            except (CannotFix, CouldNotLook):
                continue
            if account.has_rows:
                put_in_place(rescued, copy)
                where = f"{candidate.path.parent.name}/{candidate.path.name}"
                origin = text("The rows are from the damaged copy {copy}.", copy=where)
                return [origin, *account.sentences]
    raise CannotFix("no row of a copy can be read")


def restore_and_merge_log(
    copy: Path, plan: Blueprint, candidates: Sequence[DatabaseCopy]
) -> list[str]:
    """Restore the newest sound copy, and add every row that the lost database's log has."""
    if not candidates:
        raise CannotFix("no older copy was found")
    with _salvaged_path(copy) as rescued:
        try:
            account = salvage(copy, rescued, plan)
        except CouldNotLook as why:
            raise CannotFix(str(why)) from why
        restored = restore_from_copy(copy, candidates)
        messages = [sentence.partition(";")[0] + "." for sentence in restored]
        messages += _merged(copy, rescued, account)
        return [*messages, *rebuild_search.rebuild_tables(copy, plan)] if plan.virtual else messages


def _merged(copy: Path, rescued: Path, account: SalvageResult) -> list[str]:
    """Copy the rows without triggers; the caller rebuilds the full-text tables afterwards."""
    sentences = []
    with open_copy(copy) as database:
        database.execute("ATTACH ? AS rescued", (str(rescued),))
        names = [table.name for table in account.tables]
        with transaction(database), without_triggers(database, names):
            for table in account.tables:
                if table.kept and table.name != "schema_version":
                    # If the log has only part of some rows, the rows of the copy are better.
                    count, clashing = _rows(database, table.name, newer=not table.partial)
                    if count:
                        sentences.append(f"{table.name}: {count:,} newer rows from the log.")
                    if clashing:
                        sentences.append(
                            f"{table.name}: {clashing:,} rows of the log were left out: the copy "
                            f"has others of the same key."
                        )
        database.execute("DETACH rescued")
    if not sentences:
        raise CannotFix("its write-ahead log has no row that the copy lacks")
    return sentences


def _rows(database: sqlite3.Connection, table: str, *, newer: bool) -> tuple[int, int]:
    """Copy the rows of one table; return how many were copied, and how many could not be."""
    mine, theirs = (set(columns_of(database, table, schema)) for schema in ("main", "rescued"))
    columns = ", ".join(map(quote_name, sorted(mine & theirs)))
    if not columns:
        return 0, 0
    # With another unique column (a title), REPLACE could delete a different row of the copy.
    keys = database.execute(f"PRAGMA main.index_list({quote_name(table)})").fetchall()
    newer = newer and not any(unique and origin != "pk" for _, _, unique, origin, _ in keys)
    name, way = quote_name(table), "REPLACE" if newer else "IGNORE"
    new = f"SELECT {columns} FROM rescued.{name} EXCEPT SELECT {columns} FROM main.{name}"
    wanted = database.execute(f"SELECT count(*) FROM ({new})").fetchone()[0]
    done = database.execute(f"INSERT OR {way} INTO main.{name} ({columns}) {new}").rowcount
    return done, wanted - done


class Refusal(NamedTuple):
    """What is needed to find out whether a database may still have rows."""

    name: str
    home: Home
    copies: Sequence[DatabaseCopy]


def create_empty(copy: Path, plan: Blueprint, lost: str, rows: Refusal) -> list[str]:
    """Replace `copy` by a new database with the schema of a release; return what is lost.

    Raises CannotFix if the copy may still have rows.
    """
    log = copy.with_name(copy.name + "-wal")
    if (has_rows(copy, whole=True) or snapshot(log).size > wal.LOG_HEAD) and not _is_empty(
        copy, plan, rows
    ):
        raise CannotFix(
            "{name} may still have rows that hermes-doctor cannot read, so it is not replaced "
            "by an empty database. Copy the file to a safe place, then restore a backup.",
            name=rows.name,
        )
    remove_database(copy)
    try:
        with contextlib.closing(create(copy, plan)) as database:
            database.execute("PRAGMA journal_mode=WAL")
            created = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
    except sqlite3.Error as error:
        what = "SQLite cannot create the new database ({error})"
        raise CannotFix(what, error=name_of(error)) from error
    expected = [table.name for table in plan.tables.values() if not table.created_on_demand]
    if missing := [name for name in expected if name not in created]:
        raise CannotFix("the new database lacks the table {table}", table=missing[0])
    return [lost]


def _is_empty(copy: Path, plan: Blueprint, rows: Refusal) -> bool:
    """Whether a salvage works and finds no row; it may also fail for another reason."""
    with _salvaged_path(copy) as rescued:
        try:
            older = sources(plan, rows.home, rows.copies)
            return not salvage(copy, rescued, plan, older_copies=older).has_rows
        except (CannotFix, CouldNotLook, OSError):
            return False
