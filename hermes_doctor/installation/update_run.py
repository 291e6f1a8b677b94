"""Read from logs/update.log how the last run of `hermes update` ended, if it did.

Hermes writes no line at the end of a run, so an end is known by the lines that come last in each
of its ways through. A run that is not known to have ended may still be under way.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.system.files import read_tail

LOG = "logs/update.log"
_TAIL = 256 * 1024
_HEADER = pattern(rb"^=== hermes update started (\S{10,40}) ===\r?$", re.MULTILINE)
_END = pattern(
    r"\s{0,8}([✓⚠] Update (complete|partially complete|incomplete)|✓ Already up to date|"
    r"✓ Dependencies repaired|⚠ Venv still unhealthy)|✗ (?!Update pulled new code, but restoring)"
)
"""Lines after which nothing of importance follows; one kind of failure does not end a run."""
_CHANGES = pattern(r"→ (Pulling updates|Falling back to ZIP|Running: )")
"""From such a line on, a run changes the code or the packages."""
_QUESTION = pattern(r".*(\[[Yy]/[Nn]\]:?|\?)")


class UpdateRun(NamedTuple):
    """The last run of `hermes update`, as far as its log shows."""

    began: str
    """When it began, as it wrote it: a local time without a zone."""
    at: datetime
    """When it wrote its last line."""
    last: str
    """Its last line; may contain anything."""
    changed: bool
    """Whether it began to change the code or the packages."""
    ended: bool
    pids: tuple[int, ...] = ()
    """The processes that still have its log open, if it has not ended."""

    @property
    def asks(self) -> bool:
        """Whether its last line is a question."""
        return _QUESTION.fullmatch(self.last) is not None


def read_run(home: Home) -> UpdateRun | None:
    """Return the last run; None if the log has none. Raises CouldNotLook."""
    path = home / LOG
    try:
        data, taken = read_tail(path, _TAIL)
    except FileNotFoundError:
        return None
    headers = list(_HEADER.finditer(data))
    if not headers:
        return None
    said = data[headers[-1].end() :].decode("utf-8", "replace")
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    run = UpdateRun(
        headers[-1][1].decode("ascii", "replace"),
        datetime.fromtimestamp(taken.mtime_ns / 1e9, UTC),
        lines[-1].strip() if lines else "",
        any(_CHANGES.match(line) for line in lines),
        any(_END.match(line) for line in lines),
    )
    return run if run.ended else run._replace(pids=_writers(home))


def _writers(home: Home) -> tuple[int, ...]:
    from hermes_doctor.processes import gateway_processes

    path = home / LOG
    return tuple(gateway_processes.processes_with_open([path], ".log", writing=True).get(path, ()))
