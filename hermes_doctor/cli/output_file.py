"""Writes what a command would print to a file, which a monitor may read at any moment."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import Trouble

STDOUT = Path("-")
"""The name for the output of the command itself."""
_USUAL = 0o666
READABLE = 0o644
"""The mode of a file that the service of another user reads, whatever our umask is."""


def find(given: Path) -> Path:
    """Return the file that is meant; raise Trouble if no file can be written there."""
    try:
        path = given.expanduser().resolve()  # behind a symbolic link, the file itself is replaced
        usable = path.is_file() or not path.exists()
    except (OSError, RuntimeError) as error:  # a loop of links, or a user who does not exist
        raise Trouble(text("Cannot write to {path}: {why}.", path=given, why=error)) from None
    if not usable:
        raise Trouble(text("{path} is not a file. Name a file to write to.", path=path))
    if not path.parent.is_dir():
        raise Trouble(
            text("Cannot write to {path}: its folder does not exist. Create it first.", path=path)
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise Trouble(text("Cannot write to {path}: you may not write to its folder.", path=path))
    return path


def replace(path: Path, made: str, mode: int | None = None) -> None:
    """Replace the file atomically: a reader sees the old content or the new.

    The mode and the group of an existing file stay. A new file gets the `mode`, or the usual one.
    """
    temporary = None
    try:
        fd, temporary = tempfile.mkstemp(".tmp", ".", path.parent)
        with open(fd, "wb") as file:
            file.write(made.encode(errors="replace"))
            file.flush()
            _take_over(fd, path, mode)
            os.fsync(fd)
        os.replace(temporary, path)
    except OSError as error:
        _remove(temporary)
        why = os.strerror(error.errno) if error.errno else str(error)
        raise Trouble(text("Could not write {path}: {why}.", path=path, why=why)) from None
    except BaseException:  # Ctrl-C
        _remove(temporary)
        raise


def _take_over(fd: int, path: Path, mode: int | None) -> None:
    """Give the new file the group and the mode of the old one."""
    try:
        old = os.stat(path)
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        os.fchmod(fd, _USUAL & ~umask if mode is None else mode)
        return
    with contextlib.suppress(PermissionError):
        os.fchown(fd, -1, old.st_gid)
    os.fchmod(fd, stat.S_IMODE(old.st_mode))


def _remove(temporary: str | None) -> None:
    if temporary is not None:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def show(made: str) -> None:
    """Print it in UTF-8, which each format needs whatever the terminal has."""
    sys.stdout.flush()
    sys.stdout.buffer.write(made.encode(errors="replace"))
    sys.stdout.buffer.flush()
