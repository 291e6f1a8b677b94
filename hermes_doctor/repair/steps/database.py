"""Steps that replace a database by a repaired copy, or save a deleted one that is still open."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hermes_doctor.core.message import text
from hermes_doctor.core.model import CannotFix, Trouble
from hermes_doctor.core.system import disk, progress
from hermes_doctor.core.system.files import Snapshot, snapshot
from hermes_doctor.core.system.open_files import open_file_of_process
from hermes_doctor.core.system.workers import run_as_owner
from hermes_doctor.diagnosis.step import Change, Step
from hermes_doctor.repair.steps.files import replace_sentence
from hermes_doctor.sqlite.examine.soundness import require_sound
from hermes_doctor.sqlite.files import resolve_symlink, sidecars

Rebuild = Callable[[Path], Sequence[str] | None]
"""Repairs the copy of a database in place, and may return notes for the receipt."""
_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR")


@dataclass(frozen=True)
class ReplaceDatabase(Step):
    """Step that rebuilds a database on a copy and replaces the original if the copy is sound.

    `rebuild` gets the path of the copy; a copy of the write-ahead log is beside it, so opening the
    copy shows what Hermes would see. The sidecars of the original are removed: their content is in
    the new file, and SQLite would apply them to it again.
    """

    path: Path
    rebuild: Rebuild
    why: str
    expect: Snapshot
    times: int = 1
    """How many copies of the database and its log `rebuild` needs space for."""
    forecast: Callable[[], str] | None = field(default=None, compare=False)
    """Finds out on a copy what the repair would lose."""
    said: list[str] = field(default_factory=list, compare=False)

    def losses(self) -> str:
        return self.forecast() if self.forecast else ""

    def notes(self) -> Sequence[str]:
        return tuple(self.said)

    def sentence(self) -> str:
        if self.expect.kind == "absent":
            return text("{file}: {what} (the file is missing)", file=self.path.name, what=self.why)
        return replace_sentence(self.path, self.path.name, self.why)

    def changes(self) -> Sequence[Change]:
        path = resolve_symlink(self.path)
        beside = [(p, snapshot(p)) for p in sidecars(path)]
        gone = [Change(p, taken, absent=True) for p, taken in beside if taken.kind != "absent"]
        never = tuple((p, taken) for p, taken in beside if taken.kind == "absent")
        room = self.times * (self.expect.size + sum(taken.size for _, taken in beside))
        return [*gone, Change(path, self.expect, make=self._make, beside=never, room=room)]

    def _make(self, target: Path) -> None:
        source = resolve_symlink(self.path)
        progress.report(f"copying {self.path.name}")
        try:
            with disk.new_file(target) as fd:
                if self.expect.kind != "absent":
                    disk.copy(source, fd)
            for suffix in ("-wal", "-journal"):  # SQLite replays the one and rolls back the other
                log = source.with_name(source.name + suffix)
                if snapshot(log).kind == "file":
                    with disk.new_file(target.with_name(target.name + suffix)) as fd:
                        disk.copy(log, fd)
            self.said[:] = json.loads(run_as_owner(target, self._rebuilt))
        except BaseException:
            disk.remove(target)
            raise
        finally:
            for leftover in sidecars(target):
                disk.remove(leftover)

    def _rebuilt(self, target: Path) -> str:
        try:
            said = self.rebuild(target)
            require_sound(target)
        except CannotFix as why:
            if any(name in str(why) for name in _NO_ROOM):  # not a fault of the database
                raise Trouble(
                    "Not enough space to rebuild {path}. Nothing was changed. "
                    "Free some space, then try again.",
                    path=self.path.name,
                ) from why
            raise
        return json.dumps(list(said or ()))


@dataclass(frozen=True)
class SaveLost(Step):
    """Step that saves a deleted database which exists only while a process has it open.

    We open it too, and copy it when the process has ended. SQLite does not write the log into a
    deleted database, so the log is saved beside it.
    """

    path: Path
    """The path it had."""
    pid: int
    fds: tuple[tuple[str, str], ...]
    """The suffix ("" or "-wal") and the process's descriptor of each file."""
    why: str
    unless: Collection[Path] = field(default=(), compare=False)
    """Databases that another step puts back, so that no second file is needed."""
    held: dict[str, int] = field(default_factory=dict, compare=False)

    def sentence(self) -> str:
        return text(
            "{file}: save the deleted file of process {pid}: {what}",
            file=self.path.name,
            pid=self.pid,
            what=self.why,
        )

    def prepare(self) -> None:
        for suffix, fd in self.fds:
            try:
                self.held[suffix] = open_file_of_process(self.pid, fd, self.path)
            except OSError:
                raise CannotFix(self._gone()) from None

    def release(self) -> None:
        while self.held:
            os.close(self.held.popitem()[1])

    def changes(self) -> Sequence[Change]:
        if self.path in self.unless:
            return []
        suffix, fd = self.fds[0]
        try:
            number = os.stat(self.held.get(suffix) or f"/proc/{self.pid}/fd/{fd}").st_ino
        except OSError:
            raise CannotFix(self._gone()) from None
        base = self.path.with_name(f"{self.path.name}.lost-{number}")
        targets = {suffix: base.with_name(base.name + suffix) for suffix, _ in self.fds}
        return [
            Change(target, snapshot(target), make=partial(self._make, suffix))
            for suffix, target in targets.items()
        ]

    def _make(self, suffix: str, target: Path) -> None:
        with disk.new_file(target) as fd:
            offset = 0
            while chunk := os.pread(self.held[suffix], disk.CHUNK, offset):
                disk.write(fd, chunk)
                offset += len(chunk)

    def _gone(self) -> str:
        return f"{self.path.name} of process {self.pid} is closed. Run the check again."
