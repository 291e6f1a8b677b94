"""Read what the last `hermes update` left: its receipt, its marker, its log and changed files.

Hermes writes the receipt since 0.20.5. It writes the marker `fleet_restart_pending` (0.20.6 and
later) when it has changed the code, and removes it when it has restarted the gateways. It writes no
line at the end of its log, so an end is known by the lines that come last in each of its ways
through. A run that is not known to have ended may still be under way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import (
    MEGABYTE,
    names_in,
    read,
    read_json,
    read_tail,
    snapshot,
)
from hermes_doctor.hermes.processes.runtime_files import parse_commit, parse_time, parse_word

RECEIPT = "logs/update_receipts/latest.json"
MARKER = "fleet_restart_pending"
_WORDS = 80
_LONGEST = 500


class UpdateReceipt(NamedTuple):
    """The result of the last run of `hermes update`."""

    outcome: str
    """success, partial, failed, refused or running."""
    began: datetime
    at: datetime
    """When it ended."""
    before: str | None
    after: str | None
    """The commits of the checkout before and after it."""
    incomplete: bool = False
    """It did not restart every gateway."""
    restarted: bool = False
    """It restarted services or started gateways itself."""
    killed: frozenset[int] = frozenset()
    """The gateways that it stopped."""
    failed_units: tuple[str, ...] = ()
    failed_step: str = ""
    stop_reason: str = ""
    """The error that ended it, or how its command ended; may contain anything."""
    restart_error: str = ""
    """The error that ended the restart of the gateways; may contain anything."""

    @property
    def interrupted(self) -> bool:
        """Whether somebody interrupted it, as with Ctrl-C."""
        return self.stop_reason.startswith("KeyboardInterrupt")

    @property
    def unfinished(self) -> bool:
        """Whether it ended before everything was done."""
        return self.incomplete or self.outcome in ("failed", "partial", "running")

    @property
    def pulled(self) -> bool:
        """Whether it changed the code."""
        return self.outcome == "partial" or self.before != self.after


class PendingRestart(NamedTuple):
    """The marker of an update that has changed the code and not yet restarted the gateways."""

    at: datetime
    pid: int | None


def read_receipt(home: Home) -> UpdateReceipt | None:
    """Return the newest receipt; None if there is none. Raises CouldNotLook."""
    try:
        json = read_json(home / RECEIPT, MEGABYTE)
    except FileNotFoundError:
        return None
    except ValueError:
        raise CouldNotLook("{file}: is not JSON", file=RECEIPT) from None
    if not isinstance(json, dict):
        return None
    began, ended = (parse_time(json.get(name)) for name in ("started_at", "finished_at"))
    outcome, at = parse_word(json.get("outcome")), ended or began
    if at is None or outcome is None:
        return None
    restart = _mapping(json.get("gateway_restart"))
    bad = [
        one.get("name") for one in map(_mapping, _list(json.get("steps"))) if one.get("ok") is False
    ]
    return UpdateReceipt(
        outcome,
        began or at,
        at,
        parse_commit(_mapping(json.get("pre_update")).get("sha")),
        parse_commit(_mapping(json.get("post_update")).get("sha")),
        restart.get("incomplete") is True,
        any(restart.get(name) for name in ("relaunched_profiles", "restarted_services")),
        frozenset(pid for pid in _list(restart.get("killed_pids")) if isinstance(pid, int)),
        tuple(str(one)[:_WORDS] for one in _list(restart.get("failed_units"))[:3]),
        str(bad[-1])[:_WORDS] if bad else "",
        _error(json.get("stop_reason")),
        _error(restart.get("phase_error")),
    )


def read_pending(home: Home) -> PendingRestart | None:
    """Return the marker of a pending restart; None if there is none. Raises CouldNotLook."""
    try:
        data, taken = read(home / MARKER, 4096)
    except FileNotFoundError:
        return None
    lines = data.decode("ascii", "replace").splitlines()
    pid = dict(line.split("=", 1) for line in lines if "=" in line).get("pid", "")
    number = int(pid) if pid.isdecimal() and len(pid) < 10 else None
    return PendingRestart(datetime.fromtimestamp(taken.mtime_ns / 1e9, UTC), number)


def _error(value: object) -> str:
    """Return the text of an error without what an error without words leaves behind."""
    return value[:_LONGEST].strip().removesuffix(":") if isinstance(value, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value[:200] if isinstance(value, list) else []


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


def read_update_run(home: Home) -> UpdateRun | None:
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
    from hermes_doctor.hermes.processes import gateway_processes

    path = home / LOG
    return tuple(gateway_processes.processes_with_open([path], ".log", writing=True).get(path, ()))


_UPDATED = pattern(rb"Update complete|Code updated|Successfully installed hermes-agent")


class FileChange(NamedTuple):
    """The time of a change, and the file that shows it."""

    path: Path
    at: datetime


def code_change(environment: Path) -> FileChange | None:
    """Return when the Hermes of an environment was installed, or its checkout was updated."""
    file_changes = [
        FileChange(path, at) for path in _witnesses(environment) if (at := modified_at(path))
    ]
    return max(file_changes, key=lambda one: one.at, default=None)


def last_update(home: Home) -> FileChange | None:
    """Return the last update that `hermes update` finished, by its log."""
    path = home / LOG
    try:
        data, taken = read_tail(path, 65536)
    except (FileNotFoundError, CouldNotLook):
        return None
    if not _UPDATED.search(data):
        return None
    return FileChange(path, datetime.fromtimestamp(taken.mtime_ns / 1e9, UTC))


def modified_at(path: Path) -> datetime | None:
    """Return when a file was last written; None if it does not exist."""
    try:
        taken = snapshot(path.resolve())
    except (CouldNotLook, OSError, RuntimeError):
        return None
    if taken.kind != "file":
        return None
    return datetime.fromtimestamp(taken.mtime_ns / 1e9, UTC)


def _witnesses(where: Path) -> Iterator[Path]:
    for lib in ("lib", "Lib"):
        for folder in (where / lib, *(where / lib / name for name in names_in(where / lib))):
            for name in names_in(folder / "site-packages"):
                if name.startswith("hermes_agent-") and name.endswith(".dist-info"):
                    yield folder / "site-packages" / name / "RECORD"
    for checkout in (where, where.parent):
        if (checkout / "hermes_cli").is_dir():
            yield checkout / ".git" / "logs" / "HEAD"
