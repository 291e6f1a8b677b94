"""The step that stops and starts the gateway around other steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hermes_doctor.core.message import text
from hermes_doctor.diagnosis.step import Change, Step


class GatewayControlProtocol(Protocol):
    """Gateway control: stops and starts the gateway of a home through its supervisor, if any.

    The contract: `stop` returns only when the process is gone, and `start` only when a new one
    has stayed up and works on this home; otherwise both raise `CannotFix` within `limit` seconds.
    Neither ever acts by process name or on the process of another home.
    """

    looped: bool | None
    """Whether the gateway was in a crash loop when it was stopped or started."""

    def describe(self) -> str:
        """Say how the gateway is started, such as `in the background`; for the plan."""

    def running(self) -> int | None:
        """The gateway's process id, or None."""

    def stop(self, limit: float) -> None:
        """Drain and stop the gateway."""

    def start(self, limit: float) -> None:
        """Start a gateway and check that it stays up."""

    def restless(self) -> bool:
        """Whether the supervisor will start a gateway by itself although none runs now."""

    def settled(self, limit: float) -> int | None:
        """Wait for a process that was asked to stop; return the one that runs then, or None."""

    def asked(self) -> int | None:
        """The process that `stop` has asked to stop, even if it has not stopped yet."""

    def remember(self, file: Path) -> None:
        """Save in a private file what a later command needs to start the gateway as it was."""

    def unconnected(self) -> Mapping[str, str]:
        """The platforms that did not connect after the last start, with their reasons."""

    def notes(self) -> Sequence[str]:
        """Notes for the receipt."""


@dataclass(frozen=True)
class GatewayStep(Step):
    """Step that starts the gateway, or stops it before the files change and restarts it after."""

    service: GatewayControlProtocol
    restart: bool
    why: str
    expected: bool = False
    """It was running when the fault occurred, or its service wants it to run, so starting it
    needs no confirmation."""
    platforms: tuple[str, ...] = ()
    """The platforms that must be connected afterwards; otherwise the fix has not helped yet."""
    stays_down: bool = False
    """It is stopped and not started again; `restart` is set, too."""

    def sentence(self) -> str:
        if self.stays_down:
            return text("stop the gateway: {reason}", reason=self.why)
        way = self.service.describe()
        find_command = getattr(self.service, "command", None)  # a plugin's own service has none
        if command := find_command(restart=self.restart) if find_command else "":
            way = text("{way} (`{command}`)", way=way, command=command)
        if self.restart:
            return text("restart the gateway {way}: {reason}", way=way, reason=self.why)
        return text("start the gateway {way}: {reason}", way=way, reason=self.why)

    def changes(self) -> Sequence[Change]:
        return []

    def notes(self) -> Sequence[str]:
        return self.service.notes()
