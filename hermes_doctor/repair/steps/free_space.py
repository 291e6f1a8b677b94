"""Machine action that frees disk space; what it removes cannot be restored."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hermes_doctor.core.home import Home
from hermes_doctor.core.message import count, text
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import disk, mounts
from hermes_doctor.core.system.files import read_tail, size, snapshot
from hermes_doctor.diagnosis.probes.large_files import RemovableFile
from hermes_doctor.diagnosis.step import MachineAction

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
        shown = [self._line(file) for file in self.files[:_MOST_LINES]]
        rest = self.files[_MOST_LINES:]
        if rest:
            more = count(len(rest), "more file")
            shown.append(f"-{more} ({size(sum(kept_file.freed for kept_file in rest))})")
        return shown

    def _line(self, file: RemovableFile) -> str:
        kept = f", keep the newest {size(file.keep)}" if file.keep else ""
        return f"-{self.home.name_of(file.path)} ({size(file.size)}){kept}"

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
