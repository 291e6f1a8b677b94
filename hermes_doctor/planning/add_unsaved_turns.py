"""Plan to add messages to the history that Hermes kept in other files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.backup.unique_rows import expired_before
from hermes_doctor.message import count, sentences, text
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.planning.add_saved_rows import AddSavedRows
from hermes_doctor.sqlite.files import resolve_symlink
from hermes_doctor.steps.database import ReplaceDatabase
from hermes_doctor.system.files import snapshot

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.sqlite.blueprint import Blueprint


def add_retired_rows(probes: Probes, folder: str) -> AddSavedRows:
    """Add the messages of a write-ahead log that Hermes set aside."""
    from hermes_doctor.probes import unsaved_rows
    from hermes_doctor.sqlite import retired_log
    from hermes_doctor.sqlite.files import require_sound
    from hermes_doctor.sqlite.repairs.saved_rows import add_saved_messages

    path, place = probes.home / unsaved_rows.DATABASE, probes.home / folder
    plan = _plan(probes, path)
    try:
        found = unsaved_rows.retired(probes, place, patient=True)
        files = retired_log.files_of(place)
    except CouldNotLook as why:
        raise CannotFix(
            text("Could not compare {folder}: {reason}.", folder=folder, reason=str(why))
        ) from why
    missing = found.missing
    if not missing.addable:
        raise CannotFix(text("{file} lacks no message that can be added.", file=path.name))
    what = text(
        "add {messages} of {folder}", messages=count(missing.addable, "message"), folder=folder
    )
    if missing.left:
        what = text(
            "add {messages} of {folder}; {left} cannot be added, because their conversations "
            "continued",
            messages=count(missing.addable, "message"),
            folder=folder,
            left=len(missing.left),
        )
    since = expired_before(probes.home)
    joined: list[Path] = []

    def rebuild(copy: Path) -> list[str]:
        require_sound(joined[0])
        return add_saved_messages(copy, joined[0], found.saved, since, plan, origin=folder)

    return AddSavedRows(
        path,
        rebuild,
        what,
        expect=snapshot(resolve_symlink(path)),
        times=3,
        files=files,
        joined=joined,
    )


def add_unsaved_turns(probes: Probes) -> ReplaceDatabase:
    """Add the messages of transcripts that Hermes wrote because it could not save them."""
    from hermes_doctor.probes import unsaved_rows
    from hermes_doctor.sqlite.repairs.unsaved_messages import add_unsaved_messages

    path = probes.home / unsaved_rows.DATABASE
    plan = _plan(probes, path)
    try:
        found = unsaved_rows.unsaved(probes)
        kept = unsaved_rows.transcripts(probes)
    except CouldNotLook as why:
        raise CannotFix(
            text("Could not compare the transcripts: {reason}.", reason=str(why))
        ) from why
    left = [
        text("{messages} cannot be added: {why}.", messages=count(number, "message"), why=why)
        for why, number in found.left.items()
    ]
    if not found.addable:
        nothing = text("{file} lacks no message that can be added.", file=path.name)
        raise CannotFix(sentences(nothing, *left))
    added = text(
        "add {messages} of {sessions}.",
        messages=count(found.count, "message"),
        sessions=count(len(found.addable), "session"),
    )

    def rebuild(copy: Path) -> list[str]:
        return add_unsaved_messages(copy, kept.files, kept.pending, plan)

    return ReplaceDatabase(
        path,
        rebuild,
        sentences(added, *left) if left else str(added).rstrip("."),
        expect=snapshot(resolve_symlink(path)),
        times=2,
    )


def _plan(probes: Probes, path: Path) -> Blueprint | None:
    """The schema of the release; None if only the database itself knows it."""
    from hermes_doctor.planning.database_repair import known_blueprint

    if probes.condition(path).reader is None:
        raise CannotFix(text("{file} is damaged. Repair it first.", file=path.name))
    return known_blueprint(probes, path)
