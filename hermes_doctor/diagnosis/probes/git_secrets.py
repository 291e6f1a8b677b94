"""Find files with secrets that a git repository in the home tracks, without running git."""

from __future__ import annotations

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, read

NAMES = (".env", "auth.json", "config.yaml")
_LIMIT = 32 * MEGABYTE


def find(home: Home) -> list[str]:
    """Return the secret files that the repository's index lists."""
    try:
        data, _ = read(home / ".git" / "index", _LIMIT)
    except (FileNotFoundError, CouldNotLook):
        return []
    if data[:4] != b"DIRC":
        return []
    return [name for name in NAMES if _lists(data, name.encode())]


def _lists(data: bytes, name: bytes) -> bool:
    """In the index, an entry's flags end with the length of the name, and the name with a NUL."""
    return (b"\0" + bytes([len(name)]) + name + b"\0") in data
