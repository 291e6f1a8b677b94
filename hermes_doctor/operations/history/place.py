"""Finds the file of the history, and a home in it: after it was moved, or replaced by another.

A folder is identified by its inode and the time of its creation. Both stay when it is renamed, and
a new folder that gets the inode of a deleted one has another time. Where the file system does not
know that time, the device and the inode must do; the device may change with each boot.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_doctor.core import home as homes
from hermes_doctor.core.home import PREFIX, Home, state_folder
from hermes_doctor.core.model import Trouble

FILE = "history.db"


def own_file() -> Path:
    return state_folder() / FILE


def files_of(home: Home) -> list[Path]:
    """The existing files that may contain the history of a home: this user's, the service's."""
    places = [own_file(), *_files_of_services(home)]
    return [path for path in dict.fromkeys(places) if os.path.lexists(path)]


def _files_of_services(home: Home) -> list[Path]:
    """The file of the home's system service, if any is installed: its name takes 5 ms to build."""
    try:
        installed = any(name.startswith(PREFIX) for name in os.listdir(homes.SYSTEM_STATE))
    except OSError:
        return []
    return [homes.system_state_folder(home) / FILE] if installed else []


def refuse_inside(path: Path, home: Home) -> None:
    """Raise Trouble if the file would be inside the Hermes home, where this tool only looks."""
    if Path(os.path.realpath(path.parent)).is_relative_to(home.path):
        raise Trouble(
            "The history is not kept inside the Hermes home ({folder}). Set XDG_STATE_HOME to "
            "another folder.",
            folder=path.parent,
        )


_AT_FDCWD, _BORN = -100, 0x800
_BUFFER, _WHEN = 256, 80
"""Size of the kernel's `struct statx`, and where the time of creation is in it."""


def identity_of(folder: Path) -> str:
    """The identity of a folder; empty if it cannot be read."""
    try:
        st = os.stat(folder)
    except OSError:
        return ""
    born = _born(folder, st)
    return f"b{st.st_ino}:{born}" if born else f"d{st.st_ino}:{st.st_dev}"


def stored_path(path: Path) -> str:
    """A path as the history keeps it; bytes that are not UTF-8 are written as in `\\xff`."""
    return os.fsencode(path).decode(errors="backslashreplace")


def identity_of_text(path: object) -> str:
    """The identity of a folder whose path was stored."""
    try:
        return identity_of(Path(str(path)))
    except ValueError:  # a NUL byte, in a damaged history
        return ""


def boot_id() -> str:
    """The id of this boot; empty if the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read(64).strip()
    except OSError:
        return ""


def find_row(
    rows: Sequence[Mapping[str, Any]], path: str, identity: str, boot: str
) -> Mapping[str, Any] | None:
    """The row of a home among those of the history; None if the history does not know it."""
    latest = sorted(rows, key=lambda row: str(row["last_seen"]), reverse=True)
    for row in latest:
        if row["identity"] == identity:
            return row
    for row in latest:
        if row["path"] == path:
            # Whether two different identities of one path may be one folder: its device was
            # renumbered.
            before = str(row["identity"])
            rebooted = row["boot"] != boot
            same_inode = before[1:].partition(":")[0] == identity[1:].partition(":")[0]
            by_device = before[:1] == "d" or identity[:1] == "d"
            return row if same_inode and by_device and rebooted else None
    return None


def _born(folder: Path, st: os.stat_result) -> str:
    """When the folder was created, in nanoseconds; empty if the system does not know it."""
    when = getattr(st, "st_birthtime_ns", None) or getattr(st, "st_birthtime", None)
    if when is not None or sys.platform != "linux":
        return str(when or "")
    import ctypes

    ask = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    if ask is None:
        return ""
    buffer = ctypes.create_string_buffer(_BUFFER)
    if ask(_AT_FDCWD, os.fsencode(folder), 0, _BORN, buffer):
        return ""
    (known,) = struct.unpack_from("=I", buffer.raw)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer.raw, _WHEN)
    return f"{seconds}{nanoseconds:09}" if known & _BORN else ""
