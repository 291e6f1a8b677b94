"""Plan to add messages to the history that only a backup or another file has."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from hermes_doctor.backup.records.journal import Journal
from hermes_doctor.backup.vault.backup_rows import expired_before
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.message import count, sentences, text
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.core.system.open_files import open_owned
from hermes_doctor.diagnosis.probes import missing_rows
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.planning import database_repair
from hermes_doctor.repair.planning.database_repair import known_blueprint
from hermes_doctor.repair.steps.database import ReplaceDatabase
from hermes_doctor.sqlite import saved_rows
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.deleted_log import DatabaseImage
from hermes_doctor.sqlite.examine.soundness import require_sound
from hermes_doctor.sqlite.files import resolve_symlink
from hermes_doctor.sqlite.repairs.add_rows import add_saved_messages, add_unsaved_messages


@dataclass(frozen=True)
class AddSavedRows(ReplaceDatabase):
    """Step that adds rows of a backup to a database, and records if that settles the backup."""

    backup: str = ""
    files: tuple[Path, ...] = ()
    """The saved database and its log."""
    completes_backup: bool = False
    """Whether the database then has every row of the backup, and the backup no other database."""
    joined: list[Path] = field(default_factory=list, compare=False)
    """The temporary file that joins the saved database and its log."""

    def save_first(self, vault: Vault, receipt: Journal) -> None:  # noqa: ARG002
        if self.completes_backup:
            receipt.settled.append(self.backup)

    def _make(self, target: Path) -> None:
        joined = target.with_name(target.name + ".attempt")
        self.joined[:] = [joined]
        try:
            with ExitStack() as opened:
                main, log = (_open(path, opened) for path in self.files)
                DatabaseImage(main, log).write(joined)
            super()._make(target)
        finally:
            disk.remove(joined)


def _open(path: Path, opened: ExitStack) -> int:
    try:
        fd = open_owned(path)
    except (OSError, CouldNotLook) as why:
        raise CannotFix(
            "Could not read {file} of the backup. Choose another backup.", file=path.name
        ) from why
    opened.callback(os.close, fd)
    return fd


def add_saved_rows(probes: Probes, id: str, name: str) -> AddSavedRows:
    """Add the messages to a history that a backup of its deleted log has and it lacks."""
    path = probes.home / name
    plan = database_repair.blueprint_of(probes, path)
    root = next(
        (saved_log.root for saved_log in probes.records.saved_logs() if saved_log.id == id), None
    )
    if root is None:
        raise CannotFix("Backup {id} is not needed any more. Run the check again.", id=id)
    reader = probes.databases.condition(path).reader
    if reader is None:
        raise CannotFix("{file} is damaged. Repair it first.", file=path.name)
    vault = Vault(probes.home, root)
    since = expired_before(probes.home)
    try:
        backup = vault.load(id)
        if wrong := vault.verify(backup):
            raise CannotFix(
                "Backup {id} is damaged: {reason}. Choose another backup.", id=id, reason=wrong[0]
            )
        parts = [backup.entry(name), backup.entry(f"{name}-wal")]
        files = tuple(backup.copy_of(part) for part in parts if part)
        saved = saved_rows.read_messages(files[0])
        missing_messages = saved_rows.find_missing_messages(
            saved, saved_rows.query_function(reader), lambda: since
        )
    except (CouldNotLook, Trouble) as why:
        reason = str(why).rstrip(".")
        raise CannotFix("Could not compare backup {id}: {reason}.", id=id, reason=reason) from why
    if not missing_messages.addable:
        raise CannotFix(
            "{file} lacks no message that can be added from backup {id}. Nothing to do.",
            file=path.name,
            id=id,
        )
    joined: list[Path] = []

    def rebuild(copy: Path) -> list[str]:
        return add_saved_messages(copy, joined[0], saved, since, plan)

    logs = [entry for entry in backup.entries if entry.path.endswith("-wal")]
    return AddSavedRows(
        path,
        rebuild,
        _what_is_added(missing_messages, f"backup {id}"),
        expect=snapshot(resolve_symlink(path)),
        times=3,
        backup=id,
        files=files,
        completes_backup=len(logs) == 1 and not missing_messages.left,
        joined=joined,
    )


def add_retired_rows(probes: Probes, folder: str) -> AddSavedRows:
    """Add the messages of a write-ahead log that Hermes set aside."""
    path, place = probes.home / missing_rows.DATABASE, probes.home / folder
    plan = _plan(probes, path)
    try:
        retired_rows = missing_rows.retired(probes.databases, place, patient=True)
        files = saved_rows.files_of_retired_log(place)
    except CouldNotLook as why:
        raise CannotFix(
            "Could not compare {folder}: {reason}.", folder=folder, reason=str(why)
        ) from why
    missing = retired_rows.missing
    if not missing.addable:
        raise CannotFix("{file} lacks no message that can be added.", file=path.name)
    since = expired_before(probes.home)
    joined: list[Path] = []

    def rebuild(copy: Path) -> list[str]:
        require_sound(joined[0])
        return add_saved_messages(copy, joined[0], retired_rows.saved, since, plan, origin=folder)

    return AddSavedRows(
        path,
        rebuild,
        _what_is_added(missing, folder),
        expect=snapshot(resolve_symlink(path)),
        times=3,
        files=files,
        joined=joined,
    )


def _what_is_added(missing: saved_rows.MissingMessages, source: str) -> str:
    messages = count(missing.addable, "message")
    if not missing.left:
        return text("add {messages} of {source}", messages=messages, source=source)
    return text(
        "add {messages} of {source}; {left} cannot be added, because their conversations continued",
        messages=messages,
        source=source,
        left=len(missing.left),
    )


def add_unsaved_turns(probes: Probes) -> ReplaceDatabase:
    """Add the messages of transcripts that Hermes wrote because it could not save them."""
    path = probes.home / missing_rows.DATABASE
    plan = _plan(probes, path)
    try:
        turns = probes.stores.unsaved_turns()
        unsaved_messages = missing_rows.unsaved(probes.databases, turns)
        kept = missing_rows.transcripts(turns)
    except CouldNotLook as why:
        raise CannotFix("Could not compare the transcripts: {reason}.", reason=str(why)) from why
    left = [
        text("{messages} cannot be added: {why}.", messages=count(number, "message"), why=why)
        for why, number in unsaved_messages.left.items()
    ]
    if not unsaved_messages.addable:
        nothing = text("{file} lacks no message that can be added.", file=path.name)
        raise CannotFix(sentences(nothing, *left))
    added = text(
        "add {messages} of {sessions}.",
        messages=count(unsaved_messages.count, "message"),
        sessions=count(len(unsaved_messages.addable), "session"),
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
    if probes.databases.condition(path).reader is None:
        raise CannotFix("{file} is damaged. Repair it first.", file=path.name)
    return known_blueprint(probes, path)
