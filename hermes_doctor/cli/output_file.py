"""Writes what a command would print to a file, which a monitor may read at any moment."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import Trouble


def replace(output: Path, made: str) -> None:
    """Replace the file atomically: a reader sees the old content or the new."""
    path = output.expanduser()
    if path.exists() and not path.is_file():
        raise Trouble(text("{path} is not a file. Name a file to write to.", path=path))
    path = path.resolve()  # behind a symbolic link, the file itself is replaced
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8", errors="replace") as file:
            file.write(made)
            file.flush()
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        why = os.strerror(error.errno) if error.errno else str(error)
        raise Trouble(text("Could not write {path}: {why}.", path=path, why=why)) from None
    except BaseException:  # Ctrl-C
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
