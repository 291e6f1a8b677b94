"""The part of `Probes` about the gateway: its processes, supervisor and state files."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes.core import CoreProbes
from hermes_doctor.supervisors.unit import DOCKER
from hermes_doctor.system.files import Snapshot
from hermes_doctor.system.once import once

if TYPE_CHECKING:
    from hermes_doctor.model import Gateway
    from hermes_doctor.probes.compose import ComposeService
    from hermes_doctor.probes.file_owners import OwnerScan
    from hermes_doctor.probes.last_log_lines import GatewayLogLine
    from hermes_doctor.probes.orphans import Orphan
    from hermes_doctor.probes.other_gateways import OtherGateway
    from hermes_doctor.probes.platform_proof import PlatformProof
    from hermes_doctor.probes.shared_gateway import Listed
    from hermes_doctor.processes.runtime_files import GatewayLife, PlatformState, Runtime
    from hermes_doctor.processes.sqlite_library import Library
    from hermes_doctor.records.handled import Handled
    from hermes_doctor.records.saved_logs import SavedLog
    from hermes_doctor.records.unfinished import LeftDown, UnfinishedRun
    from hermes_doctor.supervisors.find import Supervision
    from hermes_doctor.system.mounts import FileUser


DAY = 86_400.0


class GatewayProbes(CoreProbes):
    """The gateway of a home: its processes, its supervisor and its state files."""

    @once(limit=3)
    def gateways(self) -> list[Gateway]:
        """The running gateways of this home."""
        from hermes_doctor.processes import gateway_processes

        return gateway_processes.gateways_of(self.home, self.command_lines())

    @once(limit=6)
    def supervision(self) -> Supervision:
        """The supervisor that would restart this home's gateway."""
        from hermes_doctor.supervisors import find

        return find.find_supervisor(self.home, self.gateways)

    @once(limit=2)
    def compose(self) -> ComposeService | None:
        """The service of Docker Compose that made the gateway's container, if Compose made it."""
        from hermes_doctor.probes import compose

        boxes = [unit for unit in self.supervision().units if unit.kind == "docker"]
        return compose.read_service(boxes[0]) if boxes else None

    @once(limit=2)
    def container_zone(self, pid: int) -> str | None:
        """The time zone of the container of a process; empty without one, None if unknown."""
        from hermes_doctor.processes import container_files

        return container_files.time_zone(pid)

    @once(limit=2)
    def container_has(self, pid: int, path: str) -> bool | None:
        """Whether the container of a process has a file; None if we may not look."""
        from hermes_doctor.processes import container_files

        return container_files.has_file(pid, path)

    @once(limit=2)
    def machine_zone(self) -> str:
        """The name of the time zone of this machine; empty if it is unknown."""
        from hermes_doctor.system import time_zone

        return time_zone.own_time_zone()

    @once(limit=4)
    def runtime(self) -> Runtime:
        """The state files of this home's gateway, with pids as we see them."""
        from hermes_doctor.processes import gateway_processes, runtime_files

        found = runtime_files.find(self.home)
        try:
            running = [gateway.pid for gateway in self.gateways()]
        except CouldNotLook:
            running = []
        found = runtime_files.with_our_pids(found, running)
        if found.lock_holder is None and found.ever:
            owners = (found.lock_file, found.pid_file, found.state_owner)
            named = [*running, *(one.pid for one in owners if one)]
            found = found._replace(
                lock_holder=gateway_processes.lock_holder_among(self.home, named)
            )
        if running or not found.ever:
            return found
        from hermes_doctor.probes import visibility

        why = visibility.why_unseen(self.home, found)
        return found._replace(lock_holder=0, unseen=why) if why else found

    @once(limit=4)
    def served_by(self) -> Gateway | None:
        """The root home's gateway if it serves this profile, which has none of its own."""
        found = self.listed_by()
        return found.gateway if found and not found.stale else None

    @once(limit=4)
    def listed_by(self) -> Listed | None:
        """The root home's gateway whose state file lists this profile, also if it is outdated."""
        if self.gateways():
            return None
        from hermes_doctor.probes import shared_gateway

        return shared_gateway.listed_by(self.home)

    @once(limit=4)
    def handled(self) -> list[Handled]:
        """When this tool or a person set the gateway right in the last day, in order of the end."""
        from hermes_doctor.probes import own_start
        from hermes_doctor.records import handled

        found = handled.find(self.home, time.time() - DAY)
        try:
            for gateway in self.gateways():
                if own_start.is_own(gateway, self.supervision().owner, self.diary):
                    began = gateway.started_at.timestamp()
                    found.append(handled.Handled(began, began, proved=True))
        except CouldNotLook:
            pass
        return sorted(found, key=lambda one: one.ended)

    def proved_at(self) -> datetime:
        """When the gateway was last set right: what stopped it before is over."""
        ends = [one.ended for one in self.handled() if one.proved]
        return datetime.fromtimestamp(max(ends, default=0.0), UTC)

    @once(limit=2)
    def diary(self) -> list[GatewayLife]:
        """The latest gateway processes of this home and how they ended, oldest first."""
        from hermes_doctor.processes import exit_diary, process_stat

        running = {
            process_stat.pid_in_namespace(gateway.pid): gateway.pid for gateway in self.gateways()
        }
        return exit_diary.read(self.home, running)

    @once(limit=2)
    def cut_off(self) -> dict[int, datetime]:
        """Gateways that their own watchdog killed during shutdown, by pid."""
        from hermes_doctor.processes import exit_diary

        return exit_diary.killed_by_watchdog(self.home)

    @once(limit=2)
    def gateway_user(self) -> FileUser:
        """The user that the gateway runs as, or most likely would."""
        from hermes_doctor.system import mounts

        try:
            gateways = self.gateways()
        except CouldNotLook:
            gateways = []
        if gateways:
            return mounts.user_of(gateways[0].pid)
        return self.container_user() or mounts.owner_of(self.home.path)

    @once(limit=6)
    def container_user(self) -> FileUser | None:
        """The user in the settings of the gateway's container; None without one, or if unknown."""
        from hermes_doctor.supervisors import docker
        from hermes_doctor.system import mounts

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
            user = None if self.gateways() else self.container_user()
            st = os.stat(self.home.path)
        except (CouldNotLook, OSError):
            return False
        return user is not None and not (user.may_enter(st) and user.may_write(Snapshot.of(st)))

    @once(limit=4)
    def container_output(self) -> str:
        """The last error that the gateway's container printed; empty without a container."""
        from hermes_doctor.supervisors import docker

        owner = self.supervision().owner
        return docker.last_output(owner) if owner and owner.kind == DOCKER else ""

    @once(limit=3)
    def owners(self) -> OwnerScan:
        """Files of the home that the gateway may not read or write."""
        from hermes_doctor.probes import file_owners

        return file_owners.find(self.home, self.gateway_user(), deep=self.deep)

    @once(limit=2)
    def sqlite_library(self) -> Library | None:
        """The SQLite library of the running gateway."""
        from hermes_doctor.processes import sqlite_library

        found = (sqlite_library.of(gateway.pid, deep=self.deep) for gateway in self.gateways())
        return next((one for one in found if one), None)

    def claims(self, gateway: Gateway) -> Mapping[str, PlatformState] | None:
        """The platform states of a running gateway; None if another process wrote the file."""
        from hermes_doctor.probes import reported_states

        return reported_states.own_states(self.runtime(), gateway)

    @once(limit=2)
    def last_words(self, gateway: Gateway) -> list[GatewayLogLine]:
        """The latest lines that a running gateway wrote into its log, oldest first."""
        from hermes_doctor.probes import last_log_lines

        return last_log_lines.read(self.home, gateway.started_at)

    def platform_proof(self, gateway: Gateway, platform: str) -> PlatformProof:
        """Whether a platform is connected, by what this gateway reported and logged."""
        from hermes_doctor.probes import platform_proof

        claim = (self.claims(gateway) or {}).get(platform)
        try:
            words = self.last_words(gateway)
        except CouldNotLook:
            words = []
        running = self.runtime().state == "running"
        return platform_proof.prove(platform, claim, words, running=running)

    def logged_start(self, since: datetime) -> datetime | None:
        """When a gateway last started after then, by its own log; None if no line says so."""
        from hermes_doctor.probes import last_log_lines

        try:
            return last_log_lines.last_start(self.home, since)
        except CouldNotLook:
            return None

    @once(limit=2)
    def other_gateways(self) -> list[OtherGateway]:
        """The running gateways of other homes on this machine."""
        from hermes_doctor.probes import other_gateways

        return list(other_gateways.running_elsewhere(self.home, self.command_lines()))

    @once(limit=2)
    def gateway_log(self) -> str:
        """The general log that has lines of a gateway, such as `logs/agent.log`; "" if none has."""
        from hermes_doctor.probes import last_log_lines

        return last_log_lines.log_with_gateway_lines(self.home)

    @once(limit=2)
    def left_down(self) -> LeftDown | None:
        """The last run of this tool that stopped the gateway, if it left it down."""
        from hermes_doctor.records import unfinished

        return unfinished.run_that_left_gateway_down(self.home)

    @once(limit=2)
    def unfinished_runs(self) -> list[UnfinishedRun]:
        """Runs of this tool that were interrupted."""
        from hermes_doctor.records import unfinished

        return unfinished.unfinished_runs(self.home)

    @once(limit=2)
    def orphans(self) -> list[Orphan]:
        """Processes that an earlier gateway of this home left behind."""
        from hermes_doctor.probes import orphans

        running = [gateway.pid for gateway in self.gateways()]
        return [*orphans.servers(self.home, running), *orphans.browsers(self.diary())]

    @once(limit=2)
    def saved_logs(self) -> list[SavedLog]:
        """Backups of deleted write-ahead logs whose rows may not be in the database."""
        if not os.path.isdir(self.home.runs):
            return []
        from hermes_doctor.records import saved_logs

        return saved_logs.unsettled_logs(self.home)
