"""Stores the mutes: `mutes.json` in the folder for all users, and in the one of this user."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, Severity, Trouble
from hermes_doctor.preferences import places
from hermes_doctor.preferences.mutes import Mute
from hermes_doctor.system import disk

SCHEMA = "hermes-doctor/mutes/1"
FILE_MODE, FOLDER_MODE = 0o644, 0o755
"""For all users: their watches must be able to read it."""


def load() -> list[Mute]:
    """All mutes; raise Trouble if a file is damaged or another user could have written it."""
    return [
        mute for folder in dict.fromkeys(places.folders()) for mute in read(folder / places.MUTES)
    ]


def read(path: Path) -> list[Mute]:
    """The mutes of one file."""
    data = places.read_trusted(path)
    if data is None:
        return []
    import json

    try:
        said: Any = json.loads(data)
        if said["schema"] != SCHEMA:
            raise ValueError
        return [_parse(one) for one in said["mutes"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Trouble(
            text("{path} is damaged. Delete it and mute again what you need.", path=path)
        ) from None


def add(mute: Mute) -> Path:
    """Store a mute, in place of one with the same name; return the file."""
    path = places.writing_folder() / places.MUTES
    _change(path, lambda before: [*(one for one in before if not _same(one, mute)), mute])
    return path


def remove(gone: Sequence[Mute]) -> list[Mute]:
    """Remove these mutes from all files; return those that were there."""
    removed: list[Mute] = []
    for folder in dict.fromkeys(places.folders()):
        path = folder / places.MUTES
        if not any(one in gone for one in read(path)):
            continue

        def keep(before: list[Mute]) -> list[Mute]:
            removed.extend(one for one in before if one in gone)
            return [one for one in before if one not in gone]

        _change(path, keep)
    return removed


def _same(one: Mute, other: Mute) -> bool:
    return (one.home, one.name) == (other.home, other.name)


def _change(path: Path, edit: Callable[[list[Mute]], list[Mute]]) -> None:
    """Replace the contents of a file, while no other process does."""
    try:
        _make_folder(path.parent)
        with _locked(path.parent):
            _write(path, edit(read(path)))
    except OSError as error:
        raise Trouble(
            text(
                "Could not write {path}: {reason}.{hint}",
                path=path,
                reason=(error.strerror or type(error).__name__).lower(),
                hint=" Run this with sudo." if isinstance(error, PermissionError) else "",
            )
        ) from None


def make_system_folder() -> None:
    """Create the folder for all users, so that a service without access to /etc may write there."""
    try:
        _make_folder(places.SYSTEM)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CannotFix(
            text("Could not create {path}: {reason}.", path=places.SYSTEM, reason=reason.lower())
        ) from None


def _make_folder(folder: Path) -> None:
    new = not folder.exists()
    disk.make_folder(folder)
    if new and folder == places.SYSTEM:
        disk.set_mode(folder, FOLDER_MODE)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _write(path: Path, mutes: Sequence[Mute]) -> None:
    if not mutes:
        disk.remove(path)
        return
    import json

    data = {"schema": SCHEMA, "mutes": [document(one) for one in mutes]}
    new = path.with_name(f"{places.MUTES}.new")
    disk.remove(new)  # left by a process that was killed
    with disk.new_file(new) as fd:
        disk.write(fd, json.dumps(data, indent=2).encode() + b"\n")
    if path.parent == places.SYSTEM:
        disk.set_mode(new, FILE_MODE)
    disk.rename(new, path)
    disk.sync_folder(path.parent)


def document(mute: Mute) -> dict[str, Any]:
    """A mute as JSON data."""
    severities = mute.severities
    return {
        "home": mute.home,
        "code": mute.code,
        "subject": mute.subject,
        "severities": None
        if severities is None
        else {subject: severity.value for subject, severity in severities.items()},
        "worst": mute.worst.value,
        "checks": list(mute.checks),
        "at": mute.at.isoformat(timespec="seconds"),
        "until": mute.until.isoformat(timespec="seconds") if mute.until else None,
        "sticky": mute.sticky,
        "because": mute.because,
    }


def _parse(data: Any) -> Mute:
    severities, until = data["severities"], data["until"]
    return Mute(
        str(data["home"]),
        str(data["code"]),
        None if data["subject"] is None else str(data["subject"]),
        None
        if severities is None
        else {str(subject): Severity(one) for subject, one in severities.items()},
        Severity(data["worst"]),
        tuple(str(one) for one in data["checks"]),
        _moment(data["at"]),
        None if until is None else _moment(until),
        bool(data["sticky"]),
        str(data["because"]),
    )


def _moment(given: Any) -> datetime:
    found = datetime.fromisoformat(given)
    if found.tzinfo is None:
        raise ValueError("a time without its zone")
    return found
