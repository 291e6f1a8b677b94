"""The files that a backup lacks because they could not be read, and the reasons."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from typing import Any

from hermes_doctor.backup.selection import SECRET_STORES, STORES, of_store
from hermes_doctor.home import is_database
from hermes_doctor.lazy import NamedTuple

DENIED = os.strerror(errno.EACCES).lower()
NEEDED = ("config", "history", "kanban", "cron", *SECRET_STORES)
"""Stores without which a restored home has no working bot."""
SHOWN = 5
"""How many missing paths a message names."""
LONGEST = 80
"""How many characters of a path a message shows."""


class MissingFile(NamedTuple):
    """A path of the home that is not in a backup, though it should be."""

    path: str
    reason: str
    is_folder: bool = False
    """A folder that could not be listed: nothing in it is in the backup."""

    @classmethod
    def folder(cls, path: str, error: OSError) -> MissingFile:
        """Make the record of a folder that could not be listed."""
        return cls(path, os_error_reason(error), is_folder=True)

    @property
    def document(self) -> dict[str, Any]:
        """The JSON object for the manifest and for machine-readable output."""
        return {"path": self.path, "reason": self.reason, "folder": self.is_folder}

    @property
    def text(self) -> str:
        """The path and the reason, for messages."""
        path = self.path + ("/" if self.is_folder else "")
        if len(path) > LONGEST:
            path = f"{path[: LONGEST // 2]}…{path[-LONGEST // 2 :]}"
        return f"{path} ({self.reason})"


def os_error_reason(error: OSError) -> str:
    """The reason of an OSError, in a few words."""
    if error.errno == errno.ENAMETOOLONG:
        return "its path is too long"
    return os.strerror(error.errno or 0).lower()


def missing_from_manifest(found: Iterable[Any]) -> tuple[MissingFile, ...]:
    """Read the missing files from a manifest; raise ValueError if they are invalid."""
    made = []
    for one in found:
        missing = MissingFile(one["path"], one["reason"], one["folder"])
        if tuple(map(type, missing)) != (str, str, bool):
            raise ValueError("not a missing path")
        made.append(missing)
    return tuple(made)


def list_missing(missing: Sequence[MissingFile]) -> str:
    """The first few missing files for a message, and how many more there are."""
    more = f" and {len(missing) - SHOWN} more" if missing[SHOWN:] else ""
    return ", ".join(one.text for one in missing[:SHOWN]) + more


def needed_for_update(missing: Iterable[MissingFile]) -> list[MissingFile]:
    """The missing files without which an update is not safe: databases, settings, secrets, jobs.

    The content of a folder that cannot be listed is unknown, so a folder of such files counts.
    """
    return [one for one in missing if _is_needed(one)]


def _is_needed(one: MissingFile) -> bool:
    path = one.path
    parts = path.split("/")
    if parts[0] == "profiles":
        if len(parts) < 3:
            return True
        path = "/".join(parts[2:])
    if is_database(path):
        return True
    if any(of_store(store, [path]) for store in NEEDED):
        return True
    globs = (glob for store in NEEDED for glob in STORES[store])
    return one.is_folder and any(glob.startswith(f"{path}/") for glob in globs)
