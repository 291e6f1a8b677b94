"""What `watch install` hands to a manager of services: one job for each home."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.schedule.identity import identity

PREFIX = "hermes-doctor-watch"


@dataclass(frozen=True)
class Job:
    """The watch of one home as a service."""

    home: Home
    options: tuple[str, ...]
    """What follows `hermes-doctor watch`, without the home and without any secret."""
    heal: bool
    interval: float
    folder: Path
    """Where it keeps what it knows."""
    vault: Path | None = None
    user: str | None = None
    """As whom a service of the system runs; None for root, or for the user's own manager."""

    @property
    def name(self) -> str:
        """The name of its unit, its label or its mark."""
        return f"{PREFIX}-{identity(self.home)}"

    @property
    def command(self) -> list[str]:
        """What is run: this very installation, whatever folder it is started in."""
        words = [sys.executable, "-P", "-m", "hermes_doctor", "watch", "--home"]
        return [*words, str(self.home.path), *self.options]

    @property
    def writes(self) -> list[Path]:
        """Where it must be able to write, beside its own folder."""
        return [self.home.path, *([self.vault] if self.vault else [])] if self.heal else []


class Told(NamedTuple):
    """How a manager says that the job stands."""

    installed: bool
    running: bool
    """Or scheduled, where there are only single rounds."""
    since: str = ""
    what: str = ""


class Manager(Protocol):
    """Whoever keeps a job running."""

    schedules: bool
    """It starts single rounds, between which nothing runs."""

    def describe(self) -> str:
        """What it is, for people."""

    def place(self, job: Job) -> str:
        """Where the job is written to."""

    def text(self, job: Job) -> str:
        """What is written there."""

    def install(self, job: Job) -> bool:
        """Write it and let it run; whether anything had to be changed."""

    def remove(self, job: Job) -> bool:
        """End it and take it away; whether there was anything."""

    def status(self, job: Job) -> Told:
        """How it stands."""

    def hints(self, job: Job) -> Sequence[str]:
        """What the operator should know or do besides."""
