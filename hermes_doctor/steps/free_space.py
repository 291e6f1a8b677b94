"""Machine action that frees disk space; what it removes cannot be restored."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hermes_doctor.home import Home
from hermes_doctor.message import count, text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes.removable_files import RemovableFile
from hermes_doctor.steps.base import MachineAction
from hermes_doctor.system import disk, space
from hermes_doctor.system.files import read_tail, size, snapshot

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
        freed = size(sum(one.freed for one in self.files))
        files = count(len(self.files), "file")
        return text("delete what is not needed: {files}, {freed}", files=files, freed=freed)

    def lines(self) -> Sequence[str]:
        shown = [self._line(one) for one in self.files[:_MOST_LINES]]
        rest = self.files[_MOST_LINES:]
        if rest:
            more = count(len(rest), "more file")
            shown.append(f"-{more} ({size(sum(one.freed for one in rest))})")
        return shown

    def _line(self, one: RemovableFile) -> str:
        kept = f", keep the newest {size(one.keep)}" if one.keep else ""
        return f"-{self.home.name_of(one.path)} ({size(one.size)}){kept}"

    def losses(self) -> str:
        return "What is deleted cannot be restored: there is no room for a backup of it."

    def notes(self) -> Sequence[str]:
        free = size(space.of(self.home.path).free)
        said = [text("{free} of the disk are free now.", free=free)]
        if stuck := [one for one in self.files if _is_as_large(one)]:
            said.append(
                text(
                    "{files} could not be deleted, such as {name}.",
                    files=count(len(stuck), "file"),
                    name=self.home.name_of(stuck[0].path),
                )
            )
        return said

    def do(self) -> None:
        """Free every file that can be freed: the others are no reason to stop."""
        for one in self.files:
            if snapshot(one.path).kind == "file":
                with contextlib.suppress(OSError, CouldNotLook):
                    if one.keep:
                        disk.keep_end(one.path, read_tail(one.path, one.keep)[0])
                    else:
                        disk.remove(one.path)


def _is_as_large(one: RemovableFile) -> bool:
    """Whether a file is still there with all its bytes; a log may have grown again since."""
    now = snapshot(one.path)
    return now.kind == "file" and now.size >= one.size
