"""The step that stops and starts the gateway around other steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes_doctor.core.message import text
from hermes_doctor.diagnosis.step import Change, Step

if TYPE_CHECKING:
    from hermes_doctor.repair.gateway.base import GatewayControl


@dataclass(frozen=True)
class GatewayStep(Step):
    """Step that starts the gateway, or stops it before the files change and restarts it after."""

    service: GatewayControl
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
