"""Plan the repair of a database: choose the methods to try and the schema of the right release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite.files import resolve_symlink, sidecars
from hermes_doctor.steps.database import ReplaceDatabase
from hermes_doctor.system.files import snapshot

if TYPE_CHECKING:
    from hermes_doctor.file_copies import DatabaseCopy
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.sqlite.blueprint import Blueprint
    from hermes_doctor.sqlite.repairs.methods import RepairMethod

TRIAL = 64 * 1024**2
"""Bytes of a database up to which its salvage is tried before the operator is asked."""
ATTEMPT, SALVAGE = 2, 4
"""How many times the size of the database must be free.

The copy and the attempt need it twice; a salvage also needs the new database and its full-text
file.
"""


def database_repair(probes: Probes, path: Path, rungs: Sequence[str], why: str) -> ReplaceDatabase:
    """Return the step that tries the named methods in order and keeps the first sound result.

    magic, header, indexes, full text and rows are the rungs, from the least invasive to the most;
    layers and copies are for a database that is lost as a whole; log is the rows of its
    write-ahead log alone, without the file in its place. Those that make a new one need
    to know the release; the others work by what the file itself declares.
    """
    from hermes_doctor.sqlite.repairs import methods

    steps = [step for name in rungs for step in _rungs(probes, path, name)]
    return ReplaceDatabase(
        path,
        lambda copy: methods.try_methods(copy, steps),
        why=why,
        expect=snapshot(resolve_symlink(path)),
        times=SALVAGE if "rows" in rungs else ATTEMPT,
        forecast=cache(partial(_losses, probes, path)) if rungs[0] == "rows" else None,
    )


def _losses(probes: Probes, path: Path) -> str:
    """Save the rows of a copy in a temporary folder, and say which are lost."""
    import tempfile

    from hermes_doctor.sqlite.repairs import rescue
    from hermes_doctor.sqlite.salvage.salvage import salvage
    from hermes_doctor.system import disk, privileges, progress

    source = resolve_symlink(path)
    logs = [one for one in sidecars(source) if not one.name.endswith("-shm")]
    files = [one for one in (source, *logs) if snapshot(one).kind == "file"]
    known = text("Rows on damaged or missing pages are lost; the result says how many.")
    if sum(snapshot(one).size for one in files) > TRIAL or privileges.of(source) is not None:
        return known
    progress.report(text("trying to save the rows of {name}", name=path.name))
    with tempfile.TemporaryDirectory(prefix="hermes-doctor-") as folder:
        copy = Path(folder) / source.name
        try:
            for one in files:
                with disk.new_file(copy.with_name(one.name)) as fd:
                    disk.copy(one, fd)
            plan = blueprint_of(probes, path)
            older = rescue.sources(plan, probes.home, probes.copies(path))
            result = salvage(copy, copy.with_name("saved"), plan, older_copies=older)
        except (CannotFix, CouldNotLook, OSError):
            return known
    return result.forecast


def roll_back_transaction(path: Path) -> ReplaceDatabase:
    """Let SQLite play the journal of a database back."""
    from hermes_doctor.sqlite.repairs import methods, transactions

    rungs: list[RepairMethod] = [("rolling back the transaction", transactions.roll_back)]
    return ReplaceDatabase(
        path,
        lambda copy: methods.try_methods(copy, rungs),
        why="roll back the interrupted transaction",
        expect=snapshot(resolve_symlink(path)),
    )


def _rungs(probes: Probes, path: Path, name: str) -> list[RepairMethod]:
    from hermes_doctor.sqlite.repairs import fulltext, header, indexes

    if name == "magic":
        return [("restoring its first 16 bytes", header.write_magic)]
    if name == "header":
        return [("rebuilding its header", header.rewrite)]
    if name == "indexes":
        return [
            ("rebuilding its indexes", indexes.reindex),
            ("declaring its indexes again", indexes.remake),
        ]
    if name == "copies":
        from hermes_doctor.sqlite.repairs import from_copy

        older = _own_copies(probes, path)
        return [("restoring an older copy", partial(from_copy.restore_from_copy, candidates=older))]
    if name == "full text":
        known = known_blueprint(probes, path)
        return [("rebuilding its search index", partial(fulltext.rebuild, blueprint=known))]
    plan = blueprint_of(probes, path)
    sources = probes.copies(path)
    if name == "layers":
        from hermes_doctor.sqlite.repairs import copy_and_log

        older = _own_copies(probes, path)
        lay_over = partial(copy_and_log.restore_and_merge_log, plan=plan, candidates=older)
        what = "merging its write-ahead log into an older copy"
        return [(what, partial(_without_file, repair=lay_over))]
    from hermes_doctor.sqlite.repairs import rescue

    save = partial(rescue.save_rows, plan=plan, home=probes.home, copies=sources)
    if name == "log":
        return [("saving the rows of its write-ahead log", partial(_without_file, repair=save))]
    return [("saving its rows", save)]


def _own_copies(probes: Probes, path: Path) -> list[DatabaseCopy]:
    """All copies that are certainly of this home."""
    return [one for one in probes.all_copies(path) if not one.doubtful]


def _without_file(copy: Path, repair: Callable[[Path], list[str]]) -> list[str]:
    """Repair with the log alone: the file beside it is not a database."""
    from hermes_doctor.system import disk

    disk.remove(copy)
    with disk.new_file(copy):
        pass
    return repair(copy)


def known_blueprint(probes: Probes, path: Path) -> Blueprint | None:
    """The same as far as it is known; a newer file has only its own declarations to go by."""
    try:
        return blueprint_of(probes, path)
    except CannotFix:
        return None


def blueprint_of(probes: Probes, path: Path) -> Blueprint:
    """Return the blueprint to rebuild with: the release's, or a newer one that the file has."""
    from hermes_doctor.knowledge import atlas

    name = probes.home.name_of(path)
    kind = atlas.kind_of(name)
    if kind is None:
        raise CannotFix(
            text("The structure of {name} is unknown. Restore it from a backup.", name=name)
        )
    installed = probes.installation()
    release = installed.release if installed else None
    if atlas.is_newer_than_atlas(kind, release):
        raise CannotFix(text("{reason}. Update hermes-doctor first.", reason=probes.newer()))
    try:
        found = probes.schema(path)
        if atlas.is_from_newer_release(kind, found):
            raise CannotFix(
                text(
                    "{name} is from a newer Hermes than hermes-doctor knows. Update "
                    "hermes-doctor first.",
                    name=name,
                )
            )
        plan = atlas.richest_blueprint(kind, release, found)
    except (CouldNotLook, FileNotFoundError):  # its own list of tables is damaged or gone too
        plan = atlas.blueprint_at_or_below(kind, release)
    if plan is None:
        raise CannotFix(
            text("The installed Hermes does not use {name}. Update Hermes first.", name=name)
        )
    return plan
