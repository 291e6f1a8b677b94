"""Try repair methods one after the other, each on a new copy of the damaged database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite.files import require_sound, sidecars
from hermes_doctor.system import disk, progress
from hermes_doctor.system.files import snapshot

RepairMethod = tuple[str, Callable[[Path], Sequence[str] | None]]
"""The name of a repair method, and the function that repairs a copy."""


def try_methods(copy: Path, rungs: Sequence[RepairMethod]) -> list[str]:
    """Replace `copy` by the result of the first method that is sound; return what was done."""
    failures = []
    for name, repair in rungs:
        attempt = copy.with_name(copy.name + ".attempt")
        try:
            progress.report(name)
            _duplicate(copy, attempt)
            said = list(repair(attempt) or ())
            require_sound(attempt)
            _take(attempt, copy)
        except CannotFix as why:
            failures.append(f"{name}: {why}")
            continue
        finally:
            for left in (attempt, *sidecars(attempt)):
                disk.remove(left)
        tried = [f"Not enough: {failure}." for failure in failures]
        return [*tried, *said]
    raise CannotFix(text("No repair worked ({failures})", failures="; ".join(failures)))


def _duplicate(source: Path, target: Path) -> None:
    """Copy the damaged database again, with its write-ahead log and journal."""
    for suffix in ("", "-wal", "-journal"):
        here = source.with_name(source.name + suffix)
        if snapshot(here).kind == "file":
            with disk.new_file(target.with_name(target.name + suffix)) as fd:
                disk.copy(here, fd)


def _take(attempt: Path, copy: Path) -> None:
    for stale in sidecars(copy):
        disk.remove(stale)
    disk.rename(attempt, copy)
