"""Find the line number of an entry in its file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hermes_doctor.logs import rotated
from hermes_doctor.logs.block_reader import BLOCK, CompressedLog, FileIdentity, OpenLog
from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, list_folder

FAR = 64 * MEGABYTE
"""Lines are counted up to this offset; beyond it the byte offset is shown."""


class SourceFiles:
    """The files that entries were read from, by the names they had then."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[Path, FileIdentity]] = {}
        self._counted: dict[str, tuple[int, int]] = {}

    def file_recorder(self, paths: Mapping[str, Path]) -> rotated.NoteFile:
        """Return a callback that records which file had one of these names when it was read."""
        files = self._files

        def note(name: str, place: FileIdentity) -> None:
            files[name] = paths[name], place

        return note

    def where(self, entry: LogEntry) -> str:
        """`logs/gateway.log:8812`, `logs/gateway.log@7340021234`, or `journal`."""
        if entry.source not in self._files:
            return entry.source
        number = None if entry.offset > FAR else self._line(entry.source, entry.offset)
        return f"{entry.source}@{entry.offset}" if number is None else f"{entry.source}:{number}"

    def _line(self, name: str, offset: int) -> int | None:
        """Return the number of the line that starts there, counting from the last known one."""
        start, number = self._counted.get(name, (0, 1))
        if start > offset:
            start, number = 0, 1
        file = self._open(name)
        if file is None:
            return None
        try:
            while start < offset:
                data = file.read(start, min(BLOCK, offset - start))
                if not data:
                    return None  # it was truncated in the meantime
                number += data.count(b"\n")
                start += len(data)
        finally:
            file.close()
        self._counted[name] = start, number
        return number

    def _open(self, name: str) -> OpenLog | None:
        """Open the file that was read, even if it was rotated since."""
        path, place = self._files[name]
        try:
            names = rotated.names(path.name, list_folder(path.parent))
        except CouldNotLook:
            names = [path.name]
        for one in names:
            try:
                file = (CompressedLog if one.endswith(".gz") else OpenLog)(
                    path.with_name(one), name
                )
            except (FileNotFoundError, CouldNotLook):
                continue
            if file.identity == place:
                return file
            file.close()
        return None
