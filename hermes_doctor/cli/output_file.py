"""Writes what a command would print to a file, which a monitor may read at any moment."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path
from secrets import token_hex

from hermes_doctor.message import text
from hermes_doctor.model import Trouble
from hermes_doctor.outgoing import clean_lines

STDOUT = Path("-")
"""`--output -` means: print."""
_NEW_FILE_MODE = 0o666
WORLD_READABLE = 0o644
"""The mode of a file that another user's service reads; the umask does not change it."""


def find(given: Path) -> Path:
    """Return the file that is meant; raise Trouble if no file can be written there."""
    try:
        # Behind a symbolic link, the file itself is replaced.
        path = Path(os.path.realpath(given.expanduser()))
        usable = path.is_file() or not path.exists()
        unresolved = any(part.is_symlink() for part in (path, *path.parents))
    except (OSError, RuntimeError, ValueError) as error:  # no such user, or a null character
        raise Trouble(text("Cannot write to {path}: {why}.", path=given, why=error)) from None
    if unresolved:
        raise Trouble(text("Cannot write to {path}: its links form a loop.", path=given))
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

    An existing file keeps its mode, and its owner and group as far as we may give them. A new file
    gets the `mode`, or what the umask leaves.
    """
    temporary = None
    try:
        old = _stat(path)
        private = old is not None or mode is not None
        name = str(path.with_name(f".{token_hex(8)}.tmp"))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        fd = os.open(name, flags, 0o600 if private else _NEW_FILE_MODE)
        temporary = name
        with open(fd, "wb") as file:
            file.write(clean_lines(made).encode(errors="replace"))
            file.flush()
            if old is not None:
                _keep_owner_and_mode(fd, old)
            elif mode is not None:
                os.fchmod(fd, mode)
            os.fsync(fd)
        os.replace(temporary, path)
    except OSError as error:
        _remove(temporary)
        why = os.strerror(error.errno) if error.errno else str(error)
        raise Trouble(text("Could not write {path}: {why}.", path=path, why=why)) from None
    except BaseException:  # Ctrl-C
        _remove(temporary)
        raise


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _keep_owner_and_mode(fd: int, old: os.stat_result) -> None:
    for owner in (old.st_uid, -1):
        try:
            os.fchown(fd, owner, old.st_gid)
            break
        except PermissionError:
            continue
    os.fchmod(fd, stat.S_IMODE(old.st_mode))


def _remove(temporary: str | None) -> None:
    if temporary is not None:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def show(made: str) -> None:
    """Print in UTF-8, which monitors expect, even if the terminal has another encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.write(clean_lines(made).encode(errors="replace"))
    sys.stdout.buffer.flush()
