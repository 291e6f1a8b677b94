"""Defines the job that is installed for a home, its times, and the interface of the managers."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hermes_doctor.core.home import PREFIX, Home, identity
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Trouble

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
MAX_DURATION = 30 * 86400.0
"""Longest duration in seconds: a watch that runs more rarely makes no sense."""
_SPAN = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,3})?) ?(s|m|min|h|d|)")


class Budget(NamedTuple):
    """How many repairs are allowed within how many seconds."""

    limit: int
    period: float


def parse_seconds(
    given: str, option: str, *, least: float = 0.0, most: float = MAX_DURATION
) -> float:
    """Parse `30`, `30s`, `10m`, `2h` or `7d` into seconds."""
    match = _SPAN.fullmatch(given.strip().lower())
    found = float(match[1]) * _UNITS[match[2]] if match else -1.0
    if not least <= found <= most:
        raise Trouble(
            "{option} needs a time from {least:g}s to {most:g}d, such as 30s, 10m or "
            "2h; got {given!r}.",
            option=option,
            least=least,
            most=most / 86400,
            given=given,
        )
    return found


def parse_budget(given: str) -> Budget:
    """Parse `3/30m`: at most three in half an hour."""
    count, slash, period = given.partition("/")
    if (
        not slash
        or not count.strip().isdecimal()
        or not count.isascii()
        or not 0 < int(count) <= 1000
    ):
        raise Trouble(
            "--budget needs a number and a time, such as 3/30m; got {given!r}.", given=given
        )
    return Budget(int(count), parse_seconds(period, "--budget", least=60.0))


def format_duration(seconds: float) -> str:
    for size, word in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {word}"
    return f"{seconds:.0f} s"


@dataclass(frozen=True)
class Job:
    """A job of one home for a service manager: the watch, or as a subclass the daily backup."""

    home: Home
    options: tuple[str, ...]
    """The options of `hermes-doctor watch`, without the home and without secrets."""
    heal: bool
    interval: float
    folder: Path
    """The folder where it stores its state."""
    vault: Path | None = None
    metrics: Path | None = None
    """The file that it replaces after each round."""
    user: str | None = None
    """The user of a system service; None for root, or for the user's own manager."""

    @property
    def name(self) -> str:
        """The name of its unit, its launchd label, or its mark in the crontab."""
        return f"{PREFIX}-{identity(self.home)}"

    @property
    def command(self) -> list[str]:
        """The command to run: this same installation, independent of the working directory."""
        words = [sys.executable, "-P", "-m", "hermes_doctor", "watch", "--home"]
        return [*words, str(self.home.path), *self.options]

    @property
    def writes(self) -> list[Path]:
        """Folders that it must be able to write to, apart from its state folder."""
        healing = [self.home.path, *([self.vault] if self.vault else [])] if self.heal else []
        return [*healing, *([self.metrics.parent] if self.metrics else [])]


class JobStatus(NamedTuple):
    """The state of a job as its manager reports it."""

    installed: bool
    running: bool
    """Running, or scheduled if the manager starts single rounds."""
    since: str = ""
    what: str = ""


class JobManager(Protocol):
    """A service manager that keeps a job running: systemd, launchd or cron."""

    schedules: bool
    """It starts single rounds, between which no process runs."""

    def describe(self) -> str:
        """What kind of job it makes, for people."""

    def place(self, job: Job) -> str:
        """Where the job's definition is written to."""

    def text(self, job: Job) -> str:
        """The job's definition."""

    def install(self, job: Job) -> bool:
        """Write the definition and start the job; return whether anything changed."""

    def remove(self, job: Job) -> bool:
        """Stop the job and delete its definition; return whether there was one."""

    def status(self, job: Job) -> JobStatus:
        """The state of the job."""

    def hints(self, job: Job) -> Sequence[str]:
        """What the operator should know or do in addition."""
