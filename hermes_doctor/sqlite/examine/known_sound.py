"""Remembers which databases were sound, so that a watch need not read an unchanged one each round.

A database counts as unchanged while its file and its logs are the same files, with the same sizes
and times. A time that is almost present proves nothing, because the next change may get the same
one. Some minutes later everything is read again, as a disk may damage a file without changing it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.system.remembered_files import RECENT as RECENT, Identity, RememberedFiles

if TYPE_CHECKING:
    from hermes_doctor.sqlite.examine.damage import Damage

VALID = 600.0
"""Seconds until a sound database is read again."""
_FILES = ("", "-wal", "-journal")
_sound: RememberedFiles[float] = RememberedFiles(1000)
"""By state and path: what was sound, and when it was read."""
remember, forget, news, adopt = _sound.remember, _sound.forget, _sound.news, _sound.adopt


def ask(
    path: Path, file_state: str, read: Callable[[], tuple[Damage | None, bool]]
) -> tuple[Damage | None, bool]:
    """Return what `read` finds damaged, and whether it read all; skip it if that is known."""
    if _sound.entries is None:
        return read()
    name = f"{file_state} {path}"  # opened in another way, the same files are not the same
    identity, newest = _identity(path)
    seen, at = _sound.entries.get(name, (None, 0.0))
    if identity is not None and seen == identity and 0 <= time.monotonic() - at < VALID:
        return None, True
    damage, finished = read()
    _sound.entries.pop(name, None)
    if damage is not None or not finished or identity is None or identity != _identity(path)[0]:
        return damage, finished
    if newest < time.time() - RECENT:
        _sound.entries[name] = (identity, time.monotonic())
    return damage, finished


def _identity(path: Path) -> tuple[Identity | None, float]:
    """Identify a database and its logs (None if they cannot be read); also the last change."""
    parts: list[int] = []
    newest = 0.0
    for suffix in _FILES:
        try:
            st = os.stat(f"{path}{suffix}")
        except FileNotFoundError:
            parts.append(0)
            continue
        except OSError:
            return None, newest
        newest = max(newest, st.st_mtime, st.st_ctime)
        parts += (st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns)
    return tuple(parts), newest
