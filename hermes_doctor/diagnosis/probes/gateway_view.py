"""The part of `Probes` about the gateway, and about this tool's own work."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes_doctor.backup.records import receipts
from hermes_doctor.core import known_secrets
from hermes_doctor.core.model import CouldNotLook, known_or
from hermes_doctor.core.system import mounts
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.core.system.files import Snapshot
from hermes_doctor.diagnosis.probes.scope import View
from hermes_doctor.hermes.processes import gateway_processes, process_stat, runtime_files
from hermes_doctor.hermes.processes.process_stat import start_moment, stat
from hermes_doctor.hermes.supervisors.units import DOCKER

if TYPE_CHECKING:
    from hermes_doctor.backup.records.receipts import Handled, LeftDown, SavedLog, UnfinishedRun
    from hermes_doctor.backup.records.updates import Update
    from hermes_doctor.core.model import Gateway
    from hermes_doctor.core.system.mounts import FileUser
    from hermes_doctor.diagnosis.probes.compose import ComposeService
    from hermes_doctor.diagnosis.probes.dashboards import Dashboard
    from hermes_doctor.diagnosis.probes.file_permissions import OwnerScan
    from hermes_doctor.diagnosis.probes.machine_view import MachineView
    from hermes_doctor.diagnosis.probes.orphans import Orphan
    from hermes_doctor.diagnosis.probes.other_homes import Listed, OtherGateway
    from hermes_doctor.diagnosis.probes.scope import Scope
    from hermes_doctor.hermes.processes.runtime_files import GatewayLife, PlatformState, Runtime
    from hermes_doctor.hermes.processes.sqlite_library import Library
    from hermes_doctor.hermes.supervisors.find import Supervision
    from hermes_doctor.hermes.supervisors.units import Unit


DAY = 86_400.0


class GatewayView(View):
    """The gateway of the home: its processes, its supervisor and its state files."""

    def __init__(self, scope: Scope, machine: MachineView) -> None:
        super().__init__(scope)
        self._machine = machine

    @once(limit=3, what="gateways")
    def running(self) -> list[Gateway]:
        """The running gateways of this home."""
        return gateway_processes.gateways_of(self.home, self._machine.command_lines())

    def start_environment(self) -> Mapping[str, str]:
        """The variables that the gateway was, or would be, started with."""
        gateways = self.running()
        if gateways:
            environment = self._machine.vitals(gateways[0].pid).environment
            if environment is None:
                raise CouldNotLook(
                    "you may not see the environment of process {pid}", pid=gateways[0].pid
                )
            known_secrets.add_environment(environment)
            return environment
        if not self.scope.network:  # asking supervisors takes time; a quick check does without
            return {}
        owner = self.supervision().owner
        if owner is None:
            return {}
        known_secrets.add_environment(owner.environment)
        return owner.environment

    @once(limit=6)
    def supervision(self) -> Supervision:
        """The supervisor that would restart this home's gateway."""
        from hermes_doctor.hermes.supervisors import find

        return find.find_supervisor(self.home, self.running)

    @once(limit=2)
    def compose(self) -> ComposeService | None:
        """The service of Docker Compose that made the gateway's container, if Compose made it."""
        from hermes_doctor.diagnosis.probes import compose

        boxes = [unit for unit in self.supervision().units if unit.kind == "docker"]
        return compose.read_service(boxes[0]) if boxes else None

    @once(limit=4)
    def runtime(self) -> Runtime:
        """The state files of this home's gateway, with pids as we see them."""
        runtime = runtime_files.find(self.home)
        running = known_or([], lambda: [gateway.pid for gateway in self.running()])
        runtime = runtime_files.with_our_pids(runtime, running)
        if runtime.lock_holder is None and runtime.ever:
            owners = (runtime.lock_file, runtime.pid_file, runtime.state_owner)
            named = [*running, *(owner.pid for owner in owners if owner)]
            runtime = runtime._replace(
                lock_holder=gateway_processes.lock_holder_among(self.home, named)
            )
        if running or not runtime.ever:
            return runtime
        from hermes_doctor.diagnosis.probes import visibility

        why = visibility.why_unseen(self.home, runtime)
        return runtime._replace(lock_holder=0, unseen=why) if why else runtime

    @once(limit=4)
    def served_by(self) -> Gateway | None:
        """The root home's gateway if it serves this profile, which has none of its own."""
        listed = self.listed_by()
        return listed.gateway if listed and not listed.stale else None

    @once(limit=4)
    def listed_by(self) -> Listed | None:
        """The root home's gateway whose state file lists this profile, also if it is outdated."""
        from hermes_doctor.diagnosis.probes import other_homes

        if self.running():
            return None
        return other_homes.listed_by(self.home)

    @once(limit=2)
    def diary(self) -> list[GatewayLife]:
        """The latest gateway processes of this home and how they ended, oldest first."""
        running = {
            process_stat.pid_in_namespace(gateway.pid): gateway.pid for gateway in self.running()
        }
        return runtime_files.read_lives(self.home, running)

    @once(limit=2)
    def cut_off(self) -> dict[int, datetime]:
        """Gateways that their own watchdog killed during shutdown, by pid."""
        return runtime_files.killed_by_watchdog(self.home)

    @once(limit=2, what="gateway user")
    def user(self) -> FileUser:
        """The user that the gateway runs as, or most likely would."""
        gateways = known_or([], self.running)
        if gateways:
            return mounts.user_of(gateways[0].pid)
        return self.container_user() or mounts.owner_of(self.home.path)

    @once(limit=6)
    def container_user(self) -> FileUser | None:
        """The user in the settings of the gateway's container; None without one, or if unknown."""
        from hermes_doctor.hermes.supervisors import docker

        try:
            owner = self.supervision().owner
            ids = docker.user_ids(owner) if owner and owner.kind == DOCKER else None
        except CouldNotLook:
            return None
        return mounts.FileUser(ids[0], frozenset({ids[1]})) if ids else None

    @once(limit=2)
    def is_home_closed(self) -> bool:
        """Whether the user of a container that runs no gateway now may not write to the home."""
        try:
            user = None if self.running() else self.container_user()
            st = os.stat(self.home.path)
        except (CouldNotLook, OSError):
            return False
        return user is not None and not (user.may_enter(st) and user.may_write(Snapshot.of(st)))

    @once(limit=4)
    def container_output(self) -> str:
        """The last error that the gateway's container printed; empty without a container."""
        from hermes_doctor.hermes.supervisors import docker

        owner = self.supervision().owner
        return docker.last_output(owner) if owner and owner.kind == DOCKER else ""

    @once(limit=3, what="owners")
    def file_owners(self) -> OwnerScan:
        """Files of the home that the gateway may not read or write."""
        from hermes_doctor.diagnosis.probes import file_permissions

        return file_permissions.find_closed(self.home, self.user(), deep=self.scope.deep)

    @once(limit=2)
    def sqlite_library(self) -> Library | None:
        """The SQLite library of the running gateway."""
        from hermes_doctor.hermes.processes import sqlite_library

        libraries = (
            sqlite_library.of(gateway.pid, deep=self.scope.deep) for gateway in self.running()
        )
        return next((library for library in libraries if library), None)

    def claims(self, gateway: Gateway) -> Mapping[str, PlatformState] | None:
        """The platform states of a running gateway; None if another process wrote the file."""
        from hermes_doctor.diagnosis.probes import links

        return links.own_states(self.runtime(), gateway)

    @once(limit=2, what="other gateways")
    def others(self) -> list[OtherGateway]:
        """The running gateways of other homes on this machine."""
        from hermes_doctor.diagnosis.probes import other_homes

        return list(other_homes.running_elsewhere(self.home, self._machine.command_lines()))

    @once(limit=2)
    def orphans(self) -> list[Orphan]:
        """Processes that an earlier gateway of this home left behind."""
        from hermes_doctor.diagnosis.probes import orphans

        running = [gateway.pid for gateway in self.running()]
        return [*orphans.servers(self.home, running), *orphans.browsers(self.diary())]

    @once(limit=3)
    def open_dashboards(self) -> list[Dashboard]:
        """Dashboards of this home that other machines can use without a password."""
        from hermes_doctor.diagnosis.probes import dashboards

        return dashboards.exposed_dashboards(self.home, self._machine.command_lines())

    @once(limit=2, what="bundle fault")
    def certificate_fault(self, path: str) -> str | None:
        """What is wrong with a certificate file; None if nothing is."""
        from hermes_doctor.diagnosis.probes.network import bundles

        gateways = self.running()
        return bundles.fault(path, gateways[0].pid if gateways else None)


