"""The line to the parent that stayed root, in a process that works as the owner of a home.

`separate_process` makes such a process. This module is small, because every command imports it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any


class NeedsRoot(BaseException):
    """Ends the work of a separate process: it needs a vault that only root may read.

    Nothing may catch it on the way, so it is not an `Exception`.
    """


Ask = Callable[[str, list[Any], Sequence[int]], Any]
_ask: Ask | None = None


def use(ask: Ask) -> None:
    """Let root be asked in this way from now on."""
    global _ask
    _ask = ask


def is_separate() -> bool:
    """Whether this process is separate, so that root's part has to be asked for."""
    return _ask is not None


def operator() -> int:
    """Return the uid of whoever called the command: root, although this process is not root."""
    return 0 if is_separate() else os.geteuid()


_mounts = ""


def keep_mounts(namespace: str) -> None:
    """Note the namespace of root's mounts, which this process is about to leave."""
    global _mounts
    _mounts = namespace


def own_namespace(kind: str) -> str:
    """Return the namespace of this process; of mounts, that of root, who has added some."""
    return (kind == "mnt" and _mounts) or os.readlink(f"/proc/self/ns/{kind}")


def ask_root(action: str, *given: Any, descriptors: Sequence[int] = ()) -> Any:
    """Let the parent do one of its actions; only a separate process may call this."""
    assert _ask is not None
    return _ask(action, list(given), descriptors)
