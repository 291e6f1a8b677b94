"""Find when files were last changed: the code of Hermes, its settings, its update log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import list_folder, read_tail, snapshot

_UPDATED = pattern(rb"Update complete|Code updated|Successfully installed hermes-agent")
_LOGS = "logs/update.log"


class FileChange(NamedTuple):
    """The time of a change, and the file that shows it."""

    path: Path
    at: datetime


def code_change(environment: Path) -> FileChange | None:
    """Return when the Hermes of an environment was installed, or its checkout was updated."""
    found = [FileChange(path, at) for path in _witnesses(environment) if (at := modified_at(path))]
    return max(found, key=lambda one: one.at, default=None)


def last_update(home: Home) -> FileChange | None:
    """Return the last update that `hermes update` finished, by its log."""
    path = home / _LOGS
    try:
        data, taken = read_tail(path, 65536)
    except (FileNotFoundError, CouldNotLook):
        return None
    if not _UPDATED.search(data):
        return None
    return FileChange(path, datetime.fromtimestamp(taken.mtime_ns / 1e9, UTC))


def modified_at(path: Path) -> datetime | None:
    """Return when a file was last written; None if it does not exist."""
    try:
        taken = snapshot(path.resolve())
    except (CouldNotLook, OSError, RuntimeError):
        return None
    if taken.kind != "file":
        return None
    return datetime.fromtimestamp(taken.mtime_ns / 1e9, UTC)


def _witnesses(where: Path) -> Iterator[Path]:
    for lib in ("lib", "Lib"):
        for folder in (where / lib, *(where / lib / name for name in _names(where / lib))):
            for name in _names(folder / "site-packages"):
                if name.startswith("hermes_agent-") and name.endswith(".dist-info"):
                    yield folder / "site-packages" / name / "RECORD"
    for checkout in (where, where.parent):
        if (checkout / "hermes_cli").is_dir():
            yield checkout / ".git" / "logs" / "HEAD"


def _names(folder: Path) -> list[str]:
    try:
        return list_folder(folder)
    except CouldNotLook:
        return []
