"""Messages and outcomes for runs that failed, were refused or were only partly applied."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.backup.records.journal import PARTLY, Journal
from hermes_doctor.backup.vault.manifest import Backup
from hermes_doctor.core.message import sentences, text
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system import limits
from hermes_doctor.repair.transaction import paths
from hermes_doctor.repair.transaction.gateway import ASKED, STOPPED, pending_stop_message
from hermes_doctor.repair.transaction.targets import Refused


def mark_refused(journal: Journal, error: Refused) -> Journal:
    """Mark the items of a refused run: some cannot be done, the others are tried without them."""
    for number, item in enumerate(journal.items):
        if number not in error.items:
            item.outcome, item.reason = "left", "tried again without the refused fix"
        elif error.tried_on_copy and item.then:
            item.outcome = "not-enough"
            item.reason = f"{_bare(error)}. The next fix is {item.then}."
        else:
            item.outcome, item.reason = "refused", str(error)
    return journal


def mark_left_items(journal: Journal, left: Sequence[str], backup: Backup) -> None:
    """Mark every item with a path that was not rolled back as rolled back only in part."""
    for number, item in enumerate(journal.items):
        mine = [path.path for path in journal.paths if number in path.items]
        stays = [name for name in mine if name in left]
        if not stays:
            continue
        item.outcome = "failed"
        given = [
            path.path
            for path in journal.paths
            if paths.changes_only_mode(path)
            and (path.before.uid, path.before.gid) != (path.after.uid, path.after.gid)
        ]
        if set(stays) <= set(given):
            why = "its owner cannot be restored, or it was changed after the run"
        else:
            why = "it was changed after the run"
        item.reason = (
            f"{item.reason}; rolled back only in part: {', '.join(stays)} was not restored, "
            f"because {why}"
        )
        kept = paths.rolled_back_folder(backup)
        if len(stays) < len(mine) and kept.exists():
            item.reason += f"; the new content of its other files is kept in {kept}"


def left_paths_note(names: Sequence[str]) -> str:
    """The part of a run's note that names the paths which were not rolled back."""
    if not names:
        return ""
    return f"; not restored, because it has changed since: {', '.join(names)}"


def left_files_note(journal: Journal) -> str:
    """Name the files that a run had to leave beside its targets."""
    text = ""
    if journal.kept:
        names = ", ".join(str(journal.current_home.path / name) for name in journal.kept)
        text += (
            f" Another program wrote to a file while it was replaced. That version is not in the "
            f"backup, so it is kept: {names}. Copy what you need from it, then delete it."
        )
    if journal.unremoved:
        names = ", ".join(str(journal.current_home.path / name) for name in journal.unremoved)
        text += (
            f" Old copies could not be removed and may contain secrets: {names}. Delete them; the "
            f"next hermes-doctor fix --apply tries it, too."
        )
    return text


def error_reason(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, MemoryError):
        return limits.reason("it", limits.COMMAND)
    if isinstance(error, OSError):
        return os.strerror(error.errno or 0).lower()
    if isinstance(error, Trouble | CannotFix | CouldNotLook):
        return _bare(error)
    return type(error).__name__


def as_trouble(error: BaseException, journal: Journal) -> BaseException:
    """Turn an expected error into a Trouble with one clear line; return any other unchanged."""
    if journal.gateway == ASKED and journal.asked and isinstance(error, CouldNotLook | CannotFix):
        return Trouble(
            "{reason}. No file was changed; {gateway}.",
            reason=_bare(error),
            gateway=pending_stop_message(journal.asked),
        )
    changed: str = "Nothing was changed."
    if PARTLY in (journal.state, journal.end):
        changed = text("The run could not be rolled back completely: {note}.", note=journal.note)
    elif journal.gateway == STOPPED:
        changed = text(
            "No file was changed, but the gateway was stopped and could not be started again. "
            "Start it."
        )
    if isinstance(error, OSError):
        why = os.strerror(error.errno or 0)
        if isinstance(error.filename, str):
            why = text("{error} ({file})", error=why, file=Path(error.filename).name)
    elif isinstance(error, MemoryError):
        why = limits.reason("This command", limits.COMMAND)
    elif isinstance(error, CouldNotLook | CannotFix):
        why = _bare(error)
    else:
        return error
    return Trouble(sentences(text("{reason}.", reason=why), changed))


def _bare(error: BaseException) -> str:
    """Return the text of an error without a full stop at the end."""
    return str(error).rstrip(".")
