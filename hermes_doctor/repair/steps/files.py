"""Steps that change files: replace, move aside, remove, set mode or owner; free disk space."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from hermes_doctor.core.home import Home
from hermes_doctor.core.message import count, text
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import disk, mounts
from hermes_doctor.core.system.files import Snapshot, read_tail, size, snapshot
from hermes_doctor.diagnosis.probes.large_files import RemovableFile
from hermes_doctor.diagnosis.step import Change, MachineAction, Maker, Step
from hermes_doctor.sqlite.files import resolve_symlink


def replace_sentence(path: Path, place: str, what: str) -> str:
    """What a step does with a file; other hard links of it keep the old content."""
    try:
        more = os.stat(path).st_nlink - 1
    except OSError:
        more = 0
    if more > 0:
        return text(
            "{place}: {what} (the old content stays in {links} of it)",
            place=place,
            what=what,
            links=count(more, "other hard link"),
        )
    return text("{place}: {what}", place=place, what=what)


def changed_span(old: Sequence[object], new: Sequence[object]) -> tuple[int, int, int]:
    """Where two texts (or lists of lines) differ: the start, the end in the old and in the new."""

    def shared(one: Sequence[object], two: Sequence[object]) -> int:
        pairs = enumerate(zip(one, two, strict=False))
        return next((n for n, (a, b) in pairs if a != b), min(len(one), len(two)))

    start = shared(old, new)
    tail = shared(old[start:][::-1], new[start:][::-1])
    return start, len(old) - tail, len(new) - tail


def _writer(data: bytes) -> Maker:
    def make(path: Path) -> None:
        with disk.new_file(path) as fd:
            disk.write(fd, data)

    return make


@dataclass(frozen=True)
class ReplaceFile(Step):
    """Step that replaces the content of a file.

    `expect` is the snapshot of the file when its old content was read.
    """

    path: Path
    data: bytes
    why: str
    expect: Snapshot
    before: bytes = b""
    entries: tuple[str, ...] = ()
    """What happens to each entry of the file, if that says more than a diff of its lines."""

    def lines(self) -> Sequence[str]:
        return self.entries

    def sentence(self) -> str:
        if self.expect.kind == "absent":
            return text("{file}: {what} (new file)", file=self.path.name, what=self.why)
        return replace_sentence(self.path, self.path.name, self.why)

    def texts(self) -> tuple[str, bytes, bytes] | None:
        return self.path.name, self.before, self.data

    def changes(self) -> Sequence[Change]:
        return [Change(resolve_symlink(self.path), self.expect, make=_writer(self.data))]


@dataclass(frozen=True)
class ReplaceSpan(Step):
    """Step that replaces only the bytes from `start` to `end` of a file."""

    path: Path
    before: bytes
    start: int
    end: int
    new: bytes
    why: str
    expect: Snapshot

    @property
    def after(self) -> bytes:
        return self.before[: self.start] + self.new + self.before[self.end :]

    def sentence(self) -> str:
        line = self.before.count(b"\n", 0, self.start) + 1
        return replace_sentence(self.path, f"{self.path.name} line {line}", self.why)

    def texts(self) -> tuple[str, bytes, bytes] | None:
        return self.path.name, self.before, self.after

    def changes(self) -> Sequence[Change]:
        return [Change(resolve_symlink(self.path), self.expect, make=_writer(self.after))]


@dataclass(frozen=True)
class MoveAside(Step):
    """Step that removes a file from the home and keeps it in the vault."""

    path: Path
    why: str

    def sentence(self) -> str:
        return text(
            "{file}: move it to the vault, because {reason}", file=self.path.name, reason=self.why
        )

    def changes(self) -> Sequence[Change]:
        taken = snapshot(self.path)
        if taken.kind not in ("file", "symlink"):
            raise CannotFix(
                "{name} is a {kind}, not a file. Move it away yourself.",
                name=self.path.name,
                kind=taken.kind,
            )
        return [Change(self.path, taken, absent=True)]


@dataclass(frozen=True)
class MoveLog(MoveAside):
    """Step that moves a log file into the vault although the gateway may still write to it."""

    keep: int = 0
    """Bytes at the end of the file that stay in place, from the start of a line."""

    def sentence(self) -> str:
        if not self.keep:
            return super().sentence()
        return text(
            "{file}: keep the newest {size}, move the rest to the vault, because {reason}",
            file=self.path.name,
            size=size(self.keep),
            reason=self.why,
        )

    def changes(self) -> Sequence[Change]:
        [change] = super().changes()
        if self.keep and change.expect.kind == "file":
            change = replace(change, absent=False, make=self._write_end, room=self.keep)
        return [replace(change, growing=True)]

    def _write_end(self, new: Path) -> None:
        with disk.new_file(new) as fd:
            disk.write(fd, read_tail(self.path, self.keep)[0])


@dataclass(frozen=True)
class Remove(MoveAside):
    """Step that removes a file which Hermes creates again; a copy stays in the vault."""

    lost: str = ""
    """What is lost with it, in one sentence."""

    def losses(self) -> str:
        return self.lost

    def notes(self) -> Sequence[str]:
        return (self.lost,) if self.lost else ()

    def sentence(self) -> str:
        return text(
            "{file}: remove it, because {reason}; Hermes creates it again",
            file=self.path.name,
            reason=self.why,
        )


@dataclass(frozen=True)
class SetMode(Step):
    """Step that sets the permissions of a file."""

    path: Path
    mode: int
    why: str
    expect: Snapshot

    def sentence(self) -> str:
        return text(
            "{file}: {what} ({old:04o} → {new:04o})",
            file=self.path.name,
            what=self.why,
            old=self.expect.mode,
            new=self.mode,
        )

    def changes(self) -> Sequence[Change]:
        return [Change(resolve_symlink(self.path), self.expect, mode=self.mode)]


@dataclass(frozen=True)
class SetOwner(Step):
    """Step that changes the owner of a file."""

    path: Path
    uid: int
    gid: int
    why: str
    expect: Snapshot

    def sentence(self) -> str:
        return text(
            "{file}: {what} (uid {old} → {new})",
            file=self.path.name,
            what=self.why,
            old=self.expect.uid,
            new=self.uid,
        )

    def changes(self) -> Sequence[Change]:
        owner = (self.uid, self.gid)
        return [Change(resolve_symlink(self.path), self.expect, owner=owner, from_root=True)]


_MOST_LINES = 6


@dataclass(frozen=True)
class FreeSpace(MachineAction):
    """Shorten logs and delete old request dumps and cached files.

    Nothing is backed up: on a full disk there is no room for a copy. Nothing is written but the
    end of each log, over its start, so the gateway can go on writing to it.
    """

    home: Home
    files: tuple[RemovableFile, ...]
    kind: ClassVar[str] = "delete-files"
    final: ClassVar[bool] = True

    def sentence(self) -> str:
        freed = size(sum(file.freed for file in self.files))
        files = count(len(self.files), "file")
        return text("delete what is not needed: {files}, {freed}", files=files, freed=freed)

    def lines(self) -> Sequence[str]:
        shown = []
        for file in self.files[:_MOST_LINES]:
            kept = f", keep the newest {size(file.keep)}" if file.keep else ""
            shown.append(f"-{self.home.name_of(file.path)} ({size(file.size)}){kept}")
        rest = self.files[_MOST_LINES:]
        if rest:
            more = count(len(rest), "more file")
            shown.append(f"-{more} ({size(sum(kept_file.freed for kept_file in rest))})")
        return shown

    def losses(self) -> str:
        return "What is deleted cannot be restored: there is no room for a backup of it."

    def notes(self) -> Sequence[str]:
        free = size(mounts.free_space(self.home.path).free)
        messages = [text("{free} of the disk are free now.", free=free)]
        if stuck := [file for file in self.files if _is_as_large(file)]:
            messages.append(
                text(
                    "{files} could not be deleted, such as {name}.",
                    files=count(len(stuck), "file"),
                    name=self.home.name_of(stuck[0].path),
                )
            )
        return messages

    def do(self) -> None:
        """Free every file that can be freed: the others are no reason to stop."""
        for file in self.files:
            if snapshot(file.path).kind == "file":
                with contextlib.suppress(OSError, CouldNotLook):
                    if file.keep:
                        disk.keep_end(file.path, read_tail(file.path, file.keep)[0])
                    else:
                        disk.remove(file.path)


def _is_as_large(file: RemovableFile) -> bool:
    """Whether a file is still there with all its bytes; a log may have grown again since."""
    now = snapshot(file.path)
    return now.kind == "file" and now.size >= file.size
