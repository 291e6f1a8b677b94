"""The class `Probes`, which answers the questions of checks and fixes about one home."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes.store_files import StoreProbes
from hermes_doctor.system.once import once

if TYPE_CHECKING:
    from datetime import datetime, tzinfo
    from pathlib import Path

    from hermes_doctor.logs.formats import Wanted
    from hermes_doctor.logs.stream import LogStream
    from hermes_doctor.probes.earlier_platforms import EarlierPlatform
    from hermes_doctor.probes.links import PlatformConnections
    from hermes_doctor.probes.network.provider_trial import Trial
    from hermes_doctor.probes.network.reach import HostResult
    from hermes_doctor.probes.next_start import NextStart
    from hermes_doctor.probes.pulse import Pulse
    from hermes_doctor.probes.unrestored_rows import UnrestoredRows
    from hermes_doctor.processes.connection import Connection
    from hermes_doctor.records.last_ask import AskRecord
    from hermes_doctor.sqlite.retired_log import RetiredRows
    from hermes_doctor.sqlite.unsaved_messages import UnsavedMessages


class Probes(StoreProbes):
    """All facts that a check or a fix may ask for about one home.

    Every method caches its answer, may be called from any thread, and raises `CouldNotLook` with
    the reason when there is no answer.
    """

    asked: AskRecord | None = None
    """The result of an `ask` that this command has just made; it counts as the last one."""

    @once(limit=4)
    def newer(self) -> str | None:
        """Why knowledge about releases does not apply to this home; None if it does."""
        from hermes_doctor.probes import newer_release

        return newer_release.reason(self)

    @once(limit=4)
    def can_learn(self) -> bool:
        """Whether `hermes-doctor learn` can ask the Hermes of this home for what is unknown."""
        from hermes_doctor.probes import newer_release

        return newer_release.can_learn(self)

    @once(limit=8)
    def unrestored(self) -> list[UnrestoredRows | CouldNotLook]:
        """Rows that backups of deleted write-ahead logs have and the live databases lack."""
        logs = self.saved_logs()
        if not logs:
            return []
        from hermes_doctor.probes import unrestored_rows

        return list(unrestored_rows.find(self, logs))

    @once(limit=8)
    def retired_rows(self, folder: Path) -> RetiredRows:
        """Messages of a write-ahead log that Hermes set aside, and those that state.db lacks."""
        from hermes_doctor.probes import unsaved_rows

        return unsaved_rows.retired(self, folder, patient=self.deep)

    @once(limit=8)
    def unsaved_messages(self) -> UnsavedMessages:
        """Messages of transcripts that Hermes wrote because it could not save them."""
        from hermes_doctor.probes import unsaved_rows

        return unsaved_rows.unsaved(self)

    @once(limit=4)
    def earlier_platforms(self) -> list[EarlierPlatform]:
        """The platforms on which people talked to the bot of this home, as its files show."""
        from hermes_doctor.probes import earlier_platforms

        try:
            sources = self.rows(self.home / "state.db", earlier_platforms.SOURCES, "sessions")
        except (CouldNotLook, FileNotFoundError):
            sources = []  # the checks of databases report why
        return earlier_platforms.find(sources, self.runtime().platforms)

    @once(limit=6)
    def links(self, pid: int, held: frozenset[str]) -> list[PlatformConnections]:
        """The connections of each platform; waits a moment for the platforms in `held`."""
        from hermes_doctor.probes import links
        from hermes_doctor.processes import sockets
        from hermes_doctor.settings import provider_hosts

        others = provider_hosts.find(self.settings()).values()
        addresses = {
            one.target.endpoint.host: one.addresses
            for one in (self.reach() if self.network else ())
            if one.addresses
        }
        shared = [self.connections(pid)]

        def connections() -> list[Connection]:
            """Return the answer that other checks share, and then what is new."""
            return shared.pop() if shared else sockets.of(pid)

        return links.wait_for_links(
            connections,
            lambda found: links.assign(
                self.platforms(), found, providers=others, addresses=addresses
            ),
            held,
        )

    @once(limit=8)
    def reach(self) -> list[HostResult]:
        """Whether each host that the gateway needs can be reached; requires --network."""
        from hermes_doctor.probes.network import provider_trial, reach
        from hermes_doctor.settings import provider_hosts

        if not self.network:
            raise CouldNotLook("network checks need --network")
        settings = self.settings()
        try:
            found, guessed = provider_trial.targets(self.resolved(), settings), {}
        except CouldNotLook:
            found, guessed = [], provider_hosts.find(settings)
        return reach.test_hosts(reach.targets(settings, self.platforms(), guessed, found), settings)

    @once(limit=18)
    def trials(self) -> list[Trial]:
        """The answers of each provider that a message may use; requires --network."""
        from hermes_doctor.probes.network import provider_trial

        if not self.network:
            raise CouldNotLook("network checks need --network")
        from hermes_doctor.probes.network import request

        return provider_trial.ask_all(request.requests(self.resolved()), self.settings())

    @once(limit=4)
    def last_ask(self) -> AskRecord | None:
        """The result of the last `hermes-doctor ask`, if it is fresh; None if there is none."""
        if self.asked is not None:
            return self.asked
        from hermes_doctor.probes import fresh_ask

        return fresh_ask.read(self)

    @once(limit=6)
    def next_start(self) -> NextStart | None:
        """What starts the gateway next if none works now; None if one works, or nothing does."""
        from hermes_doctor.probes import next_start

        return next_start.find(self)

    def last_worked(self) -> datetime | None:
        """When the gateway last worked, as far as its exit log says."""
        from hermes_doctor.probes import next_start

        return next_start.last_worked(self.diary(), self.runtime().starts)

    @once(limit=8)
    def pulse(self) -> Pulse:
        """Whether the event loop of the gateway is running."""
        gateways = self.gateways()
        from hermes_doctor.probes import pulse
        from hermes_doctor.processes import listeners

        if not gateways:
            if not (url := self._health_url()):
                raise CouldNotLook("no gateway was found among the processes")
            return pulse.examine_url(url, network=self.network)
        if due := self.next_start():
            return pulse.Pulse(due.pid, None, due.what)
        runtime = self.runtime()
        pids = [gateway.pid for gateway in gateways]
        pid = runtime.lock_holder if runtime.lock_holder in pids else pids[0]
        vitals = self.vitals(pid)
        env, config = self.env(), self.config()
        ports = pulse.ports(
            vitals.environment, (env and env.text) or "", (config and config.values) or {}
        )
        return pulse.examine_process(
            *(vitals, runtime, listeners.of(pid), ports, self.space()),
            closed=lambda: pulse.heartbeat_obstacle(self.gateway_user(), self.home / "state"),
        )

    def _health_url(self) -> str:
        """Return the health URL of this home's gateway on another machine; empty if there is none.

        It is this home's if its .env names it, or if our environment does and no other home is
        examined; and if no local gateway of another home listens there.
        """
        from hermes_doctor.probes import port_owner
        from hermes_doctor.settings import variables

        name = "GATEWAY_HEALTH_URL"
        env = self.env()
        own = variables.parse((env and env.text) or "") if env else {}
        url = own.get(name) or (os.environ.get(name, "") if self.alone else "")
        return "" if port_owner.is_port_of_other_home(url.strip(), self.home.path) else url.strip()

    def entries(
        self,
        since: float,
        wanted: Wanted | None = None,
        *,
        records_since: float | None = None,
        errors_since: float | None = None,
        most: int | None,
    ) -> LogStream:
        """The log entries about the gateway since then; read again on each call."""
        from hermes_doctor.logs import stream

        try:
            owner = self.supervision().owner
        except CouldNotLook:  # reported by other checks
            owner = None
        return stream.read(
            self.home,
            since=since,
            records_since=records_since,
            errors_since=errors_since,
            max_bytes=most,
            wanted=wanted,
            zone=self._zone(),
            units=[owner] if owner else [],
        )

    def _zone(self) -> tzinfo | None:
        """The running gateway's time zone; None if it must be derived from the logs."""
        from hermes_doctor.logs import time_zones

        try:
            for gateway in self.gateways():
                return time_zones.of_process(gateway.pid, self.vitals(gateway.pid).environment)
        except CouldNotLook:
            return None
        return None
