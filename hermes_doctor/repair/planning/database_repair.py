"""Plan the repair of a database: choose the methods to try and the schema of the right release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.message import count, sentences, text
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.repair.steps.database import ReplaceDatabase
from hermes_doctor.sqlite.files import resolve_symlink, sidecars

if TYPE_CHECKING:
    from hermes_doctor.core.file_copies import DatabaseCopy
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.diagnosis.step import Step
    from hermes_doctor.sqlite.blueprint import Blueprint
    from hermes_doctor.sqlite.repairs.work import RepairMethod
    from hermes_doctor.sqlite.salvage.account import SalvageResult

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
    write-ahead log alone, without the file in its place; damaged copies are the rows of a copy
    that is damaged, too. Those that make a new one need
    to know the release; the others work by what the file itself declares.
    """
    from hermes_doctor.sqlite.repairs import work

    steps = [step for name in rungs for step in _rungs(probes, path, name)]
    return ReplaceDatabase(
        path,
        lambda copy: work.try_methods(copy, steps),
        why=why,
        expect=snapshot(resolve_symlink(path)),
        times=SALVAGE if "rows" in rungs else ATTEMPT,
        forecast=cache(partial(_losses, probes, path)) if rungs[0] == "rows" else None,
    )


def start_empty(probes: Probes, path: Path) -> Iterator[Step]:
    """Yield the steps that replace a database by a new one with the schema of the release.

    It is for a database of which nothing can be read and no copy exists. The new one is in place
    in one instant, so a gateway that starts meanwhile finds the old file or a whole new one. If
    the schema is not known, the file is only removed, and Hermes creates a new one.
    """
    from hermes_doctor.hermes.knowledge import atlas
    from hermes_doctor.sqlite.repairs.rescue import Refusal, create_empty

    expect = snapshot(resolve_symlink(path))
    missing = expect.kind == "absent"
    data = _CONTENTS.get(path.name, text("All data of {name} is lost", name=path.name))
    why = text(
        "{lost}: the file is missing and no copy was found."
        if missing
        else "{lost}: nothing in the file can be read and no copy was found.",
        lost=data,
    )
    kept = "" if missing else "The damaged file is kept in the backup."
    files = probes.files.session_count() if path.name == "state.db" else 0
    left = text(
        "{files} in sessions/ is kept." if files == 1 else "{files} in sessions/ are kept.",
        files=count(files, "session file"),
    )
    lost = sentences(why, kept, left if files else "")
    if atlas.kind_of(probes.home.name_of(path)) is None:
        from hermes_doctor.repair.steps.files import Remove

        for part in (*sidecars(path), path):
            if snapshot(part).kind != "absent":
                said = lost if part == path else ""
                yield Remove(part, why="nothing in it can be read", lost=said)
        return
    plan = blueprint_of(probes, path)
    name = probes.home.name_of(path)
    rows = Refusal(name, probes.home, probes.databases.copies(path))
    yield ReplaceDatabase(
        path,
        partial(create_empty, plan=plan, lost=lost, rows=rows),
        why=text("start with an empty database of Hermes {release}", release=plan.release),
        expect=expect,
        times=SALVAGE,
        forecast=lambda: lost,
    )


_CONTENTS = {"state.db": "All messages and sessions are lost", "kanban.db": "All tasks are lost"}


def _losses(probes: Probes, path: Path) -> str:
    """Save the rows of a copy in a temporary folder, and say which are lost."""
    from hermes_doctor.core.system import privileges

    source = resolve_symlink(path)
    known = text("Rows on damaged or missing pages are lost; the result says how many.")
    large = sum(snapshot(file).size for file in _files(source)) > TRIAL
    if large or privileges.of(source) is not None:
        return known
    result = _try_salvage(probes, path)
    return known if result is None else result.forecast


def _files(source: Path) -> list[Path]:
    """The database and its logs, as far as they exist."""
    logs = [sidecar for sidecar in sidecars(source) if not sidecar.name.endswith("-shm")]
    return [path for path in (source, *logs) if snapshot(path).kind == "file"]


