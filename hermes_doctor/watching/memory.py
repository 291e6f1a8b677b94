"""What a watch knows from one process to the next; it lies outside of the Hermes home.

Rounds that a timer starts one by one go on where the last one ended, and a watch that is started
anew neither repeats its notices nor gets a fresh budget.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes_doctor import durable
from hermes_doctor.files import MEGABYTE, read, user_home
from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook, Severity
from hermes_doctor.watching.changes import Standing
from hermes_doctor.watching.events import Key
from hermes_doctor.watching.ledger import Failure

SCHEMA = "hermes-doctor/watch/1"
MOST = 1000
"""Entries of a kind that are kept."""
MOST_DEEDS = 20


@dataclass
class Memory:
    """All of it."""

    boot: str = ""
    pid: int = 0
    began: str = ""
    round_at: str = ""
    lasting: float = 0.0
    """When the last round was, on the clock that lasts as long as the machine runs."""
    interval: float = 0.0
    heals: bool = False
    standing: dict[Key, Standing] = field(default_factory=dict)
    unanswered: dict[str, int] = field(default_factory=dict)
    repairs: list[float] = field(default_factory=list)
    failures: dict[Key, Failure] = field(default_factory=dict)
    notified: dict[Key, tuple[str, float]] = field(default_factory=dict)
    """By topic: what was last notified, and when."""
    deeds: list[dict[str, Any]] = field(default_factory=list)
    """The latest repairs, for `watch status`."""


def folder() -> Path:
    """Where the watches of this user keep what they know."""
    base = os.environ.get("XDG_STATE_HOME", "")
    state = Path(base) if os.path.isabs(base) else user_home() / ".local" / "state"
    return state / "hermes-doctor"


def identity(home: Home) -> str:
    """A short name for a home, for files and units: its own and some letters of its place."""
    import hashlib
    import re

    name = home.profile or home.path.name.lstrip(".")
    place = hashlib.sha256(os.fsencode(home.path)).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')[:24] or 'home'}-{place}"


class Store:
    """The file of one home's watch."""

    def __init__(self, home: Home, place: Path | None = None) -> None:
        self.folder = place or folder()
        self.file = self.folder / f"watch-{identity(home)}.json"
        self.lock = self.folder / f"watch-{identity(home)}.lock"
        self.webhook = self.folder / f"watch-{identity(home)}.webhook"
        self.home = home
        self._saved = b""
        self._fd: int | None = None

    def load(self, boot: str) -> Memory | None:
        """What was known last; None when that is nothing. Times of another boot mean nothing."""
        try:
            said: Any = json.loads(read(self.file, MEGABYTE)[0])
            known = _memory(said)
        except (OSError, CouldNotLook, ValueError, KeyError, TypeError, RecursionError):
            return None
        if said.get("schema") != SCHEMA or said.get("home") != str(self.home.path):
            return None
        if known.boot != boot:
            known.repairs, known.failures = [], {}
            known.notified = {key: (state, 0.0) for key, (state, _) in known.notified.items()}
        return known

    def save(self, memory: Memory) -> None:
        """Write it down where it says something new; else only the time of the file moves on."""
        if self.others():
            return
        data = _document(memory) | {"schema": SCHEMA, "home": str(self.home.path)}
        if not memory.heals:
            data |= self._healer(memory.boot)
        plain = json.dumps(data | {"round_at": "", "lasting": 0}).encode()
        if plain == self._saved and os.path.exists(self.file):
            durable.set_time(self.file, time.time_ns())
            return
        durable.make_folder(self.folder)
        durable.save(self.file, json.dumps(data).encode())
        self._saved = plain

    def _healer(self, boot: str) -> dict[str, Any]:
        """What a watch that heals wrote down, which one that only looks leaves as it is."""
        try:
            told = json.loads(self.file.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(told, dict) or told.get("boot") != boot:
            return {}
        kept = ("repairs", "failures", "deeds", "heals")
        return {name: told[name] for name in kept if name in told}

    def remove(self) -> list[Path]:
        """Take away all that the watch of this home left; what there was."""
        there = [one for one in (self.file, self.lock, self.webhook) if os.path.lexists(one)]
        for path in there:
            durable.remove(path)
        with contextlib.suppress(OSError):
            durable.remove_folder(self.folder)
        return there

    def take(self) -> bool:
        """Whether no other watch heals this home; it is ours as long as this process lives."""
        if self._fd is not None:
            return True
        durable.make_folder(self.folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self.lock, flags, durable.FILE_MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def others(self) -> bool:
        """Whether a watch of another process heals this home: what is written down is its own."""
        if self._fd is not None:
            return False
        try:
            fd = os.open(self.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def holder(self) -> int | None:
        """The process that heals this home; 0 when it is one that we cannot name."""
        from hermes_doctor.probes import locks

        pids = locks.holders([self.lock]).get(self.lock, [])
        return next(iter(pids), None)


def _document(memory: Memory) -> dict[str, Any]:
    return {
        "boot": memory.boot,
        "pid": memory.pid,
        "began": memory.began,
        "round_at": memory.round_at,
        "lasting": memory.lasting,
        "interval": memory.interval,
        "heals": memory.heals,
        "standing": [
            [*key, one.severity.value, one.title, one.check, one.seen]
            for key, one in list(memory.standing.items())[:MOST]
        ],
        "unanswered": dict(list(memory.unanswered.items())[:MOST]),
        "repairs": memory.repairs[-MOST:],
        "failures": [[*key, *one] for key, one in list(memory.failures.items())[:MOST]],
        "notified": [[*key, *one] for key, one in list(memory.notified.items())[-MOST:]],
        "deeds": memory.deeds[-MOST_DEEDS:],
    }


def _memory(said: Any) -> Memory:
    """The same back; whoever wrote something else into the file gets a KeyError or the like."""
    return Memory(
        boot=str(said["boot"]),
        pid=int(said["pid"]),
        began=str(said["began"]),
        round_at=str(said["round_at"]),
        lasting=float(said["lasting"]),
        interval=float(said["interval"]),
        heals=bool(said["heals"]),
        standing={
            (str(code), str(subject)): Standing(
                Severity(severity), str(title), str(check), int(seen)
            )
            for code, subject, severity, title, check, seen in said["standing"]
        },
        unanswered={str(id): int(count) for id, count in said["unanswered"].items()},
        repairs=[float(at) for at in said["repairs"]],
        failures={
            (str(code), str(subject)): Failure(int(times), float(until))
            for code, subject, times, until in said["failures"]
        },
        notified={
            (str(code), str(subject)): (str(state), float(at))
            for code, subject, state, at in said["notified"]
        },
        deeds=[dict(deed) for deed in said["deeds"]],
    )
