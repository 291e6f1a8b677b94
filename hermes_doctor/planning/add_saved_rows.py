"""Plan the step that adds rows of a backup to the live database that lacks them."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.backup.unique_rows import expired_before
from hermes_doctor.backup.vault import Vault
from hermes_doctor.message import count, text
from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.sqlite.deleted_log import DatabaseImage
from hermes_doctor.sqlite.files import resolve_symlink
from hermes_doctor.steps.database import ReplaceDatabase
from hermes_doctor.system import disk
from hermes_doctor.system.files import snapshot
from hermes_doctor.system.open_files import open_owned

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.records.journal import Journal


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
            text("Could not read {file} of the backup. Choose another backup.", file=path.name)
        ) from why
    opened.callback(os.close, fd)
    return fd


def add_saved_rows(probes: Probes, id: str, name: str) -> AddSavedRows:
    """Add the messages to a history that a backup of its deleted log has and it lacks."""
    from hermes_doctor.planning import database_repair
    from hermes_doctor.sqlite import saved_rows
    from hermes_doctor.sqlite.repairs.saved_rows import add_saved_messages

    path = probes.home / name
    plan = database_repair.blueprint_of(probes, path)
    root = next((one.root for one in probes.saved_logs() if one.id == id), None)
    if root is None:
        raise CannotFix(text("Backup {id} is not needed any more. Run the check again.", id=id))
    reader = probes.condition(path).reader
    if reader is None:
        raise CannotFix(text("{file} is damaged. Repair it first.", file=path.name))
    vault = Vault(probes.home, root)
    since = expired_before(probes.home)
    try:
        backup = vault.load(id)
        if wrong := vault.verify(backup):
            raise CannotFix(
                text(
                    "Backup {id} is damaged: {reason}. Choose another backup.",
                    id=id,
                    reason=wrong[0],
                )
            )
        parts = [backup.entry(name), backup.entry(f"{name}-wal")]
        files = tuple(backup.copy_of(one) for one in parts if one)
        saved = saved_rows.read_messages(files[0])
        found = saved_rows.find_missing_messages(
            saved, saved_rows.query_function(reader), lambda: since
        )
    except (CouldNotLook, Trouble) as why:
        reason = str(why).rstrip(".")
        raise CannotFix(
            text("Could not compare backup {id}: {reason}.", id=id, reason=reason)
        ) from why
    if not found.addable:
        raise CannotFix(
            text(
                "{file} lacks no message that can be added from backup {id}. Nothing to do.",
                file=path.name,
                id=id,
            )
        )
    messages = count(found.addable, "message")
    what = text("add {messages} of backup {id}", messages=messages, id=id)
    if found.left:
        what = text(
            "add {messages} of backup {id}; {left} cannot be added, because their conversations "
            "continued",
            messages=messages,
            id=id,
            left=len(found.left),
        )
    joined: list[Path] = []

    def rebuild(copy: Path) -> list[str]:
        return add_saved_messages(copy, joined[0], saved, since, plan)

    logs = [one for one in backup.entries if one.path.endswith("-wal")]
    return AddSavedRows(
        path,
        rebuild,
        what,
        expect=snapshot(resolve_symlink(path)),
        times=3,
        backup=id,
        files=files,
        completes_backup=len(logs) == 1 and not found.left,
        joined=joined,
    )
