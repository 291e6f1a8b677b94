"""Restore a lost database from an older copy, and add the rows of its write-ahead log."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.file_copies import DatabaseCopy
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.column_rules import quote_name
from hermes_doctor.sqlite.files import sidecars
from hermes_doctor.sqlite.repairs import from_copy, fulltext
from hermes_doctor.sqlite.repairs.work import open_copy, transaction
from hermes_doctor.sqlite.salvage.account import SalvageResult
from hermes_doctor.sqlite.salvage.salvage import salvage
from hermes_doctor.system import disk


def restore_and_merge_log(
    copy: Path, plan: Blueprint, candidates: Sequence[DatabaseCopy]
) -> list[str]:
    """Restore the newest sound copy, and add every row that the lost database's log has."""
    if not candidates:
        raise CannotFix("no older copy was found")
    rescued = copy.with_name(copy.name + ".rescued")
    try:
        account = salvage(copy, rescued, plan)
        said = [
            one.partition(";")[0] + "." for one in from_copy.restore_from_copy(copy, candidates)
        ]
        said += _merged(copy, rescued, account)
        return [*said, *fulltext.rebuild(copy, plan)] if plan.virtual else said
    except CouldNotLook as why:
        raise CannotFix(str(why)) from why
    finally:
        for left in (rescued, *sidecars(rescued)):
            disk.remove(left)


def _merged(copy: Path, rescued: Path, account: SalvageResult) -> list[str]:
    """Copy the rows without triggers; the caller rebuilds the full-text tables afterwards."""
    said = []
    with open_copy(copy) as database:
        database.execute("ATTACH ? AS rescued", (str(rescued),))
        with transaction(database):
            triggers = database.execute(
                "SELECT name, sql FROM main.sqlite_master WHERE type = 'trigger'"
            ).fetchall()
            for name, _ in triggers:
                database.execute(f"DROP TRIGGER main.{quote_name(name)}")
            for table in account.tables:
                if table.kept and table.name != "schema_version":
                    # If the log has only part of some rows, the rows of the copy are better.
                    count, clashing = _rows(database, table.name, newer=not table.partial)
                    said += [f"{table.name}: {count:,} newer rows from the log."] if count else []
                    if clashing:
                        said.append(
                            f"{table.name}: {clashing:,} rows of the log were left out: the copy "
                            f"has others of the same key."
                        )
            for _, sql in triggers:
                database.execute(sql)
        database.execute("DETACH rescued")
    if not said:
        raise CannotFix("its write-ahead log has no row that the copy lacks")
    return said


def _rows(database: sqlite3.Connection, table: str, *, newer: bool) -> tuple[int, int]:
    """Copy the rows of one table; return how many were copied, and how many could not be."""
    both = [
        {row[1] for row in database.execute(f"PRAGMA {schema}.table_info({quote_name(table)})")}
        for schema in ("main", "rescued")
    ]
    columns = ", ".join(quote_name(name) for name in sorted(both[0] & both[1]))
    if not columns:
        return 0, 0
    # With another unique column (a title), REPLACE could delete a different row of the copy.
    keys = database.execute(f"PRAGMA main.index_list({quote_name(table)})").fetchall()
    newer = newer and not any(unique and origin != "pk" for _, _, unique, origin, _ in keys)
    new = (
        f"SELECT {columns} FROM rescued.{quote_name(table)} "
        f"EXCEPT SELECT {columns} FROM main.{quote_name(table)}"
    )
    wanted = database.execute(f"SELECT count(*) FROM ({new})").fetchone()[0]
    way = "REPLACE" if newer else "IGNORE"
    done = database.execute(
        f"INSERT OR {way} INTO main.{quote_name(table)} ({columns}) {new}"
    ).rowcount
    return done, wanted - done
