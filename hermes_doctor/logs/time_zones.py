"""Find the time zone of a process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, timedelta, timezone, tzinfo
from pathlib import Path

from hermes_doctor.lazy import pattern
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import open_regular

_FIXED = pattern(r"(?:[A-Za-z]{3,}|<[+\-\w]{3,}>)([+-]?)(\d{1,2})(?::(\d\d))?")
_DATABASE = Path("usr/share/zoneinfo")
_LOCAL = Path("etc/localtime")
_UTC_BYTES, _UTC_END = 127, b"\nUTC0\n"
"""The file of a zone that has always been UTC is no longer than that, and ends so."""


def of_process(pid: int, environment: Mapping[str, str] | None) -> tzinfo | None:
    """Return the zone of a running process, from its variables and its root file system.

    None if it is unclear; then it is derived from the files that the process writes.
    """
    if environment is None:
        return None
    root = Path(f"/proc/{pid}/root")
    named = environment.get("TZ")
    return _file(root / _LOCAL) if named is None else of_name(named, root)


def of_name(name: str, root: Path = Path("/")) -> tzinfo | None:
    """Return the zone of a TZ value: `Asia/Shanghai`, `:/etc/localtime`, `CST-8`; else None."""
    name = name.removeprefix(":")
    if not name:
        return UTC
    if name.startswith("/"):
        return _file(root / name.lstrip("/"))
    if ".." not in name.split("/") and (found := _file(root / _DATABASE / name)):
        return found
    if match := _FIXED.fullmatch(name):
        away = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        if away < timedelta(hours=24):  # POSIX counts positive offsets to the west
            return timezone(away if match[1] == "-" else -away)
    return _known(name)


def _file(path: Path) -> tzinfo | None:
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            if file.read(_UTC_BYTES + 1).endswith(_UTC_END):
                return UTC  # most servers; loading zoneinfo takes 6 ms of a check
            from zoneinfo import ZoneInfo

            file.seek(0)
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, CouldNotLook, EOFError):
        return None


def _known(name: str) -> tzinfo | None:
    """Look the zone up in Python's own tables, if the machine has none."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return None
