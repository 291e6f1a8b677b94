"""The part of `Probes` about the logs of the gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.diagnosis.probes.scope import View

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from hermes_doctor.core.model import Gateway
    from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
    from hermes_doctor.diagnosis.probes.last_log_lines import GatewayLogLine
    from hermes_doctor.diagnosis.probes.leaks import Leak
    from hermes_doctor.diagnosis.probes.machine_view import MachineView
    from hermes_doctor.diagnosis.probes.refusals import Refusal
    from hermes_doctor.diagnosis.probes.scope import Scope
    from hermes_doctor.diagnosis.probes.settings_view import SettingsView
    from hermes_doctor.diagnosis.probes.traffic import Traffic
    from hermes_doctor.hermes.logs.entry import Wanted, WantedSince
    from hermes_doctor.hermes.logs.stream import LogStream


class LogsView(View):
    """What the logs of the gateway say."""

    def __init__(
        self, scope: Scope, machine: MachineView, gateway: GatewayView, settings: SettingsView
    ) -> None:
        super().__init__(scope)
        self._machine = machine
        self._gateway = gateway
        self._settings = settings

    @once(limit=2)
    def traffic(self) -> Traffic:
        """The last message that came in and the last answer that went out."""
        from hermes_doctor.diagnosis.probes import traffic

        return traffic.read(self.home)

    @once(limit=2)
    def traffic_since(self) -> float | None:
        """The time from which on `traffic` knows the messages."""
        from hermes_doctor.diagnosis.probes import traffic

        return traffic.first_time(self.home)

    @once(limit=2)
    def refusals(self) -> list[Refusal]:
        """The users whose messages the bot rejected within the last day, latest first."""
        from hermes_doctor.diagnosis.probes import refusals

        return refusals.find(self.home)

    @once(limit=4, what="in logs")
    def secrets(self) -> list[Leak]:
        """Secrets of this home that its logs contain."""
        from hermes_doctor.diagnosis.probes import leaks

        return leaks.find(self.home, self._settings.effective(), deep=self.scope.deep)

    def entries(
        self,
        since: float,
        wanted: Wanted | None = None,
        *,
        wanted_since: WantedSince | None = None,
        records_since: float | None = None,
        errors_since: float | None = None,
        most: int | None,
    ) -> LogStream:
        """The log entries about the gateway since then; read again on each call."""
        from hermes_doctor.hermes.logs import stream

        try:
            owner = self._gateway.supervision().owner
        except CouldNotLook:  # reported by other checks
            owner = None
        return stream.read(
            self.home,
            since=since,
            records_since=records_since,
            errors_since=errors_since,
            max_bytes=most,
            wanted=wanted,
            wanted_since=wanted_since,
            zone=self.time_zone(),
            units=[owner] if owner else [],
        )

    def time_zone(self) -> tzinfo | None:
        """The running gateway's time zone; None if it must be derived from the logs."""
        from hermes_doctor.hermes.logs import clock

        try:
            for gateway in self._gateway.running():
                return clock.zone_of_process(
                    gateway.pid, self._machine.vitals(gateway.pid).environment
                )
        except CouldNotLook:
            return None
        return None

    @once(limit=2)
    def gateway_log(self) -> str:
        """The general log that has lines of a gateway, such as `logs/agent.log`; "" if none has."""
        from hermes_doctor.diagnosis.probes import last_log_lines

        return last_log_lines.log_with_gateway_lines(self.home)

    @once(limit=2, what="last words")
    def last_lines(self, gateway: Gateway) -> list[GatewayLogLine]:
        """The latest lines that a running gateway wrote into its log, oldest first."""
        from hermes_doctor.diagnosis.probes import last_log_lines

        return last_log_lines.read(self.home, gateway.started_at)

    def last_start(self, since: datetime) -> datetime | None:
        """When a gateway last started after then, by its own log; None if no line says so."""
        from hermes_doctor.diagnosis.probes import last_log_lines

        try:
            return last_log_lines.last_start(self.home, since)
        except CouldNotLook:
            return None
