"""The step that stops and starts the gateway around other steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hermes_doctor.steps.base import Change, Step


class Service(Protocol):
    """Whatever owns the gateway of a home: a systemd unit, launchd, s6, compose, or nobody.

    The contract: `stop` returns only when the process is gone and `start` only when a new one
    has stayed up and works on this very home; both raise `CannotFix` within `limit` seconds
    otherwise. Neither ever acts by process name or on another home's process.
    """

    def describe(self) -> str:
        """What owns the gateway, for the plan."""

    def running(self) -> int | None:
        """The gateway's process, or None."""

    def stop(self, limit: float) -> None:
        """Drain and end the gateway."""

    def start(self, limit: float) -> None:
        """Bring a gateway up and see that it stays."""

    def restless(self) -> bool:
        """Whether its owner will start a gateway by itself although none runs now."""

    def settled(self, limit: float) -> int | None:
        """Wait for the end of a process that was asked to stop; the one that runs then."""

    def asked(self) -> int | None:
        """The process that `stop` has asked to end, whether it has or not."""

    def remember(self, file: Path) -> None:
        """Keep in a private file what a later command needs to start it as it was."""

    def notes(self) -> Sequence[str]:
        """What came to light on the way, for the receipt."""


@dataclass(frozen=True)
class GatewayStep(Step):
    """Bring the gateway up, or have it down while the files change and up again afterwards."""

    service: Service
    restart: bool
    why: str
    expected: bool = False
    """It was running when the fault occurred, or its service wants it to run: a start that only
    brings it back needs no question."""

    def sentence(self) -> str:
        verb = "restart" if self.restart else "start"
        return f"{verb} the gateway through {self.service.describe()}: {self.why}"

    def changes(self) -> Sequence[Change]:
        return []

    def notes(self) -> Sequence[str]:
        return self.service.notes()
