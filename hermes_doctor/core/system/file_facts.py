"""Remember what was found in files that hardly ever change, so that a watch reads them only once.

A file counts as unchanged while it is the same one, with the same size and times. A time that is
almost present proves nothing, because the next change may get the same one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from hermes_doctor.core.system.remembered_files import RECENT as RECENT, RememberedFiles

_facts: RememberedFiles[Any] = RememberedFiles(100)
"""By kind and path: which file it was, and what was found."""
remember, forget, news, adopt = _facts.remember, _facts.forget, _facts.news, _facts.adopt


def ask(kind: str, fd: int, place: object, read: Callable[[], Any]) -> Any:
    """Return what `read` finds in an open file, a plain value; do not read it again if known."""
    if _facts.entries is None:
        return read()
    name, st = f"{kind} {place}", os.fstat(fd)
    identity = (st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns)
    seen, value = _facts.entries.get(name, (None, None))
    if seen == identity:
        return value
    value = read()
    _facts.entries.pop(name, None)
    if max(st.st_mtime, st.st_ctime) < time.time() - RECENT:
        _facts.entries[name] = (identity, value)
    return value
