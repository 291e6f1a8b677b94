"""The progress bar of a copy that is large enough to wait for."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

LARGE = 64 * 1024 * 1024


def bar(
    label: str, total: int, *, quiet: bool
) -> contextlib.AbstractContextManager[Callable[[int], None] | None]:
    """A bar on a terminal; nothing for small work, in a pipe or beside JSON."""
    if quiet or total < LARGE or not sys.stderr.isatty():
        return contextlib.nullcontext(None)
    from hermes_doctor.render.progress import copying

    return copying(label, total)
