"""The state that a watch keeps between processes, and its form as JSON.

Single rounds started by a timer continue where the last one ended. A watch that is restarted
neither repeats its notices nor gets a new budget.
"""

from __future__ import annotations

import errno
import math
import os
import stat
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Severity
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.privileges import as_owner_of
from hermes_doctor.operations.history.when_to_record import SingleRounds
from hermes_doctor.operations.watch import changes
from hermes_doctor.operations.watch.changes import CurrentFinding, Flapping
from hermes_doctor.operations.watch.clocks import ClockReading
from hermes_doctor.operations.watch.events import Key

MOST = 1000
"""Entries to keep of each kind."""
MAX_DEEDS = 20
VOLATILE_FIELDS = ("round_at", "clocks", "spacing")
"""Fields that change in every round even if nothing happened."""
_TEXTS = ("boot", "place", "began", "round_at", "away")
_TIMES = ("spacing", "interval")
HEALING_FIELDS = ("repairs", "repaired", "failures", "deeds", "heals", "busy_since", "said")
"""Fields that only a watch that heals writes."""


class FailedRepair(NamedTuple):
    """How often a repair failed, and until when it is not tried again."""

    times: int
    until: float


class WatchState:
    """The state of one watch."""

    def __init__(self) -> None:
        self.boot = ""
        self.place = ""
        """The identity of the home's folder, to notice when another one takes its place."""
        self.pid = 0
        self.began = ""
        self.round_at = ""
        self.clocks: ClockReading | None = None
        """All clocks at the last round; they are valid only within the same boot."""
        self.spacing = 0.0
        """Seconds between the last two rounds."""
        self.interval = 0.0
        self.heals = False
        self.away = ""
        """Why the home could not be examined in the last round."""
        self.standing: dict[Key, CurrentFinding] = {}
        self.unanswered: dict[str, int] = {}
        self.repairs: list[float] = []
        """The times of the latest repairs, which count against the budget."""
        self.repaired = 0
        """How many repairs were tried, ever."""
        self.failures: dict[Key, FailedRepair] = {}
        self.busy_since: float | None = None
        """Since when a repair has been waiting for an answer that is being written."""
        self.said: dict[Key, str] = {}
        """By finding: the reason last reported for not repairing it."""
        self.notified: dict[Key, tuple[str, float]] = {}
        """By topic: the state last sent as a notice, and when."""
        self.flaps: dict[Key, Flapping] = {}
        """The last states of problems that changed lately."""
        self.recorded: SingleRounds | None = None
        """What single rounds have written into the history."""
        self.ended_mutes: list[str] = []
        """The ids of mutes that have ended but could not be removed."""
        self.deeds: list[dict[str, Any]] = []
        """The latest repairs, for `watch status`."""

    def forget_times(self) -> None:
        """Drop times of another boot, whose clocks do not compare."""
        self.repairs, self.failures, self.busy_since, self.clocks = [], {}, None, None
        self.notified = {key: (state, 0.0) for key, (state, _) in self.notified.items()}


def document(memory: WatchState) -> dict[str, Any]:
    return {
        **{name: getattr(memory, name) for name in (*_TEXTS, *_TIMES, "pid", "heals")},
        "clocks": list(memory.clocks) if memory.clocks else None,
        "standing": [
            [
                *key,
                one.severity.value,
                one.title,
                one.check,
                one.rounds,
                one.error_rounds,
                one.muted,
            ]
            for key, one in list(memory.standing.items())[:MOST]
        ],
        "unanswered": dict(list(memory.unanswered.items())[:MOST]),
        "repairs": memory.repairs[-MOST:],
        "repaired": memory.repaired,
        "failures": [[*key, *one] for key, one in list(memory.failures.items())[:MOST]],
        "busy_since": memory.busy_since,
        "said": [[*key, text] for key, text in list(memory.said.items())[:MOST]],
        "notified": [[*key, *one] for key, one in list(memory.notified.items())[-MOST:]],
        "flaps": [[*key, *one] for key, one in list(memory.flaps.items())[-MOST:]],
        "recorded": list(memory.recorded) if memory.recorded else None,
        "ended_mutes": memory.ended_mutes,
        "deeds": memory.deeds[-MAX_DEEDS:],
    }


def parse(data: Any) -> WatchState:
    """Parse a stored state; bad data raises ValueError, KeyError, TypeError or AttributeError."""
    watch_state = WatchState()
    for name in _TEXTS:
        setattr(watch_state, name, str(data[name]))
    for name in _TIMES:
        setattr(watch_state, name, _number(data[name]))
    watch_state.pid = int(data["pid"])
    watch_state.clocks = _reading(data["clocks"])
    watch_state.heals = bool(data["heals"])
    watch_state.standing = {
        (str(code), str(subject)): CurrentFinding(
            Severity(severity), str(title), str(check), _count(seen), _count(grave), True in muted
        )
        for code, subject, severity, title, check, seen, grave, *muted in data["standing"]
    }
    watch_state.unanswered = {str(id): _count(count) for id, count in data["unanswered"].items()}
    watch_state.repairs = [_number(at) for at in data["repairs"]]
    watch_state.repaired = _count(data.get("repaired", 0))
    watch_state.failures = {
        (str(code), str(subject)): FailedRepair(_count(times), _number(until))
        for code, subject, times, until in data["failures"]
    }
    watch_state.busy_since = None if data["busy_since"] is None else _number(data["busy_since"])
    watch_state.said = {
        (str(code), str(subject)): str(text) for code, subject, text in data["said"]
    }
    watch_state.notified = {
        (str(code), str(subject)): (str(state), _number(at))
        for code, subject, state, at in data["notified"]
    }
    watch_state.flaps = {
        (str(code), str(subject)): _flapping(str(states), bool(flapping), *more)
        for code, subject, states, flapping, *more in data.get("flaps", [])
        if changes.is_valid(str(states))
    }
    if data.get("recorded") is not None:
        digest, written, seen = data["recorded"]
        watch_state.recorded = SingleRounds(str(digest), _count(written), _count(seen))
    watch_state.ended_mutes = [str(one) for one in data.get("ended_mutes", [])]
    watch_state.deeds = [dict(deed) for deed in data["deeds"]]
    return watch_state


def _flapping(states: str, flapping: bool, *more: Any) -> Flapping:
    if not more:  # stored by an older watch
        return changes.restored(states, flapping)
    title, check, muted, reported = more
    return changes.restored(states, flapping, str(title), str(check), muted is True, str(reported))


def _number(value: Any) -> float:
    """A time or duration; reject NaN and Infinity, which Python's JSON accepts."""
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError("an invalid time")
    return number


def _count(value: Any) -> int:
    if int(value) < 0:
        raise ValueError("an invalid number")
    return int(value)


def _reading(value: Any) -> ClockReading | None:
    if value is None:
        return None
    steady, awake, wall = value
    return ClockReading(_number(steady), None if awake is None else _number(awake), _number(wall))


def open_lock_file(path: Path, *, create: bool) -> int:
    """Open a lock file; it must be a regular file, never a FIFO or a symbolic link.

    Root opens it with the privileges of the folder's owner and rejects files of other users.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    with as_owner_of(path) as here:
        fd = os.open(here, flags | (os.O_CREAT if create else 0), disk.FILE_MODE)
        owner = os.geteuid()
    st = os.fstat(fd)
    if not stat.S_ISREG(st.st_mode) or (os.geteuid() == 0 and st.st_uid not in (0, owner)):
        os.close(fd)
        raise OSError(errno.EPERM, "the lock file was replaced", str(path))
    return fd
