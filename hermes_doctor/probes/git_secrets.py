"""Whether a git repository in the home keeps files with secrets. No git is run."""

from __future__ import annotations

from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, read

NAMES = (".env", "auth.json", "config.yaml")
_LIMIT = 32 * MEGABYTE


def find(home: Home) -> list[str]:
    """The names among them that the index of the repository lists."""
    try:
        data, _ = read(home / ".git" / "index", _LIMIT)
    except (FileNotFoundError, CouldNotLook):
        return []
    if data[:4] != b"DIRC":
        return []
    return [name for name in NAMES if _lists(data, name.encode())]


def _lists(data: bytes, name: bytes) -> bool:
    """An entry ends its flags with the length of the name, and the name with a NUL."""
    return (b"\0" + bytes([len(name)]) + name + b"\0") in data
