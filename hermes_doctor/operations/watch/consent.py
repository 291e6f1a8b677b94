"""Decides which findings a watch may repair without asking, and counts its repairs.

A finding is due when it was found several times in a row, is at least a warning, and has a fix that
need not ask: one marked safe, or one that the operator agreed to beforehand. The watch starts or
stops the gateway only for an error. It never starts a gateway that somebody stopped, and never lets
one run inside its own service.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.home import SERVICE_VARIABLE, Home
from hermes_doctor.core.model import Finding, Report, Safety
from hermes_doctor.core.system import disk, open_files
from hermes_doctor.operations.watch.changes import CurrentFinding, is_grave
from hermes_doctor.operations.watch.clocks import MachineClock
from hermes_doctor.operations.watch.events import Key
from hermes_doctor.operations.watch.state import FailedRepair, open_lock_file
from hermes_doctor.repair.schedule.jobs import MAX_DURATION, Budget, format_duration

if TYPE_CHECKING:
    from hermes_doctor.repair.transaction.plan import PlannedItem


def is_due(
    finding: Finding,
    report: Report,
    current: CurrentFinding | None,
    min_rounds: int,
    confirmed: frozenset[str],
) -> bool:
    """Whether the finding has lasted long enough and its fix needs no confirmation."""
    if current is None or current.rounds < min_rounds or not finding.is_problem:
        return False
    if finding.fix is None:
        return False
    safe = report.fixes.get(finding.fix) is Safety.SAFE
    return safe or bool({finding.code, finding.fix} & confirmed)


def is_too_early(item: PlannedItem, current: CurrentFinding | None, min_rounds: int) -> bool:
    """Whether the plan starts or stops the gateway for an error that is too recent."""
    lasting = current is not None and current.error_rounds >= min_rounds
    return item.controls_gateway and is_grave(item.finding.severity) and not lasting


def refusal(item: PlannedItem, confirmed: frozenset[str]) -> str | None:
    """Why the plan is not applied unattended; None if it may be."""
    if item.refusal is not None or item.fix is None:
        return item.refusal or "no fix is known for it"
    if item.personal:
        return f"{item.fix.id} gives a person access, so you have to decide"
    if item.optional:
        return f"{item.fix.id} is optional, so you have to decide"
    if item.fix.gives_up_data:
        return f"{item.fix.id} loses data, so you have to decide"
    agreed = bool({item.finding.code, item.fix.id} & confirmed)
    if item.fix.safety is not Safety.SAFE and not agreed:
        return f"{item.fix.id} asks before it changes anything"
    if item.controls_gateway and not is_grave(item.finding.severity):
        return "a warning is not enough to start or stop the gateway"
    if item.asks and not item.restarts and item.fix.safety is Safety.SAFE and not agreed:
        return "the gateway was not running when the problem began, so you must agree to a start"
    from hermes_doctor.repair.gateway.base import GatewayControl
    from hermes_doctor.repair.steps.gateway import GatewayStep

    services = [step.service for step in item.steps if isinstance(step, GatewayStep)]
    for owner in [service for service in services if isinstance(service, GatewayControl)]:
        if not item.restarts and owner.was_stopped_on_purpose():
            return "the gateway was stopped on purpose; it is not started again"
        if os.environ.get(SERVICE_VARIABLE) and not owner.keeps:
            return (
                "the gateway has no service; one started from here would be part of the service "
                "of the watch, so install a service for the gateway first"
            )
    return None


MAX_TRIES = 3
"""Failed repairs of one problem before the watch leaves it to a person."""


@dataclass
class RepairBudget:
    """The repairs and failures so far.

    Times are seconds on the clock that runs as long as the machine is up.
    """

    budget: Budget
    repairs: list[float] = field(default_factory=list)
    failures: dict[Key, FailedRepair] = field(default_factory=dict)

    def since(self, now: float) -> None:
        """Limit failures read from a file to what this budget could have caused."""
        for key, (times, until) in self.failures.items():
            tried = min(max(times, 1), MAX_TRIES)
            self.failures[key] = FailedRepair(tried, min(until, now + self._wait(tried)))

    def free_at(self, now: float) -> float | None:
        """When the budget allows the next repair; None if it does now."""
        self.repairs = [at for at in self.repairs if now - self.budget.period < at <= now]
        if len(self.repairs) < self.budget.limit:
            return None
        return self.repairs[-self.budget.limit] + self.budget.period

    def spend(self, now: float) -> None:
        self.repairs.append(now)

    def fail(self, key: Key, now: float) -> FailedRepair:
        """Record a failure: wait for the budget's period, twice as long each time."""
        times = self.failures[key].times + 1 if key in self.failures else 1
        failure = FailedRepair(times, now + self._wait(times))
        self.failures[key] = failure
        return failure

    def _wait(self, times: int) -> float:
        return float(self.budget.period * 2 ** (times - 1))

    def may_try(self, key: Key, now: float) -> bool:
        failure = self.failures.get(key)
        return failure is None or (failure.times < MAX_TRIES and now >= failure.until)

    def forget(self, current: Mapping[Key, object], now: float) -> None:
        """Drop the failures of findings that are gone and whose wait is over."""
        self.failures = {
            key: failure
            for key, failure in self.failures.items()
            if key in current or now < failure.until
        }