def _try_salvage(probes: Probes, path: Path) -> SalvageResult | None:
    """Salvage a copy in a temporary folder; None if that fails."""
    import tempfile

    from hermes_doctor.core.system import disk, progress
    from hermes_doctor.sqlite.repairs import rescue
    from hermes_doctor.sqlite.salvage.run import salvage

    source = resolve_symlink(path)
    progress.report(text("trying to save the rows of {name}", name=path.name))
    with tempfile.TemporaryDirectory(prefix="hermes-doctor-") as folder:
        copy = Path(folder) / source.name
        try:
            for file in _files(source):
                with disk.new_file(copy.with_name(file.name)) as fd:
                    disk.copy(file, fd)
            plan = blueprint_of(probes, path)
            older = rescue.sources(plan, probes.home, probes.databases.copies(path))
            return salvage(copy, copy.with_name("saved"), plan, older_copies=older)
        except (CannotFix, CouldNotLook, OSError):
            return None


def roll_back_transaction(path: Path) -> ReplaceDatabase:
    """Let SQLite play the journal of a database back."""
    from hermes_doctor.sqlite.repairs import in_place, work

    rungs: list[RepairMethod] = [("rolling back the transaction", in_place.roll_back)]
    return ReplaceDatabase(
        path,
        lambda copy: work.try_methods(copy, rungs),
        why="roll back the interrupted transaction",
        expect=snapshot(resolve_symlink(path)),
    )


def _rungs(probes: Probes, path: Path, name: str) -> list[RepairMethod]:
    from hermes_doctor.sqlite.repairs import in_place, rebuild_search

    if name == "magic":
        return [("restoring its first 16 bytes", in_place.write_magic)]
    if name == "header":
        return [("rebuilding its header", in_place.rewrite_header)]
    if name == "indexes":
        return [
            ("rebuilding its indexes", in_place.reindex),
            ("declaring its indexes again", in_place.remake),
        ]
    if name == "full text":
        known = known_blueprint(probes, path)
        return [
            ("rebuilding its search index", partial(rebuild_search.rebuild_tables, blueprint=known))
        ]
    from hermes_doctor.sqlite.repairs import rescue

    if name == "copies":
        older = _own_copies(probes, path)
        return [("restoring an older copy", partial(rescue.restore_from_copy, candidates=older))]
    plan = blueprint_of(probes, path)
    sources = probes.databases.copies(path)
    if name == "damaged copies":
        candidates = [own_copy for own_copy in _own_copies(probes, path) if not own_copy.member]
        candidates += probes.databases.damaged_copies(path)
        save = partial(rescue.save_rows_of_copy, plan=plan, candidates=candidates)
        return [("saving the rows of a damaged copy", save)]
    if name == "layers":
        older = _own_copies(probes, path)
        lay_over = partial(rescue.restore_and_merge_log, plan=plan, candidates=older)
        what = "merging its write-ahead log into an older copy"
        return [(what, partial(_without_file, repair=lay_over))]
    save = partial(rescue.save_rows, plan=plan, home=probes.home, copies=sources)
    if name == "log":
        return [("saving the rows of its write-ahead log", partial(_without_file, repair=save))]
    return [("saving its rows", save)]


def _own_copies(probes: Probes, path: Path) -> list[DatabaseCopy]:
    """All copies that are certainly of this home."""
    return [copy for copy in probes.databases.all_copies(path) if not copy.doubtful]


def _without_file(copy: Path, repair: Callable[[Path], list[str]]) -> list[str]:
    """Repair with the log alone: the file beside it is not a database."""
    from hermes_doctor.core.system import disk

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
    from hermes_doctor.hermes.knowledge import atlas

    name = probes.home.name_of(path)
    kind = atlas.kind_of(name)
    if kind is None:
        raise CannotFix("The structure of {name} is unknown. Restore it from a backup.", name=name)
    installed = probes.hermes.installation()
    release = installed.release if installed else None
    if atlas.is_newer_than_atlas(kind, release):
        raise CannotFix("{reason}. Update hermes-doctor first.", reason=probes.newer())
    try:
        schema = probes.databases.schema(path)
        if atlas.is_from_newer_release(kind, schema):
            raise CannotFix(
                "{name} is from a newer Hermes than hermes-doctor knows. Update "
                "hermes-doctor first.",
                name=name,
            )
        plan = atlas.richest_blueprint(kind, release, schema)
    except (CouldNotLook, FileNotFoundError):  # its own list of tables is damaged or gone too
        plan = atlas.blueprint_at_or_below(kind, release)
    if plan is None:
        raise CannotFix("The installed Hermes does not use {name}. Update Hermes first.", name=name)
    return plan
