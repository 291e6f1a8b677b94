"""Implements `backup create` without typer, so that typer need not be loaded."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.backup.records.home_lock import lock_home
from hermes_doctor.backup.vault import whole_backup
from hermes_doctor.backup.vault.free_space import total_size
from hermes_doctor.backup.vault.manifest import Backup
from hermes_doctor.backup.vault.selection import Choice, describe_important
from hermes_doctor.backup.vault.unreadable_files import DENIED, list_missing
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.cli import exits, separate_work
from hermes_doctor.cli.option_values import absolute, named_home, repeat_options
from hermes_doctor.cli.progress_bars import bar, transfer_progress, waiting
from hermes_doctor.core import home as homes
from hermes_doctor.core.lazy import EMPTY
from hermes_doctor.core.message import count, listed
from hermes_doctor.core.system import root_parent
from hermes_doctor.core.system.files import size
from hermes_doctor.core.system.signals import interruptible
from hermes_doctor.core.terminal.lines import row, tilde
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.vault.prune_rules import PruneSelection, Retention
    from hermes_doctor.core.system.separate_process import Action

REASON = "by hand"


def run(
    home: Path | None = None,
    vault: Path | None = None,
    reason: str = REASON,
    full: bool = False,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    to: Path | None = None,
    encrypt_to: list[str] | None = None,
    passphrase_file: Path | None = None,
    rule: Retention | None = None,
    json: bool = False,
) -> int:
    """Make a backup, export and prune as asked, and print the result."""
    where, named, vault = homes.find(home), named_home(home), absolute(vault)
    root_exports: AbstractContextManager[Mapping[str, Action]] = nullcontext(EMPTY)
    if to or encrypt_to or passphrase_file:
        from hermes_doctor.cli import backup_transfer

        root_exports = backup_transfer.root_exports(to, encrypt_to, passphrase_file)
        backup_transfer.refuse_incomplete_options(to, encrypt_to, passphrase_file)
        if to:
            backup_transfer.refuse_place(to, where)
    exits.set_interrupt_text("No backup was created, and the home is unchanged.")
    choice = Choice(tuple(include or ()), tuple(exclude or ()))

    def work() -> int:
        return _create(
            where, named, vault, reason, full, choice, to, encrypt_to, passphrase_file, rule, json
        )

    with root_exports as actions:
        return separate_work.run(where, work, vault=vault, actions=actions)


def _create(
    where: homes.Home,
    named: Path | None,
    vault: Path | None,
    reason: str,
    full: bool,
    choice: Choice,
    to: Path | None,
    encrypt_to: list[str] | None,
    passphrase_file: Path | None,
    rule: Retention | None,
    json: bool,
) -> int:
    from hermes_doctor.diagnosis.probes.probes import Probes

    omitted = whole_backup.OmittedPaths()
    installation = Probes(where).hermes.installation()
    sent: Path | None = None
    pruned: PruneSelection | None = None
    with lock_home(where), interruptible():
        store = Vault(where, vault)
        with waiting("listing the files", quiet=json):
            store.remove_leftovers()
            sources = whole_backup.list_sources(where, store.root, choice, omitted)
        with bar("backing up", total_size(sources), quiet=json) as progress:
            backup = store.create(
                sources,
                reason=reason,
                hermes=installation.version if installation else None,
                whole=not omitted.unwanted,
                full=full,
                left_out=choice.words,
                missing=omitted.missing,
                progress=progress,
            )
        exits.note_change()
        exits.set_interrupt_text(f"Backup {backup.id} is complete; the rest was not done.")
        if encrypt_to:
            from hermes_doctor.cli import backup_transfer

            with transfer_progress(backup.size, quiet=json):
                sent, _ = backup_transfer.export_to(backup, to, encrypt_to, passphrase_file)
        if rule:
            from hermes_doctor.backup.vault.prune_rules import select_by_retention

            with waiting("removing old backups", quiet=json):
                pruned = select_by_retention(store, rule)
                for one in pruned.to_remove:
                    store.discard(one)
    (_print if json else _show)(backup, omitted, sent, pruned)
    if not json:
        options = repeat_options(named, vault=vault)
        show([row("Restore: ", (f"hermes-doctor backup restore {backup.id}{options}", "command"))])
        if not backup.sound:
            show([row("Next: ", (f"hermes-doctor fix{repeat_options(named)}", "command"))])
    return int(not backup.sound or bool(backup.missing))


def _print(
    backup: Backup,
    omitted: whole_backup.OmittedPaths,
    sent: Path | None,
    pruned: PruneSelection | None,
) -> None:
    from hermes_doctor.render.document import dump

    document = {
        "schema": "hermes-doctor/backup/1",
        **backup_document(backup),
        "entries": len(backup.entries),
        "left_out": omitted.folders,
        "excluded": omitted.unwanted,
        "not_followed": omitted.unfollowed,
        "damaged_before": [{"backup": id, "path": path} for id, path in backup.damaged_before],
        "archive": str(sent) if sent else None,
        "removed": pruned.to_remove if pruned else [],
        "protected": [
            {"id": id, "why": why} for id, why in (pruned.protected if pruned else {}).items()
        ],
    }
    print(dump(document))  # noqa: T201


def backup_document(backup: Backup) -> dict[str, Any]:
    """The backup as JSON data."""
    return {
        "id": backup.id,
        "created_at": backup.created_at.isoformat(),
        "home": backup.home,
        "reason": backup.reason,
        "hermes": backup.hermes,
        "files": len(backup.entries),
        "bytes": backup.size,
        "whole": backup.whole,
        "shares": backup.shares,
        "missing": [missing_file.document for missing_file in backup.missing],
        "folder": str(backup.folder),
    }


def _advice(backup: Backup) -> str:
    """What to do about a file that cannot be read."""
    denied = next(
        (missing_file for missing_file in backup.missing if missing_file.reason == DENIED), None
    )
    if denied is None:
        return ""
    if root_parent.operator() != 0:
        return "Run this command as the owner of the home, or with sudo."
    place = shlex.quote(os.path.join(backup.home, denied.path))
    return f"Make the owner of the home its owner: chown {os.stat(backup.home).st_uid} {place}"


def _show(
    backup: Backup,
    omitted: whole_backup.OmittedPaths,
    sent: Path | None,
    pruned: PruneSelection | None,
) -> None:
    files = count(len(backup.entries), "file")
    text = f"Backup {backup.id} created and verified: {files}, {size(backup.size)}."
    mark = ("✓ ", "good") if backup.sound and not backup.missing else ("! ", "warning")
    show([row(mark, f"{text} {tilde(backup.folder)}", hang=2)])
    if backup.missing:
        paths = count(len(backup.missing), "path")
        text = f"Incomplete: {paths} could not be read: {list_missing(backup.missing)}"
        show([row(("! ", "warning"), text, hang=2)])
        if advice := _advice(backup):
            show([row(advice, indent=2, hang=2)])
    if backup.shares:
        text = f"Unchanged data is shared with backup {backup.shares}."
        show([row((text, "faint"), indent=2)])
    if omitted.folders:
        names = ", ".join(omitted.folders)
        text = f"Skipped (logs, caches, code, backups made by Hermes): {names}"
        show([row((text, "faint"), indent=2)])
    if omitted.unfollowed:
        names = ", ".join(omitted.unfollowed)
        text = f"Saved as links only, because they point into the home or the system: {names}"
        show([row((text, "faint"), indent=2)])
    if unwanted := omitted.unwanted:
        text = f"Left out by --exclude: {count(len(unwanted), 'file')}"
        if above := describe_important(unwanted):
            text += f", among them {', '.join(above)}"
        show([row(("! ", "warning"), text)])
    for entry in backup.entries:
        if entry.integrity not in (None, "ok"):
            code = "" if entry.integrity == "damaged" else f" ({entry.integrity})"
            text = f"{entry.path} is damaged{code}; the backup contains it as it is."
            show([row(("! ", "warning"), text, hang=2)])
    if backup.damaged_before:
        damaged = [path for _, path in backup.damaged_before]
        text = f"Saved again: {listed(damaged, 3)}. The copy in the earlier backup "
        text += f"{backup.damaged_before[0][0]} is damaged."
        show([row(("! ", "warning"), text, hang=2)])
    if sent:
        show([row(("✓ ", "good"), f"Encrypted archive written: {tilde(sent)}", hang=2)])
    if pruned and pruned.to_remove:
        show([row((f"Removed old backups: {', '.join(pruned.to_remove)}", "faint"), indent=2)])
    if pruned and pruned.protected:
        from hermes_doctor.cli.backup_prune import protected_lines

        show(protected_lines(pruned))
