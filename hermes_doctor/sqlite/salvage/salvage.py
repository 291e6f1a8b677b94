"""Save every readable row of a damaged database into a new one with its release's schema.

The damaged file is parsed page by page by our own code and never opened by SQLite. The new one is
written only by SQLite, with bound values, and is checked before it is used.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.errors import name_of
from hermes_doctor.sqlite.salvage.account import SalvageResult
from hermes_doctor.sqlite.salvage.others import OlderFile


def salvage(
    source: Path,
    target: Path,
    blueprint: Blueprint,
    *,
    older_copies: Sequence[OlderFile] = (),
    progress: Callable[[int, int], None] | None = None,
) -> SalvageResult:
    """Save the rows of the damaged database `source` into `target`, which must not exist.

    `source` is a private copy with its write-ahead log or journal; it is only read. If it raises
    CouldNotLook or CannotFix, there is no `target`.
    """
    from hermes_doctor.sqlite.salvage.run import SalvageRun

    if os.path.lexists(target):
        raise CannotFix(text("{target} exists already", target=target.name))
    try:
        return SalvageRun(source, target, blueprint, older_copies, progress).run()
    except (sqlite3.Error, OSError, MemoryError) as error:
        name = name_of(error)
        raise CannotFix(
            text(
                "the salvage of {source} could not be finished ({name})",
                source=source.name,
                name=name,
            )
        ) from error
    except (CouldNotLook, CannotFix):
        raise
