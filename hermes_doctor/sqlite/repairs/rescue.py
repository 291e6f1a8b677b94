"""The last repair method: salvage the rows, with the help of older copies and transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.file_copies import DatabaseCopy
from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.files import sidecars
from hermes_doctor.sqlite.salvage.older_copies import OlderFile
from hermes_doctor.sqlite.salvage.salvage import salvage
from hermes_doctor.system import disk, progress
from hermes_doctor.system.files import list_folder, snapshot


def save_rows(copy: Path, plan: Blueprint, home: Home, copies: Sequence[DatabaseCopy]) -> list[str]:
    """Replace the damaged copy by a new database with every row that can be saved."""
    rescued = copy.with_name(copy.name + ".rescued")
    try:
        account = salvage(
            copy,
            rescued,
            plan,
            older_copies=sources(plan, home, copies),
            progress=lambda done, total: progress.report("saving its rows", done / total),
        )
        if not any(table.kept for table in account.tables if table.name != "schema_version"):
            raise CannotFix("no row can be read")  # every release knows its version
        for old in sidecars(copy):
            disk.remove(old)
        disk.rename(rescued, copy)
    except CouldNotLook as why:
        raise CannotFix(str(why)) from why
    finally:
        for left in (rescued, *sidecars(rescued)):
            disk.remove(left)
    return list(account.sentences)


def sources(plan: Blueprint, home: Home, copies: Sequence[DatabaseCopy]) -> list[OlderFile]:
    """Other files with the same rows: older copies, and for state.db the session transcripts."""
    found = [OlderFile(one.path, home.name_of(one.path), one.mtime_ns / 1e9) for one in copies]
    folder = home / "sessions"
    names = list_folder(folder) if plan.database == "state.db" else []
    for name in names:
        taken = snapshot(folder / name)
        if name.endswith((".json", ".jsonl")) and taken.kind == "file":
            found.append(OlderFile(folder / name, f"sessions/{name}", taken.mtime_ns / 1e9))
    return found