FILE = "watch.lease"
_SIZE = 256
"""Fixed size of the record in bytes, so that it can be overwritten in place under the lock."""


class Lease:
    """Lets only one watch heal a home, even when watches use different state folders.

    It is a file in the home's vault. A watch that heals creates it before its first repair; a watch
    that only examines never does. A running watch holds the file's lock. A watch that a timer
    starts round by round is named in the file while its last repair counts towards its budget.
    """

    def __init__(self, home: Home, clock: MachineClock, memory: Path) -> None:
        import hashlib

        self.path = home.vault / FILE
        self.clock = clock
        self.owner_id = f"{os.geteuid()}-{hashlib.sha256(os.fsencode(memory)).hexdigest()[:16]}"
        self._fd: int | None = None

    @property
    def descriptor(self) -> int | None:
        """The descriptor that holds the lock; None if we do not have it."""
        return self._fd

    def adopt(self, fd: int | None) -> None:
        """Hold the lock by this open file, which another process has locked; None releases it."""
        kept = None if fd is None else os.dup(fd)
        self.close()
        if kept is not None:
            try:
                fcntl.flock(kept, fcntl.LOCK_UN)  # else the system names the other process
                fcntl.flock(kept, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(kept)
                return
        self._fd = kept

    def refusal(self, *, create: bool = False) -> str | None:
        """Why another watch has the lease; None if it is ours, or free and `create` is false."""
        if self._fd is not None and self._still():
            return None
        self.close()
        if create:
            disk.make_folder(self.path.parent)
        try:
            fd = open_lock_file(self.path, create=create)
        except (FileNotFoundError, NotADirectoryError):
            return None
        why = self._taken(fd)
        if why:
            os.close(fd)
            return why
        self._fd = fd
        return None

    def prolong(self, period: float) -> None:
        """Keep the lease for the budget's period, because a repair is about to be made."""
        if self._fd is None:
            return
        data = {
            "boot": self.clock.boot,
            "who": self.owner_id,
            "until": self.clock.boot_clock() + period,
        }
        disk.write_at(self._fd, json.dumps(data).encode().ljust(_SIZE), 0)
        disk.sync(self._fd)

    def give_up(self) -> None:
        """Delete the file if the lease is ours."""
        if self.refusal() is None and self._fd is not None:
            disk.remove(self.path)
            self.close()

    def close(self) -> None:
        """Release the lock; the record in the file stays."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _still(self) -> bool:
        """Whether the locked file is still the one at this path."""
        try:
            held, there = os.fstat(self._fd or 0), os.lstat(self.path)
        except OSError:
            return False
        return (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)

    def _taken(self, fd: int) -> str | None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = next(iter(open_files.lock_holders([self.path]).get(self.path, [])), 0)
            named = f" (process {who})" if who else ""
            return f"another watch{named} repairs this home; this one only checks"
        left = self._left(_record(fd))
        if not left:
            return None
        return f"another watch repaired this home; this one may repair in {format_duration(left)}"

    def _left(self, said: dict[str, Any]) -> float:
        """Seconds for which the record reserves the home for another watch."""
        if said.get("boot") != self.clock.boot or said.get("who") == self.owner_id:
            return 0.0
        until = said.get("until")
        if not isinstance(until, int | float) or not until - int(self.clock.boot_clock()) > 0:
            return 0.0
        left = until - int(self.clock.boot_clock())
        return float(left) if left <= MAX_DURATION else 0.0


def _record(fd: int) -> dict[str, Any]:
    try:
        said = json.loads(os.pread(fd, _SIZE, 0))
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