class RecordsView(View):
    """What this tool wrote down about its own work on the home."""

    def __init__(self, scope: Scope, gateway: GatewayView) -> None:
        super().__init__(scope)
        self._gateway = gateway

    @once(limit=4)
    def handled(self) -> list[Handled]:
        """When this tool or a person set the gateway right in the last day, in order of the end."""

        periods = receipts.when_handled(self.home, time.time() - DAY)
        try:
            for gateway in self._gateway.running():
                if is_own(gateway, self._gateway.supervision().owner, self._gateway.diary):
                    began = gateway.started_at.timestamp()
                    periods.append(receipts.Handled(began, began, proved=True))
        except CouldNotLook:
            pass
        return sorted(periods, key=lambda one: one.ended)

    def proved_at(self) -> datetime:
        """When the gateway was last set right: what stopped it before is over."""
        ends = [one.ended for one in self.handled() if one.proved]
        return datetime.fromtimestamp(max(ends, default=0.0), UTC)

    @once(limit=2)
    def left_down(self) -> LeftDown | None:
        """The last run of this tool that stopped the gateway, if it left it down."""
        return receipts.run_that_left_gateway_down(self.home)

    @once(limit=2)
    def unfinished_runs(self) -> list[UnfinishedRun]:
        """Runs of this tool that were interrupted."""
        return receipts.unfinished_runs(self.home)

    @once(limit=2)
    def saved_logs(self) -> list[SavedLog]:
        """Backups of deleted write-ahead logs whose rows may not be in the database."""
        if not os.path.isdir(self.home.runs):
            return []
        return receipts.unsettled_logs(self.home)

    @once(limit=2)
    def guarded_update(self) -> Update | None:
        """The last update of Hermes that was made with `hermes-doctor update-guard`."""
        if not os.path.isdir(self.home.vault / "updates"):
            return None
        from hermes_doctor.backup.records.updates import UpdateRecords

        return UpdateRecords(self.home).last()


