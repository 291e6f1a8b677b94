"""Restore a database that is lost entirely from its newest sound copy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.model import CannotFix, DatabaseCopy
from hermes_doctor.sqlite.files import require_sound, sidecars
from hermes_doctor.system import disk
from hermes_doctor.system.files import snapshot


def restore_from_copy(copy: Path, candidates: Sequence[DatabaseCopy]) -> list[str]:
    """Replace `copy` by the newest sound candidate."""
    for one in candidates:
        for old in (copy, *sidecars(copy)):
            disk.remove(old)
        for suffix in ("", "-wal"):
            source = one.path.with_name(one.path.name + suffix)
            if snapshot(source).kind == "file":
                with disk.new_file(copy.with_name(copy.name + suffix)) as fd:
                    disk.copy(source, fd)
        try:
            require_sound(copy)
        except CannotFix:
            continue
        when = datetime.fromtimestamp(one.mtime_ns / 1e9, UTC)
        where = f"{one.path.parent.name}/{one.path.name}"
        return [f"It is {where} of {when:%Y-%m-%d %H:%M} UTC; what came later is not in it."]
    raise CannotFix("every older copy is damaged, too")
