"""Read what `hermes update` leaves in a home: its receipt (0.20.5 and later) and its marker.

Hermes writes the marker `fleet_restart_pending` (0.20.6 and later) when it has changed the code,
and removes it when it has restarted the gateways.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.processes.runtime_files import parse_commit, parse_time, parse_word
from hermes_doctor.system.files import MEGABYTE, read, read_json

RECEIPT = "logs/update_receipts/latest.json"
MARKER = "fleet_restart_pending"
_WORDS = 80
_LONGEST = 500


class Receipt(NamedTuple):
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


def read_receipt(home: Home) -> Receipt | None:
    """Return the newest receipt; None if there is none. Raises CouldNotLook."""
    try:
        said = read_json(home / RECEIPT, MEGABYTE)
    except FileNotFoundError:
        return None
    except ValueError:
        raise CouldNotLook(text("{file}: is not JSON", file=RECEIPT)) from None
    if not isinstance(said, dict):
        return None
    began, ended = (parse_time(said.get(name)) for name in ("started_at", "finished_at"))
    outcome, at = parse_word(said.get("outcome")), ended or began
    if at is None or outcome is None:
        return None
    restart = _mapping(said.get("gateway_restart"))
    bad = [
        one.get("name") for one in map(_mapping, _list(said.get("steps"))) if one.get("ok") is False
    ]
    return Receipt(
        outcome,
        began or at,
        at,
        parse_commit(_mapping(said.get("pre_update")).get("sha")),
        parse_commit(_mapping(said.get("post_update")).get("sha")),
        restart.get("incomplete") is True,
        any(restart.get(name) for name in ("relaunched_profiles", "restarted_services")),
        frozenset(pid for pid in _list(restart.get("killed_pids")) if isinstance(pid, int)),
        tuple(str(one)[:_WORDS] for one in _list(restart.get("failed_units"))[:3]),
        str(bad[-1])[:_WORDS] if bad else "",
        _error(said.get("stop_reason")),
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