FIRST = 30.0
"""Seconds within which the gateway is started by the main process of its unit or container."""
STEADY, RECENT = 60.0, 3600.0
"""Seconds that a gateway without a supervisor must run; and how old a life may be that it must
outlast."""


def is_own(
    gateway: Gateway, owner: Unit | None, lives: Callable[[], Sequence[GatewayLife]]
) -> bool:
    """Whether a person started the gateway: its supervisor did not restart it after a crash.

    Without a supervisor, a shell loop may have started it: it must run clearly longer than those
    before it, whose `lives` are then needed.
    """
    return _is_first(gateway, owner) if owner else _outlasts(gateway, lives())


def _is_first(gateway: Gateway, owner: Unit) -> bool:
    """Whether the unit or container has not been restarted since it was started."""
    counts = owner.systemd or owner.kind == DOCKER
    if not counts or "NRestarts" not in owner.settings or owner.number("NRestarts"):
        return False
    main = stat(owner.pid) if owner.pid else None
    if main is None:
        return False
    return (gateway.started_at - start_moment(main.start_time)).total_seconds() <= FIRST


def _outlasts(gateway: Gateway, lives: Sequence[GatewayLife]) -> bool:
    """Whether a gateway has run for more than a minute, and twice as long as each before it."""
    now = datetime.now(UTC)
    recent = [
        2 * (life.ended - life.began).total_seconds()
        for life in lives
        if life.ended and (now - life.began).total_seconds() < RECENT
    ]
    return (now - gateway.started_at).total_seconds() > max([STEADY, *recent])
