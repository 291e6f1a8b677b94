"""Stage a run: write all new files completely beside their targets; then put them in place."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from hermes_doctor.backup.records.journal import Journal, State
from hermes_doctor.backup.vault.free_space import check_free_space
from hermes_doctor.core.home import database_of, is_database
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.file_swap import copy_metadata
from hermes_doctor.core.system.files import read, snapshot
from hermes_doctor.hermes.settings import config_yaml
from hermes_doctor.hermes.settings.config_yaml import LIMIT, parse
from hermes_doctor.repair.transaction import paths
from hermes_doctor.repair.transaction.atomic_switch import Switch, switches
from hermes_doctor.repair.transaction.targets import Refused, Target
from hermes_doctor.sqlite import joined_copy


def stage(targets: Sequence[Target], journal: Journal) -> None:
    """Write all new content beside its target, and record the state that each path will have."""
    for folder in sorted({t.path.parent for t in targets if t.change.make}):
        # Create a missing folder and record it in the journal, so undo can remove it.
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        if missing:
            journal.folders += [journal.current_home.name_of(one) for one in missing]
            journal.save()
        disk.make_folder(folder)
        inside = [t for t in targets if t.path.parent == folder]
        check_free_space(folder, room_for(inside))
    for target, record in zip(targets, journal.paths, strict=True):
        change, old = target.change, target.change.expect
        if change.absent:
            record.after = State("absent")
        elif change.make is not None:
            record.after = _make(target, change.make, journal.id)
            if record.path == config_yaml.NAME:
                new = paths.staged_path(target.path, journal.id)
                record.settings = digest_without_marks(new)
        else:
            mode = old.mode if change.mode is None else change.mode
            uid, gid = change.owner or (old.uid, old.gid)
            record.after = replace(target.before, mode=mode, uid=uid, gid=gid)
    for switch in switches(journal, journal.paths):
        if is_database(switch.path):
            _join(switch, targets)
        if paths.is_log(switch.path):  # without its database: undo must check which one is there
            switch.main.database = paths.read_state(database_of(switch.path))
    journal.save()


def room_for(targets: Sequence[Target]) -> int:
    """How many bytes are written beside these targets before anything is replaced."""
    made = [one for one in targets if one.change.make is not None]
    wanted = sum(  # of a log that grows, only the end is kept
        one.change.room if one.change.growing else max(one.change.room, one.change.expect.size)
        for one in made
    )
    for target in targets:
        if target.replaces and is_database(target.path) and database_of(target.path) == target.path:
            beside = [t for t in targets if t is not target and database_of(t.path) == target.path]
            logs = [t for t in beside if not t.path.name.endswith("-shm")]
            old = sum(t.change.expect.size for t in logs)
            wanted += target.change.expect.size + old if old else 0
            new = sum(t.change.room for t in logs if t.change.make is not None)
            wanted += target.change.room + new if new else 0
    return wanted


def _join(switch: Switch, targets: Sequence[Target]) -> None:
    """Write joined copies of the old and the new database if they consist of several files."""
    path, run = switch.path, switch.run
    found = {target.path: target for target in targets}
    names = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-journal")]
    old = joined_copy.Parts(*names)
    new = joined_copy.Parts(*(paths.staged_path(name, run) for name in names))
    if found[path].change.expect.kind == "file" and joined_copy.is_needed(old):
        place = paths.joined_old_path(path, run)
        switch.main.joined_before = _joined(old, place, switch.main.before, found[path])
    if switch.main.after.kind == "file" and joined_copy.is_needed(new):
        if switch.main.joined_before is None and _is_unchanged(switch):
            return  # only a log is added, so readers see the old or the new content
        place = paths.joined_new_path(path, run)
        switch.main.joined_after = _joined(new, place, switch.main.after, found[path])


def _is_unchanged(switch: Switch) -> bool:
    """Whether the new database has the content of the old one."""
    new, known = paths.staged_path(switch.path, switch.run), switch.main.before.sha256
    if known is None or snapshot(new).size != snapshot(switch.path).size:
        return False
    return paths.read_state(new, like=known).sha256 == known


def _joined(parts: joined_copy.Parts, place: Path, alone: State, target: Target) -> State | None:
    """Write one joined copy; return None if it equals the database alone."""
    try:
        with disk.new_file(place) as fd:
            joined_copy.write_joined(parts, fd)
    except CannotFix as why:
        raise Refused(f"{target.path.name}: {why}", target.items) from why
    copy_metadata(parts.main, place)
    state = paths.read_state(place, like=alone.sha256)
    if state.sha256 == alone.sha256:
        disk.remove(place)
        return None
    return state


def _make(target: Target, make: Callable[[Path], None], id: str) -> State:
    """Write the new file of one target and flush it to disk; return its state."""
    new = paths.staged_path(target.path, id)
    try:
        make(new)
    except CannotFix as why:
        raise Refused(str(why), target.items, tried_on_copy=True) from why
    if not target.change.restored:
        # Copy owner, mode and extended attributes of the old file to the new one.
        change, old = target.change, target.change.expect
        if old.kind == "absent":
            disk.set_mode(new, change.mode if change.mode is not None else disk.FILE_MODE)
        else:
            now = snapshot(new)
            uid, gid = change.owner or (old.uid, old.gid)
            if (now.uid, now.gid) != (uid, gid):
                disk.set_owner(new, uid, gid)
            disk.set_extended_attributes(new, disk.extended_attributes(target.path))
            disk.set_mode(new, old.mode if change.mode is None else change.mode)
    after = paths.read_state(new)
    if after.kind == "file":
        with contextlib.suppress(PermissionError):  # synced before we lost access to it
            disk.sync_file(new)
    return after


def digest_without_marks(path: Path) -> str | None:
    """A digest of the settings in a config.yaml, without the marks; None if it cannot be parsed."""
    try:
        data, _ = read(path, LIMIT)
    except (CouldNotLook, OSError):
        return None
    values, fault = parse(data)
    if values is None or fault is not None:
        return None
    hints = values.get("onboarding")
    if isinstance(hints, dict):
        rest = {key: value for key, value in hints.items() if key != "seen"}
        values = {**values, "onboarding": rest}
        if not rest:
            del values["onboarding"]
    plain = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


def commit(journal: Journal, targets: Sequence[Target]) -> None:
    """Change every path in the order of the targets; a database and its log in one switch."""
    found = {target.path: target for target in targets}
    todo = {
        path: switch
        for switch in switches(journal, journal.paths)
        for path in (switch.path, *(one.path for one in switch.sidecars))
    }
    finished: set[Path] = set()
    for target in targets:
        if not target.replaces:
            paths.set_mode_and_owner(target.change)
            continue
        switch = todo[target.path]
        if switch.path in finished:
            continue
        finished.add(switch.path)
        members = [switch.path, *(sidecar.path for sidecar in switch.sidecars)]
        taken = {path: known for member in members for path, known in found[member].change.beside}
        taken |= {path: found[path].change.expect for path in members}
        switch.forward(taken)


def databases_of(targets: Sequence[Target], run: str) -> list[Path]:
    """All files to lock: the databases that a run replaces, and their staged and joined copies."""
    databases = sorted({database_of(target.path) for target in targets if target.is_database})
    places = (paths.joined_old_path, paths.joined_new_path, paths.staged_path)
    return [*databases, *(place(database, run) for database in databases for place in places)]
