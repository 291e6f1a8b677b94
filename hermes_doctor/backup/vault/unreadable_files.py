"""The files that a backup lacks because they could not be read, and the reasons."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from typing import Any

from hermes_doctor.backup.vault.selection import SECRET_STORES, STORES, of_store
from hermes_doctor.core.home import is_database
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook

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


def reason_without_name(why: CouldNotLook) -> str:
    """The reason of an error that was made of an OSError, without the name of the file."""
    if isinstance(why.__cause__, OSError):
        return os_error_reason(why.__cause__)
    return str(why).rpartition(": ")[2]


def missing_from_manifest(documents: Iterable[Any]) -> tuple[MissingFile, ...]:
    """Read the missing files from a manifest; raise ValueError if they are invalid."""
    missing_files = []
    for document in documents:
        missing = MissingFile(document["path"], document["reason"], document["folder"])
        if tuple(map(type, missing)) != (str, str, bool):
            raise ValueError("not a missing path")
        missing_files.append(missing)
    return tuple(missing_files)


def list_missing(missing: Sequence[MissingFile]) -> str:
    """The first few missing files for a message, and how many more there are."""
    more = f" and {len(missing) - SHOWN} more" if missing[SHOWN:] else ""
    return ", ".join(file.text for file in missing[:SHOWN]) + more


def needed_for_update(missing: Iterable[MissingFile]) -> list[MissingFile]:
    """The missing files without which an update is not safe: databases, settings, secrets, jobs.

    The content of a folder that cannot be listed is unknown, so a folder of such files counts.
    """
    return [file for file in missing if _is_needed(file)]


def _is_needed(file: MissingFile) -> bool:
    path = file.path
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
    return file.is_folder and any(glob.startswith(f"{path}/") for glob in globs)
