"""Finds out whether the environment that this tool runs from will still exist tomorrow."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hermes_doctor.core.model import Trouble

TAG = "CACHEDIR.TAG"
"""The file that marks a folder as a cache (bford.info/cachedir)."""


def refuse_cached() -> None:
    """Raise Trouble if services and hooks could not find this tool later.

    `uvx` and `pipx run` put it into a cache, which is emptied from time to time.
    """
    environment = Path(sys.prefix)
    if is_cached(environment):
        raise Trouble(
            "hermes-doctor runs from {folder}, which is a cache that may be emptied. "
            "Install it with pipx, uv tool or pip first. Nothing was changed.",
            folder=environment,
        )


def is_cached(environment: Path) -> bool:
    """Whether the environment is inside a cache. The environment's own tag does not count."""
    above = environment.parents
    return any(folder in above for folder in _caches()) or any(
        (path / TAG).is_file() for path in above
    )


def _caches() -> tuple[Path, ...]:
    """The folders where programs of this user keep their caches."""
    home = Path(os.path.expanduser("~"))
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (
        Path(named) if named.startswith("/") else home / ".cache",
        home / "Library" / "Caches",
    )
