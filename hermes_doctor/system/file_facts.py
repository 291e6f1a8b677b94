"""Remember what was found in files that hardly ever change, so that a watch reads them only once.

A file counts as unchanged while it is the same one, with the same size and times. A time that is
almost present proves nothing, because the next change may get the same one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

RECENT = 2.0
"""Seconds within which two changes of a file may have the same time."""
MOST = 100
Identity = tuple[int, ...]
_known: dict[str, tuple[Identity, Any]] | None = None
"""By kind and path: which file it was, and what was found; None while nothing is remembered."""


def remember() -> None:
    """Remember from now on."""
    global _known
    _known = {} if _known is None else _known


def forget() -> None:
    """Remember nothing any more."""
    global _known
    _known = None


def known() -> dict[str, tuple[Identity, Any]]:
    """What is remembered, for another process."""
    return {} if _known is None else dict(_known)


def adopt(found: Mapping[str, tuple[Identity, Any]]) -> None:
    """Remember what another process remembers."""
    global _known
    if _known is not None:
        _known = dict([*found.items()][-MOST:])


def ask(kind: str, fd: int, place: object, read: Callable[[], Any]) -> Any:
    """Return what `read` finds in an open file, a plain value; do not read it again if known."""
    if _known is None:
        return read()
    name, st = f"{kind} {place}", os.fstat(fd)
    identity = (st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns)
    seen, value = _known.get(name, (None, None))
    if seen == identity:
        return value
    value = read()
    _known.pop(name, None)
    if max(st.st_mtime, st.st_ctime) < time.time() - RECENT:
        _known[name] = (identity, value)
    return value
