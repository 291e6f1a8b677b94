"""The probes: each reads one part of the world, lazily, once a run, changing nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.once import Cell, once

if TYPE_CHECKING:
    from datetime import tzinfo

    from hermes_doctor.installation.changes import Change
    from hermes_doctor.installation.find import Installation
    from hermes_doctor.installation.known_breaks import Break
    from hermes_doctor.installation.packages import Packages
    from hermes_doctor.installation.virtualenv import Environments
    from hermes_doctor.logs.formats import Wanted
    from hermes_doctor.logs.stream import Reading
    from hermes_doctor.model import Copy, Gateway, TextCopy
    from hermes_doctor.probes.bot_locks import Holder
    from hermes_doctor.probes.cron import Job, Target, Ticker
    from hermes_doctor.probes.dashboards import Dashboard
    from hermes_doctor.probes.database_users import Held, Lost
    from hermes_doctor.probes.databases import Databases
    from hermes_doctor.probes.file_owners import Owners
    from hermes_doctor.probes.last_log_lines import Word
    from hermes_doctor.probes.leaks import Leak
    from hermes_doctor.probes.links import Link
    from hermes_doctor.probes.network.provider_trial import Trial
    from hermes_doctor.probes.network.reach import Reached
    from hermes_doctor.probes.orphans import Orphan
    from hermes_doctor.probes.oversized_files import Dumps, LogFile
    from hermes_doctor.probes.programs import Program
    from hermes_doctor.probes.pulse import Pulse
    from hermes_doctor.probes.refusals import Refusal
    from hermes_doctor.probes.secrets import SecretFile
    from hermes_doctor.probes.siblings import Shared
    from hermes_doctor.probes.structure import Structure
    from hermes_doctor.probes.stuck_locks import Stuck
    from hermes_doctor.probes.traffic import Traffic
    from hermes_doctor.probes.unrestored_rows import Unrestored
    from hermes_doctor.processes.connection import Connection
    from hermes_doctor.processes.oom_kills import Kill
    from hermes_doctor.processes.process_stat import Stat, Vitals
    from hermes_doctor.processes.runtime_files import Life, PlatformState, Runtime
    from hermes_doctor.processes.sqlite_library import Library
    from hermes_doctor.records.saved_logs import SavedLog
    from hermes_doctor.records.unfinished import LeftDown, UnfinishedRun
    from hermes_doctor.records.updates import Update
    from hermes_doctor.settings.admission import Entrance
    from hermes_doctor.settings.api_server import ApiServer
    from hermes_doctor.settings.config_file import ConfigFile
    from hermes_doctor.settings.env_file import EnvFile
    from hermes_doctor.settings.gateway_json import OldSettings
    from hermes_doctor.settings.plain_secrets import Clear
    from hermes_doctor.settings.platforms import Platform
    from hermes_doctor.settings.resolved import Resolved
    from hermes_doctor.settings.variables import Settings
    from hermes_doctor.sqlite.condition import Condition
    from hermes_doctor.sqlite.header import Header
    from hermes_doctor.sqlite.reader import Answer
    from hermes_doctor.sqlite.schema import Schema
    from hermes_doctor.stores.best_repair import Repair
    from hermes_doctor.stores.chats import Stranger
    from hermes_doctor.stores.pairing import Pairing
    from hermes_doctor.stores.store_file import StoreFile, Stores
    from hermes_doctor.supervisors.find import Supervision
    from hermes_doctor.system.mounts import Mount, User
    from hermes_doctor.system.space import Space


class Probes:
    """All that a check may ask about one home.

    Every method answers from memory the second time, may be called from any thread, and
    raises `CouldNotLook` with the reason when there is no answer.
    """

    def __init__(
        self,
        home: Home,
        *,
        deep: bool = False,
        network: bool = False,
        alone: bool = True,
        spends: bool = True,
    ) -> None:
        self.home = home
        self.alone = alone
        """No other home is looked at beside it, so that what our environment says is meant here."""
        self.deep = deep
        self.network = network
        self.spends = spends
        """Whether a question may be asked that somebody has to pay for."""
        self.cells: dict[tuple[object, ...], Cell] = {}
        self.guard = threading.Lock()
        self.shares: dict[str, Callable[[], float]] = {}

    @once(limit=4)
    def newer(self) -> str | None:
        """Why knowledge about releases does not apply to this home; None if it does."""
        from hermes_doctor.probes import newer_release

        return newer_release.reason(self)

    @once(limit=2)
    def config(self) -> ConfigFile | None:
        """config.yaml, parsed or with the place where it fails; None when there is none."""
        from hermes_doctor.settings import config_file

        return config_file.read(self.home)

    @once(limit=4)
    def config_copies(self) -> list[TextCopy]:
        """Older copies of config.yaml that do parse, newest first."""
        from hermes_doctor.backup import copies as backup_copies

        return backup_copies.config_copies(self.home)

    @once(limit=2)
    def env(self) -> EnvFile | None:
        """.env as bytes and how they are encoded; None when there is none."""
        from hermes_doctor.settings import env_file

        return env_file.read(self.home)

    @once(limit=2)
    def old_settings(self) -> OldSettings | None:
        """gateway.json of an older set-up; None when there is none."""
        from hermes_doctor.settings import gateway_json

        return gateway_json.read(self.home)

    @once(limit=2)
    def databases(self) -> Databases:
        """The databases that this home has."""
        from hermes_doctor.probes import databases

        return databases.find(self.home)

    @once(limit=2)
    def kind(self, path: Path) -> str | None:
        """What lies in the place of a file and is none; None for a file, or where none is."""
        from hermes_doctor.probes import databases

        return databases.kind_of(path)

    @once(limit=2)
    def header(self, path: Path) -> Header:
        """The first page of a database, judged."""
        from hermes_doctor.sqlite import header

        return header.read(path)

    @once(limit=2)
    def schema(self, path: Path) -> Schema:
        """What a database is made of, read page by page without opening it."""
        from hermes_doctor.sqlite import schema

        return schema.read(path)

    def structure(self, path: Path) -> Structure:
        """The schema of a database beside that of the installed Hermes; told from other probes."""
        from hermes_doctor.probes import structure

        return structure.compare(self, path)

    @once(limit=2)
    def held(self) -> Held:
        """Which processes have the databases of this home open or locked."""
        from hermes_doctor.probes import database_users

        return database_users.find(self.databases().paths or self.databases().missing[:1])

    @once(limit=2)
    def lost_files(self) -> list[Lost]:
        """Files of databases that a process uses although they are no longer in their place."""
        from hermes_doctor.probes import database_users

        try:
            gateways = [gateway.pid for gateway in self.gateways()]
        except CouldNotLook:
            gateways = []
        found = self.databases()
        return database_users.lost(self.held(), (*found.paths, *found.missing), gateways)

    @once(limit=3)
    def stuck_locks(self) -> list[Stuck]:
        """Write locks that are held and not used."""
        from hermes_doctor.probes import stuck_locks

        return stuck_locks.stuck(self.databases().paths, self.held().locked)

    @once(limit=2)
    def gateway_user(self) -> User:
        """As whom the gateway runs, or would most likely."""
        from hermes_doctor.system import mounts

        try:
            gateways = self.gateways()
        except CouldNotLook:
            gateways = []
        return mounts.user_of(gateways[0].pid) if gateways else mounts.owner_of(self.home.path)

    @once(limit=2)
    def mount(self, path: Path) -> Mount | None:
        """The file system that a path lies on."""
        from hermes_doctor.system import mounts

        return mounts.mount_of(path)

    @once(limit=2)
    def sqlite_library(self) -> Library | None:
        """The SQLite of the running gateway."""
        from hermes_doctor.processes import sqlite_library

        found = (sqlite_library.of(gateway.pid, deep=self.deep) for gateway in self.gateways())
        return next((one for one in found if one), None)

    def command(self, pid: int) -> str:
        """The name of a process."""
        from hermes_doctor.probes import stuck_locks

        return stuck_locks.command(pid)

    @once(limit=4)
    def condition(self, path: Path) -> Condition:
        """One whole examination of a database, which all checks share."""
        from hermes_doctor.probes import database_users, databases
        from hermes_doctor.sqlite import condition

        known = iter([self.held()])
        return condition.examine(
            path,
            holders=lambda: (next(known, None) or database_users.find([path])).holders(path),
            deep=self.deep,
            seconds=databases.share(self.databases(), condition.SMALL, condition.QUICK),
            watch=lambda share: self.shares.update({self.home.name_of(path): share}),
        )

    def close(self) -> None:
        """Let go of every database; what was learnt stays known."""
        with self.guard:
            found = [cell.answer for key, cell in self.cells.items() if key[0] == "condition"]
        for condition in found:
            if condition is not None and condition.reader is not None:
                condition.reader.close()

    def progress(self) -> str:
        """How far the looks at large databases have come."""
        return ", ".join(f"{name} {share():.0%}" for name, share in list(self.shares.items()))

    def conditions(self) -> Iterator[tuple[str, Path, Condition]]:
        """Every database that can be looked at, by its name in the home.

        Those that cannot are one check's business, so that one cause is not told many times.
        """
        for path in self.databases().paths:
            try:
                yield self.home.name_of(path), path, self.condition(path)
            except (CouldNotLook, FileNotFoundError):
                continue

    def ask(self, path: Path, sql: str) -> Answer:
        """What a database says to one statement; a quick look waits only a moment for it."""
        found = self.condition(path)
        if found.reader is None or not found.readable:
            raise CouldNotLook(f"{self.home.name_of(path)}: {found.doubt or 'cannot be read'}")
        return found.reader.ask(sql, found.patience(self.deep))

    @once(limit=2)
    def copies(self, path: Path) -> list[Copy]:
        """Other files that hold this database, newest first."""
        from hermes_doctor.backup import copies

        return copies.of(self.home, path)

    @once(limit=2)
    def leftovers(self, path: Path) -> list[Copy]:
        """What Hermes put aside each time it met this database damaged."""
        from hermes_doctor.backup import copies

        return copies.leftovers(path)

    @once(limit=3)
    def stores(self) -> Stores:
        """The files beside the databases in which Hermes keeps things, judged. Holds secrets."""
        from hermes_doctor.stores import store_file

        found = self.installation()
        return store_file.find(self.home, found.release if found else None)

    def strangers(self) -> list[Stranger]:
        """The platforms that chats are led by and the installed Hermes does not know."""
        from hermes_doctor.stores import chats

        file, found = self.stores().of("sessions"), self.installation()
        if file is None or found is None:
            return []
        known = chats.strangers(file.values, found.release)
        own = {one.name for one in known if not one.since and self._plugged_in(one.name)}
        return [one for one in known if one.name not in own]

    def _plugged_in(self, platform: str) -> bool:
        """Whether a platform may be one of somebody's own plugins."""
        from hermes_doctor.system.files import listing

        config = self.settings().config
        blocks = [config.get(key) for key in ("platforms", "gateway")]
        named = any(isinstance(block, dict) and platform in str(block) for block in blocks)
        plugins = listing(self.home / "plugins") or config.get("plugins")
        return bool(plugins) or platform in config or named

    @once(limit=3)
    def jobs(self) -> list[Job]:
        """The jobs at set times that are switched on, as far as their list can be read."""
        listed = self.stores().of("jobs")
        if listed is None:
            return []
        from hermes_doctor.probes import cron

        return cron.jobs(listed)

    @once(limit=2)
    def ticker(self) -> Ticker:
        """When jobs were last looked for."""
        from hermes_doctor.probes import cron

        return cron.ticker(self.home)

    @once(limit=4)
    def undeliverable(self) -> list[tuple[Job, Target]]:
        """The jobs whose results would arrive nowhere, also by what their service gives them."""
        from hermes_doctor.probes import cron
        from hermes_doctor.settings import platforms

        found = self.installation()
        release = found.release if found else None
        settings = self.settings()
        ready = frozenset(one.name for one in self.platforms())
        lost = cron.nowhere(self.jobs(), settings, ready, release)
        owner = self.supervision().owner if lost and not self.gateways() else None
        if owner is not None and owner.environment:
            seen = settings._replace(variables={**owner.environment, **settings.variables})
            ready = frozenset(one.name for one in platforms.find(seen, release))
            lost = cron.nowhere([job for job, _ in lost], seen, ready, release)
        return lost

    def script_fault(self, script: str) -> str | None:
        """Why a job's script cannot be run."""
        from hermes_doctor.probes import cron

        return cron.script_fault(self.home, script)

    def zone_known(self, name: str) -> bool:
        """Whether there is a time zone of that name."""
        from hermes_doctor.probes import cron

        return cron.zone_known(name, self.library_path("tzdata"))

    def clock_in_utc(self) -> bool:
        """Whether the clock that the gateway goes by is in UTC."""
        from hermes_doctor.probes import cron

        return cron.in_utc(self.settings(), running=bool(self.gateways()))

    @once(limit=2)
    def torn_transcripts(self) -> list[tuple[str, int]]:
        """Transcripts with lines that cannot be read, where this release still reads them."""
        from hermes_doctor.stores import store_file

        found = self.installation()
        if found is None or found.release >= (0, 15):
            return []
        return store_file.torn_transcripts(self.home, deep=self.deep)

    def store_repair(self, file: StoreFile) -> Repair | None:
        """What can be made of a damaged store: of its own bytes, else of the newest sound copy.

        For a sound one: what Hermes had put aside of it before.
        """
        from hermes_doctor.stores import best_repair

        if file.flaw is None:
            return best_repair.rejoin(self.home, file)
        return best_repair.best(self.home, file)

    @once(limit=2)
    def sessions(self) -> int:
        """How many files of sessions there are beside the database."""
        from hermes_doctor.backup import copies

        return copies.sessions(self.home)

    @once(limit=2)
    def secrets(self) -> list[SecretFile]:
        """The files that hold secrets, with who may read them."""
        from hermes_doctor.probes import secrets

        return secrets.find(self.home)

    def secret_config(self) -> SecretFile | None:
        """config.yaml, where it holds secrets as they are, with who may read it."""
        from hermes_doctor.probes import secrets

        file = secrets.look(self.home / "config.yaml")
        try:
            return file if file and file.wide and self.in_config() else None
        except CouldNotLook:  # said by the checks that are about it
            return None

    @once(limit=2)
    def open_to(self) -> tuple[bool, bool]:
        """Whether every user of the machine, and whether the group, gets into the home."""
        from hermes_doctor.probes import secrets

        try:
            return secrets.lets_in(self.home.path)
        except OSError as error:
            raise CouldNotLook("the mode of the home is not known") from error

    @once(limit=3)
    def gateways(self) -> list[Gateway]:
        """The running gateways of this home."""
        from hermes_doctor.processes import gateway_processes

        return gateway_processes.gateways_of(self.home)

    @once(limit=6)
    def supervision(self) -> Supervision:
        """Who would start the gateway of this home again."""
        from hermes_doctor.supervisors import find

        return find.find(self.home, self.gateways)

    @once(limit=3)
    def owners(self) -> Owners:
        """Files of the home that the gateway may not read or write."""
        from hermes_doctor.probes import file_owners

        return file_owners.find(self.home, self.gateway_user(), deep=self.deep)

    @once(limit=3)
    def environments(self) -> Environments:
        """The virtual environments that the gateway is, or would be, started from."""
        from hermes_doctor.installation import virtualenv

        return virtualenv.find(self.supervision(), self.installation(), deep=self.deep)

    @once(limit=4)
    def runtime(self) -> Runtime:
        """What the gateway of this home writes about itself, its processes by our own numbers."""
        from hermes_doctor.probes import visibility
        from hermes_doctor.processes import gateway_processes, runtime_files

        found = runtime_files.find(self.home)
        try:
            running = [gateway.pid for gateway in self.gateways()]
        except CouldNotLook:
            running = []
        found = runtime_files.translated(found, running)
        if found.lock_holder is None and found.ever:
            owners = (found.lock_file, found.pid_file, found.state_owner)
            named = [*running, *(one.pid for one in owners if one)]
            found = found._replace(lock_holder=gateway_processes.holder_of(self.home, named))
        if not running and found.ever and (why := visibility.unseen(self.home, found)):
            found = found._replace(lock_holder=0, unseen=why)
        return found

    @once(limit=4)
    def served_by(self) -> Gateway | None:
        """The root home's gateway, where that works for this profile, which has none of its own."""
        from hermes_doctor.probes import shared_gateway

        return None if self.gateways() else shared_gateway.server_of(self.home)

    @once(limit=2)
    def diary(self) -> list[Life]:
        """The latest lives of gateways on this home, oldest first."""
        from hermes_doctor.processes import exit_diary, process_stat

        running = {process_stat.own_number(gateway.pid): gateway.pid for gateway in self.gateways()}
        return exit_diary.read(self.home, running)

    @once(limit=2)
    def cut_off(self) -> dict[int, datetime]:
        """Gateways whose own watchdog ended them while they shut down."""
        from hermes_doctor.processes import exit_diary

        return exit_diary.cut_off(self.home)

    @once(limit=3)
    def kill(self, pid: int, began: datetime) -> Kill | None:
        """Whether the kernel killed this process for want of memory."""
        from hermes_doctor.processes import oom_kills

        return oom_kills.find(pid, began)

    @once(limit=2)
    def memory_kills(self) -> int:
        """How many processes of our own control group the kernel killed so."""
        from hermes_doctor.processes import oom_kills

        return oom_kills.here()

    def rebooted_since(self, moment: datetime) -> bool:
        """Whether the machine was started after that moment."""
        from hermes_doctor.processes import process_stat

        try:
            return process_stat.boot_time() > moment.timestamp()
        except CouldNotLook:
            return False

    def exists(self, pid: int) -> bool:
        """Whether there is a process of that number, also one that is hidden from us."""
        from hermes_doctor.processes import process_stat

        return process_stat.exists(pid)

    def process(self, pid: int) -> Stat | None:
        """What the kernel says of any process, in short."""
        from hermes_doctor.processes import process_stat

        return process_stat.stat(pid)

    @once(limit=2)
    def vitals(self, pid: int) -> Vitals:
        """One process as the kernel sees it."""
        from hermes_doctor.processes import process_stat

        return process_stat.take(pid)

    @once(limit=4)
    def settings(self) -> Settings:
        """What the gateway goes by: its variables, and config.yaml. Holds secrets."""
        from hermes_doctor.probes import effective_settings

        return effective_settings.read(self)

    @once(limit=4)
    def resolved(self) -> Resolved:
        """What the next message would really use, and where each value comes from."""
        from hermes_doctor.probes import setting_inputs
        from hermes_doctor.settings import resolved

        return resolved.of(*setting_inputs.gather(self))

    @once(limit=2)
    def doors(self) -> list[Entrance]:
        """The platforms that ask who somebody is, with who would be let in."""
        from hermes_doctor.settings import admission

        return list(admission.doors(self.resolved()))

    def is_sandboxed(self) -> bool:
        """Whether the commands of the bot run elsewhere than on this machine itself."""
        from hermes_doctor.settings import admission

        return admission.is_sandboxed(self.resolved().world)

    @once(limit=2)
    def pairing(self) -> Pairing:
        """Who has been paired with this home's gateway, and who waits for it."""
        from hermes_doctor.stores import pairing

        found = self.installation()
        return pairing.find(self.home.path, found.release if found else None)

    @once(limit=2)
    def refusals(self) -> list[Refusal]:
        """Who wrote to the bot within a day and was turned away, the latest first."""
        from hermes_doctor.probes import refusals

        return refusals.find(self.home)

    def unread_lists(self, platform: str, user: str) -> list[str]:
        """Places in config.yaml that name somebody without letting them in."""
        from hermes_doctor.settings import admission

        return [one.place for one in admission.unread(self.resolved().world, platform, user)]

    def paired_elsewhere(self, platform: str, user: str) -> list[str]:
        """Stores that this home's gateway does not look at, in which somebody is approved."""
        from hermes_doctor.probes import siblings
        from hermes_doctor.stores import pairing

        own = self.pairing()
        found = [own.other] if user in own.astray.get(platform, ()) else []
        installed = self.installation()
        for home in siblings.of(self.home):
            try:
                there = pairing.find(home, installed.release if installed else None)
            except CouldNotLook:
                continue
            if user in there.approved.get(platform, ()):
                found.append(there.folder)
        return [self.home.name_of(folder) for folder in found]

    @once(limit=2)
    def api_server(self) -> ApiServer | None:
        """The API server, if it would start."""
        from hermes_doctor.settings import api_server

        return api_server.find(self.resolved())

    @once(limit=3)
    def open_dashboards(self) -> list[Dashboard]:
        """Dashboards of this home that others can use without a password."""
        from hermes_doctor.probes import dashboards

        return dashboards.exposed(self.home)

    @once(limit=2)
    def tracked(self) -> list[str]:
        """Files with secrets that a git repository in the home keeps."""
        from hermes_doctor.probes import git_secrets

        return git_secrets.find(self.home)

    @once(limit=2)
    def shared_tokens(self) -> list[Shared]:
        """Bots of this home that another home under the same root has, too."""
        from hermes_doctor.probes import siblings

        return siblings.shared(self.home, self.settings())

    @once(limit=2)
    def in_config(self) -> list[Clear]:
        """Keys and tokens that stand in config.yaml as they are."""
        from hermes_doctor.settings import plain_secrets

        config = self.config()
        if config is None or not any(plain_secrets.suspects(config.values or {})):
            return []
        return list(plain_secrets.find(self.resolved().world))

    @once(limit=4)
    def in_logs(self) -> list[Leak]:
        """Secrets of this home that stand in its logs."""
        from hermes_doctor.probes import leaks

        return leaks.find(self.home, self.settings(), deep=self.deep)

    @once(limit=4)
    def platforms(self) -> list[Platform]:
        """The platforms that the gateway of this home starts."""
        from hermes_doctor.settings import platforms

        found = self.installation()
        return platforms.find(self.settings(), found.release if found else None)

    @once(limit=2)
    def breaks(self) -> list[Break]:
        """The platforms that are set up and that the installed release cannot start at all."""
        from hermes_doctor.installation import known_breaks
        from hermes_doctor.settings import platforms

        found = self.installation()
        if found is None:
            return []
        return known_breaks.find(found, [one.name for one in platforms.find(self.settings(), None)])

    @once(limit=2)
    def library_path(self, name: str) -> Path | None:
        """Where the installed Hermes has a library; None when it has none, or cannot be found."""
        found = self.installation()
        places = found.where.glob(f"lib/python3*/site-packages/{name}") if found else iter(())
        return next(places, None)

    @once(limit=2)
    def packages(self) -> Packages | None:
        """The packages beside the installed Hermes; None where its environment is not known."""
        from hermes_doctor.installation import packages

        found = self.installation()
        return packages.beside(found.where) if found else None

    @once(limit=6)
    def program(self, name: str) -> Program:
        """Where the gateway finds a program that it starts."""
        from hermes_doctor.probes import programs

        return programs.find(self, name)

    def claims(self, gateway: Gateway) -> Mapping[str, PlatformState] | None:
        """What a running gateway says of its platforms; None when the file is not its own."""
        from hermes_doctor.probes import claims

        return claims.valid(self.runtime(), gateway)

    @once(limit=2)
    def connections(self, pid: int) -> list[Connection]:
        """The network connections of a process."""
        from hermes_doctor.processes import sockets

        return sockets.of(pid)

    @once(limit=6)
    def links(self, pid: int, held: frozenset[str]) -> list[Link]:
        """Which platform has which connections, with some patience for those that are `held`."""
        from hermes_doctor.probes import links
        from hermes_doctor.processes import sockets
        from hermes_doctor.settings import provider_hosts

        others = provider_hosts.find(self.settings()).values()
        addresses = {
            one.target.endpoint.host: one.addresses
            for one in (self.reach() if self.network else ())
            if one.addresses
        }
        return links.watch(
            lambda: sockets.of(pid),
            lambda found: links.assign(self.platforms(), found, others=others, addresses=addresses),
            held,
        )

    @once(limit=2)
    def listeners(self, pid: int) -> list[Connection]:
        """Whatever listens in the network that a process lives in, whoever's it is."""
        from hermes_doctor.processes import sockets

        return sockets.listeners(pid)

    @once(limit=3)
    def socket_owner(self, inode: int) -> int | None:
        """The process that has a socket open, as far as we may see."""
        from hermes_doctor.processes import sockets

        return sockets.owner(inode)

    @once(limit=2)
    def last_words(self, gateway: Gateway) -> list[Word]:
        """The latest lines that a running gateway wrote into its log, oldest first."""
        from hermes_doctor.probes import last_log_lines

        return last_log_lines.read(self.home, gateway.started_at)

    @once(limit=2)
    def bot_holders(self) -> list[Holder]:
        """Who holds the identities of the bots that are set up here."""
        from hermes_doctor.probes import bot_locks

        return bot_locks.holders(self.settings(), self.gateway_user().uid)

    @once(limit=2)
    def bundle_fault(self, path: str) -> str | None:
        """What is wrong with a file that is to hold certificates; None when nothing is."""
        from hermes_doctor.probes.network import bundles

        gateways = self.gateways()
        return bundles.fault(path, gateways[0].pid if gateways else None)

    @once(limit=8)
    def reach(self) -> list[Reached]:
        """Whether every host that the gateway needs can be reached; asked only with --network."""
        from hermes_doctor.probes.network import provider_trial, reach
        from hermes_doctor.settings import provider_hosts

        if not self.network:
            raise CouldNotLook("the network is asked only with --network")
        settings = self.settings()
        try:
            found, guessed = provider_trial.targets(self.resolved(), settings), {}
        except CouldNotLook:
            found, guessed = [], provider_hosts.find(settings)
        return reach.look(reach.targets(settings, self.platforms(), guessed, found), settings)

    @once(limit=18)
    def trials(self) -> list[Trial]:
        """How each provider that a message may use answers; asked only with --network."""
        from hermes_doctor.probes.network import provider_trial

        if not self.network:
            raise CouldNotLook("the network is asked only with --network")
        from hermes_doctor.probes.network import request

        return provider_trial.look(request.requests(self.resolved()), self.settings())

    @once(limit=8)
    def pulse(self) -> Pulse:
        """Whether the event loop of the gateway turns; without one nobody can be asked."""
        gateways = self.gateways()
        from hermes_doctor.probes import pulse
        from hermes_doctor.processes import listeners

        if not gateways:
            if not (url := self._health_url()):
                raise CouldNotLook("no gateway is seen to run")
            return pulse.elsewhere(url, network=self.network)
        runtime = self.runtime()
        pids = [gateway.pid for gateway in gateways]
        pid = runtime.lock_holder if runtime.lock_holder in pids else pids[0]
        vitals = self.vitals(pid)
        env, config = self.env(), self.config()
        ports = pulse.ports(
            vitals.environment, (env and env.text) or "", (config and config.values) or {}
        )
        return pulse.take(
            *(vitals, runtime, listeners.of(pid), ports, self.space()),
            closed=lambda: pulse.closed_to(self.gateway_user(), self.home / "state"),
        )

    def _health_url(self) -> str:
        """The address of a gateway elsewhere, if it is this home's: its own .env names it, or our
        environment while no other home is looked at; and no gateway of another home is there."""
        from hermes_doctor.probes import port_owner
        from hermes_doctor.settings import variables

        name = "GATEWAY_HEALTH_URL"
        env = self.env()
        own = variables.parse((env and env.text) or "") if env else {}
        url = own.get(name) or (os.environ.get(name, "") if self.alone else "")
        return "" if port_owner.is_of_another(url.strip(), self.home.path) else url.strip()

    @once(limit=2)
    def space(self) -> Space:
        """What is left on the disk of this home for ordinary processes."""
        from hermes_doctor.system import space

        return space.of(self.home.path)

    @once(limit=2)
    def logs(self) -> list[LogFile]:
        """The files among the logs, largest first."""
        from hermes_doctor.probes import oversized_files

        return oversized_files.logs(self.home)

    @once(limit=2)
    def dumps(self) -> Dumps:
        """The requests that Hermes dumped."""
        from hermes_doctor.probes import oversized_files

        return oversized_files.dumps(self.home)

    @once(limit=2)
    def orphans(self) -> list[Orphan]:
        """Processes that an earlier gateway of this home left behind."""
        from hermes_doctor.probes import orphans

        running = [gateway.pid for gateway in self.gateways()]
        return [*orphans.servers(self.home, running), *orphans.browsers(self.diary())]

    @once(limit=2)
    def traffic(self) -> Traffic:
        """The last message that came in and the last answer that went out."""
        from hermes_doctor.probes import traffic

        return traffic.read(self.home)

    def entries(
        self,
        since: float,
        wanted: Wanted | None = None,
        *,
        records_since: float | None = None,
        most: int | None,
    ) -> Reading:
        """What was written down about the gateway since then; read anew each time."""
        from hermes_doctor.logs import stream

        try:
            owner = self.supervision().owner
        except CouldNotLook:  # said by the checks that are about it
            owner = None
        return stream.read(
            self.home,
            since=since,
            records_since=records_since,
            most=most,
            wanted=wanted,
            zone=self._zone(),
            units=[owner] if owner else [],
        )

    def _zone(self) -> tzinfo | None:
        """The time zone of the gateway that runs; None: what it wrote tells."""
        from hermes_doctor.logs import time_zones

        try:
            for gateway in self.gateways():
                return time_zones.of_process(gateway.pid, self.vitals(gateway.pid).environment)
        except CouldNotLook:
            return None
        return None

    @once(limit=2)
    def code_change(self) -> Change | None:
        """When the code that the gateway of this home runs was last changed on disk."""
        from hermes_doctor.installation import changes

        found = self.installation()
        return changes.code(found.where) if found else None

    @once(limit=2)
    def last_update(self) -> Change | None:
        """The last update that Hermes itself finished."""
        from hermes_doctor.installation import changes

        return changes.update(self.home)

    def modified(self, path: Path) -> datetime | None:
        """When a file was last written."""
        from hermes_doctor.installation import changes

        return changes.modified(path)

    @once(limit=3)
    def installation(self) -> Installation | None:
        """The Hermes that runs here, or the newest one installed; None when there is none."""
        from hermes_doctor.installation import find

        return find.find(self.home, self.gateways)

    @once(limit=2)
    def left_down(self) -> LeftDown | None:
        """The run of this tool that stopped the gateway last and could not start it again."""
        from hermes_doctor.records import unfinished

        return unfinished.left_down(self.home)

    @once(limit=2)
    def guarded_update(self) -> Update | None:
        """The last update of Hermes that was made under the guard."""
        if not os.path.isdir(self.home.vault / "updates"):
            return None
        from hermes_doctor.records.updates import Records

        return Records(self.home).last()

    @once(limit=2)
    def unfinished_runs(self) -> list[UnfinishedRun]:
        """Runs of this tool that were cut off."""
        from hermes_doctor.records import unfinished

        return unfinished.unfinished(self.home)

    @once(limit=2)
    def saved_logs(self) -> list[SavedLog]:
        """Backups of deleted write-ahead logs whose rows may not be in the database."""
        if not os.path.isdir(self.home.runs):
            return []
        from hermes_doctor.records import saved_logs

        return saved_logs.unsettled(self.home)

    @once(limit=8)
    def unrestored(self) -> list[Unrestored | CouldNotLook]:
        """Rows of such backups that the live databases lack."""
        logs = self.saved_logs()
        if not logs:
            return []
        from hermes_doctor.probes import unrestored_rows

        return list(unrestored_rows.find(self, logs))
