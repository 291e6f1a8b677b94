"""What a run makes, written beside its target and complete before anything is changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from hermes_doctor import durable, paths
from hermes_doctor.files import snapshot
from hermes_doctor.home import Home
from hermes_doctor.journal import Journal, Journals, State
from hermes_doctor.model import CannotFix
from hermes_doctor.repair.targets import Refused, Target
from hermes_doctor.vault import check_room


def stage(home: Home, id: str, targets: Sequence[Target], log: Journal, book: Journals) -> None:
    """Write everything new beside its target, and know what it will be."""
    for folder in sorted({t.path.parent for t in targets if t.change.make}):
        _make_folder(home, folder, log, book)  # a restored file's may be gone
        inside = [t for t in targets if t.change.make and t.path.parent == folder]
        check_room(folder, sum(max(t.change.room, t.change.expect.size) for t in inside))
    for target, record in zip(targets, log.paths, strict=True):
        change, old = target.change, target.change.expect
        if change.absent:
            record.after = State("absent")
        elif change.make is not None:
            record.after = _make(target, change.make, id)
        else:
            mode = old.mode if change.mode is None else change.mode
            uid, gid = change.owner or (old.uid, old.gid)
            record.after = replace(target.before, mode=mode, uid=uid, gid=gid)
    book.save(log)


def _make_folder(home: Home, folder: Path, log: Journal, book: Journals) -> None:
    """Make a folder that is missing; the journal remembers it, so that undo can remove it."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    if missing:
        log.folders += [home.name_of(one) for one in missing]
        book.save(log)
    durable.make_folder(folder)


def _make(target: Target, make: Callable[[Path], None], id: str) -> State:
    """The new file of one target, complete and on the disk."""
    new = paths.staged(target.path, id)
    try:
        make(new)
    except CannotFix as why:
        raise Refused(str(why), target.items, tried=True) from why
    if not target.change.restored:
        _dress(new, target)
    after = paths.look(new)
    if after.kind == "file":
        with contextlib.suppress(PermissionError):  # synced before it was closed to us
            durable.sync_file(new)
    return after


def _dress(new: Path, target: Target) -> None:
    """Give the new file what the old one had: owner, mode, attributes."""
    change, old = target.change, target.change.expect
    if old.kind == "absent":
        durable.set_mode(new, change.mode if change.mode is not None else durable.FILE_MODE)
        return
    now = snapshot(new)
    uid, gid = change.owner or (old.uid, old.gid)
    if (now.uid, now.gid) != (uid, gid):
        durable.set_owner(new, uid, gid)
    durable.set_extended(new, durable.extended(target.path))
    durable.set_mode(new, old.mode if change.mode is None else change.mode)
