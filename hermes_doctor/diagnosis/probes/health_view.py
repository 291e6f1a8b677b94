"""The part of `Probes` about whether the gateway works."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes_doctor.core.model import CouldNotLook, known_or
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.diagnosis.probes import next_start, pulse
from hermes_doctor.diagnosis.probes.scope import View
from hermes_doctor.hermes.processes import sockets
from hermes_doctor.hermes.settings import inputs, urls

if TYPE_CHECKING:
    from datetime import datetime

    from hermes_doctor.backup.records.last_ask import AskRecord
    from hermes_doctor.core.model import Gateway
    from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
    from hermes_doctor.diagnosis.probes.hermes_view import HermesView, SettingsView
    from hermes_doctor.diagnosis.probes.links import PlatformConnections, PlatformProof
    from hermes_doctor.diagnosis.probes.machine_view import FilesView, MachineView
    from hermes_doctor.diagnosis.probes.network.provider_trial import Trial
    from hermes_doctor.diagnosis.probes.network.reach import HostResult
    from hermes_doctor.diagnosis.probes.next_start import NextStart
    from hermes_doctor.diagnosis.probes.other_homes import OtherGateway
    from hermes_doctor.diagnosis.probes.pulse import Pulse
    from hermes_doctor.diagnosis.probes.scope import Scope
    from hermes_doctor.diagnosis.probes.stores_view import LogsView
    from hermes_doctor.hermes.processes.sockets import Connection


class HealthView(View):
    """Whether the gateway works: its event loop, its connections, its providers."""

    def __init__(
        self,
        scope: Scope,
        machine: MachineView,
        files: FilesView,
        gateway: GatewayView,
        hermes: HermesView,
        settings: SettingsView,
        logs: LogsView,
    ) -> None:
        super().__init__(scope)
        self.asked: AskRecord | None = None
        """The result of an `ask` that this command has just made; it counts as the last one."""
        self._machine = machine
        self._files = files
        self._gateway = gateway
        self._hermes = hermes
        self._settings = settings
        self._logs = logs

    @once(limit=8)
    def pulse(self) -> Pulse:
        """Whether the event loop of the gateway is running."""
        gateways = self._gateway.running()
        if not gateways:
            if not (url := self._health_url()):
                raise CouldNotLook("no gateway was found among the processes")
            return pulse.examine_url(url, network=self.scope.network)
        if due := self.next_start():
            return pulse.Pulse(due.pid, None, due.what)
        runtime = self._gateway.runtime()
        pids = [gateway.pid for gateway in gateways]
        pid = runtime.lock_holder if runtime.lock_holder in pids else pids[0]
        vitals = self._machine.vitals(pid)
        env, config = self._settings.env(), self._settings.config()
        ports = pulse.ports(
            vitals.environment, (env and env.text) or "", (config and config.values) or {}
        )
        return pulse.examine_process(
            *(vitals, runtime, self._own_listeners(pid), ports, self._machine.space()),
            closed=lambda: pulse.heartbeat_obstacle(self._gateway.user(), self.home / "state"),
        )

    def _own_listeners(self, pid: int) -> list[Connection]:
        """The listening sockets of a process, from the answer that other checks share."""
        connections = known_or([], lambda: self._machine.connections(pid))
        return [one for one in connections if one.state == "LISTEN"]

    def _health_url(self) -> str:
        """Return the health URL of this home's gateway on another machine; empty if there is none.

        It is this home's if its .env names it, or if our environment does and no other home is
        examined; and if no local gateway of another home listens there.
        """
        from hermes_doctor.diagnosis.probes import other_homes

        name = "GATEWAY_HEALTH_URL"
        env = self._settings.env()
        own = inputs.parse_variables((env and env.text) or "") if env else {}
        url = own.get(name) or (os.environ.get(name, "") if self.scope.alone else "")
        return "" if other_homes.is_port_of_other_home(url.strip(), self.home.path) else url.strip()

    @once(limit=6)
    def next_start(self) -> NextStart | None:
        """What starts the gateway next if none works now; None if one works, or nothing does."""
        return next_start.find(self._machine, self._gateway, self._settings)

    def last_worked(self) -> datetime | None:
        """When the gateway last worked, as far as its exit log says."""
        return next_start.last_worked(self._gateway.diary(), self._gateway.runtime().starts)

    @once(limit=6)
    def links(self, pid: int, held: frozenset[str]) -> list[PlatformConnections]:
        """The connections of each platform; waits a moment for the platforms in `held`."""
        from hermes_doctor.diagnosis.probes import links

        others = urls.provider_endpoints(self._settings.effective()).values()
        addresses = {
            host_result.target.endpoint.host: host_result.addresses
            for host_result in (self.reach() if self.scope.network else ())
            if host_result.addresses
        }
        shared = [self._machine.connections(pid)]

        def connections() -> list[Connection]:
            """Return the answer that other checks share, and then what is new."""
            return shared.pop() if shared else sockets.connections(pid)

        return links.wait_for_links(
            connections,
            lambda found: links.assign(
                self._settings.platforms(), found, providers=others, addresses=addresses
            ),
            held,
        )

    @once(limit=8)
    def reach(self) -> list[HostResult]:
        """Whether each host that the gateway needs can be reached; requires --network."""
        from hermes_doctor.diagnosis.probes.network import provider_trial, reach

        if not self.scope.network:
            raise CouldNotLook("network checks need --network")
        settings = self._settings.effective()
        try:
            needed_hosts, guessed = provider_trial.targets(self._settings.resolved(), settings), {}
        except CouldNotLook:
            needed_hosts, guessed = [], urls.provider_endpoints(settings)
        return reach.test_hosts(
            reach.targets(settings, self._settings.platforms(), guessed, needed_hosts), settings
        )

    @once(limit=18)
    def trials(self) -> list[Trial]:
        """The answers of each provider that a message may use; requires --network."""
        from hermes_doctor.diagnosis.probes.network import provider_trial

        if not self.scope.network:
            raise CouldNotLook("network checks need --network")
        from hermes_doctor.diagnosis.probes.network import request

        return provider_trial.ask_all(
            request.requests(self._settings.resolved()), self._settings.effective()
        )

    @once(limit=4)
    def last_ask(self) -> AskRecord | None:
        """The result of the last `hermes-doctor ask`, if it is fresh; None if there is none."""
        if self.asked is not None:
            return self.asked
        from hermes_doctor.diagnosis.probes import fresh_ask

        return fresh_ask.read(self._files, self._gateway, self._settings)

    def platform_proof(self, gateway: Gateway, platform: str) -> PlatformProof:
        """Whether a platform is connected, by what this gateway reported and logged."""
        from hermes_doctor.diagnosis.probes import links

        claim = (self._gateway.claims(gateway) or {}).get(platform)
        words = known_or([], lambda: self._logs.last_lines(gateway))
        running = self._gateway.runtime().state == "running"
        return links.prove(platform, claim, words, running=running)

    @once(limit=2)
    def copied_from(self) -> OtherGateway | None:
        """The running gateway of another home that the files of this home name."""
        from hermes_doctor.diagnosis.probes import other_homes

        return other_homes.named_in(self.home, self._gateway.runtime(), self._hermes.release())
