"""The parts of `Probes` about what Hermes writes: its logs, and its JSON files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hermes_doctor.core.model import CouldNotLook, known_or
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.core.system.files import list_folder
from hermes_doctor.diagnosis.probes.scope import View
from hermes_doctor.hermes.settings import platforms

if TYPE_CHECKING:
    from datetime import datetime, tzinfo
    from pathlib import Path

    from hermes_doctor.core.model import Gateway
    from hermes_doctor.diagnosis.probes.cron import CronJob, Ticker, UndeliverableTarget
    from hermes_doctor.diagnosis.probes.databases_view import DatabasesView
    from hermes_doctor.diagnosis.probes.gateway_view import GatewayView, RecordsView
    from hermes_doctor.diagnosis.probes.hermes_view import HermesView, SettingsView
    from hermes_doctor.diagnosis.probes.leaks import Leak
    from hermes_doctor.diagnosis.probes.log_tails import GatewayLogLine, Refusal, Traffic
    from hermes_doctor.diagnosis.probes.machine_view import FilesView, MachineView
    from hermes_doctor.diagnosis.probes.missing_rows import UnrestoredRows
    from hermes_doctor.diagnosis.probes.scope import Scope
    from hermes_doctor.diagnosis.probes.traces import EarlierPlatform
    from hermes_doctor.diagnosis.probes.unsaved_turns import UnsavedTurns
    from hermes_doctor.hermes.logs.entry import Wanted, WantedSince
    from hermes_doctor.hermes.logs.stream import LogStream
    from hermes_doctor.hermes.stores.best_repair import Repair
    from hermes_doctor.hermes.stores.pairing import Pairing
    from hermes_doctor.hermes.stores.store_file import StoreFile, Stores, UnknownChatPlatform
    from hermes_doctor.sqlite.saved_rows import RetiredRows
    from hermes_doctor.sqlite.unsaved_messages import UnsavedMessages


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
        from hermes_doctor.diagnosis.probes import log_tails

        return log_tails.read_traffic(self.home)

    @once(limit=2)
    def traffic_since(self) -> float | None:
        """The time from which on `traffic` knows the messages."""
        from hermes_doctor.diagnosis.probes import log_tails

        return log_tails.first_time(self.home)

    @once(limit=2)
    def refusals(self) -> list[Refusal]:
        """The users whose messages the bot rejected within the last day, latest first."""
        from hermes_doctor.diagnosis.probes import log_tails

        return log_tails.find_refusals(self.home)

    @once(limit=4, what="in logs")
    def secrets(self) -> list[Leak]:
        """Secrets of this home that its logs contain."""
        from hermes_doctor.diagnosis.probes import leaks

        return leaks.find_in_logs(self.home, self._settings.effective(), deep=self.scope.deep)

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

        owner = known_or(
            None, lambda: self._gateway.supervision().owner
        )  # reported by other checks
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

        gateways = known_or([], self._gateway.running)
        if not gateways:
            return None
        pid = gateways[0].pid
        return known_or(
            None, lambda: clock.zone_of_process(pid, self._machine.vitals(pid).environment)
        )

    @once(limit=2)
    def gateway_log(self) -> str:
        """The general log that has lines of a gateway, such as `logs/agent.log`; "" if none has."""
        from hermes_doctor.diagnosis.probes import log_tails

        return log_tails.log_with_gateway_lines(self.home)

    @once(limit=2, what="last words")
    def last_lines(self, gateway: Gateway) -> list[GatewayLogLine]:
        """The latest lines that a running gateway wrote into its log, oldest first."""
        from hermes_doctor.diagnosis.probes import log_tails

        return log_tails.read_last_lines(self.home, gateway.started_at)

    def last_start(self, since: datetime) -> datetime | None:
        """When a gateway last started after then, by its own log; None if no line says so."""
        from hermes_doctor.diagnosis.probes import log_tails

        return known_or(None, lambda: log_tails.last_start(self.home, since))


class StoresView(View):
    """What Hermes keeps in JSON files: jobs, chats, pairing, messages that it could not save."""

    def __init__(
        self,
        scope: Scope,
        files: FilesView,
        gateway: GatewayView,
        records: RecordsView,
        hermes: HermesView,
        settings: SettingsView,
        databases: DatabasesView,
    ) -> None:
        super().__init__(scope)
        self._files = files
        self._gateway = gateway
        self._records = records
        self._hermes = hermes
        self._settings = settings
        self._databases = databases

    @once(limit=3, what="stores")
    def files(self) -> Stores:
        """The stores of this home, examined, including secrets."""
        from hermes_doctor.hermes.stores import store_file

        return store_file.find_stores(self.home, self._hermes.release())

    def unknown_platforms(self) -> list[UnknownChatPlatform]:
        """The platforms of chats that the installed Hermes does not know."""
        from hermes_doctor.hermes.stores import store_file

        file, installation = self.files().of("sessions"), self._hermes.installation()
        if file is None or installation is None:
            return []
        known = store_file.unknown_chat_platforms(file.values, installation.release)
        own = {one.name for one in known if not one.since and self._plugged_in(one.name)}
        return [one for one in known if one.name not in own]

    def _plugged_in(self, platform: str) -> bool:
        """Whether a platform may come from a plugin of Hermes."""
        config = self._settings.effective().config
        blocks = [config.get(key) for key in ("platforms", "gateway")]
        named = any(isinstance(block, dict) and platform in str(block) for block in blocks)
        plugins = list_folder(self.home / "plugins") or config.get("plugins")
        return bool(plugins) or platform in config or named

    @once(limit=3)
    def jobs(self) -> list[CronJob]:
        """The enabled scheduled jobs, if their list can be read."""
        listed = self.files().of("jobs")
        if listed is None:
            return []
        from hermes_doctor.diagnosis.probes import cron

        return cron.jobs(listed)

    @once(limit=2)
    def ticker(self) -> Ticker:
        """When the ticker last looked for jobs."""
        from hermes_doctor.diagnosis.probes import cron

        return cron.ticker(self.home)

    @once(limit=4)
    def undeliverable(self) -> list[tuple[CronJob, UndeliverableTarget]]:
        """The jobs whose results cannot be delivered, also with the service's environment."""
        from hermes_doctor.diagnosis.probes import cron

        release = self._hermes.release()
        settings = self._settings.effective()
        ready = frozenset(platform.name for platform in self._settings.platforms())
        lost = cron.undeliverable(self.jobs(), settings, ready, release)
        owner = self._gateway.supervision().owner if lost and not self._gateway.running() else None
        if owner is not None and owner.environment:
            seen = settings._replace(variables={**owner.environment, **settings.variables})
            ready = frozenset(one.name for one in platforms.find(seen, release))
            lost = cron.undeliverable([job for job, _ in lost], seen, ready, release)
        return lost

    def script_fault(self, script: str) -> str | None:
        """Why a job's script cannot be run."""
        from hermes_doctor.diagnosis.probes import cron

        return cron.script_fault(self.home, script)

    def is_zone_known(self, name: str) -> bool:
        """Whether there is a time zone of that name."""
        from hermes_doctor.diagnosis.probes import cron

        return cron.is_zone_known(name, self._hermes.library_path("tzdata"))

    def is_clock_in_utc(self) -> bool:
        """Whether the gateway's clock is in UTC."""
        from hermes_doctor.diagnosis.probes import cron

        return cron.is_clock_utc(self._settings.effective(), running=bool(self._gateway.running()))

    @once(limit=2)
    def torn_transcripts(self) -> list[tuple[str, int]]:
        """Transcripts with unreadable lines, if this release still reads transcripts."""
        from hermes_doctor.hermes.stores import store_file

        release = self._hermes.release()
        if release is None or release >= (0, 15):
            return []
        return store_file.count_invalid_transcript_lines(self.home, deep=self.scope.deep)

    def repair(self, file: StoreFile) -> Repair | None:
        """The best repair of a damaged store: from its own bytes, else from the newest intact copy.

        For an intact store: the repair that merges what Hermes had set aside of it.
        """
        from hermes_doctor.backup.vault import copies
        from hermes_doctor.hermes.stores import best_repair

        if file.flaw is None:
            return best_repair.restore_set_aside(self.home, file)
        return best_repair.best_repair(file, partial(copies.intact_copies, self.home))

    @once(limit=2)
    def pairing(self) -> Pairing:
        """The paired users of this home's gateway, and those who wait for approval."""
        from hermes_doctor.hermes.stores import pairing

        return pairing.find(self.home.path, self._hermes.release())

    def paired_elsewhere(self, platform: str, user: str) -> list[str]:
        """Stores that this home's gateway does not read and in which a user is approved."""
        from hermes_doctor.diagnosis.probes import other_homes
        from hermes_doctor.hermes.stores import pairing

        own = self.pairing()
        paths = [own.other] if user in own.astray.get(platform, ()) else []
        release = self._hermes.release()
        for home in other_homes.homes_beside(self.home):
            try:
                there = pairing.find(home, release)
            except CouldNotLook:
                continue
            if user in there.approved.get(platform, ()):
                paths.append(there.folder)
        return [self.home.name_of(folder) for folder in paths]

    @once(limit=4)
    def earlier_platforms(self) -> list[EarlierPlatform]:
        """The platforms on which people talked to the bot of this home, as its files show."""
        from hermes_doctor.diagnosis.probes import traces

        try:
            sources = self._databases.rows(self.home / "state.db", traces.SOURCES, "sessions")
        except (CouldNotLook, FileNotFoundError):
            sources = []  # the checks of databases report why
        return traces.find_earlier_platforms(sources, self._gateway.runtime().platforms)

    @once(limit=4, what="unsaved")
    def unsaved_turns(self) -> UnsavedTurns:
        """Messages that Hermes kept in files because it could not save them."""
        from hermes_doctor.diagnosis.probes import unsaved_turns

        release = known_or(None, self._hermes.release)
        return unsaved_turns.find(self.home, release, self._files.session_names)

    @once(limit=8)
    def unsaved_messages(self) -> UnsavedMessages:
        """Messages of transcripts that Hermes wrote because it could not save them."""
        from hermes_doctor.diagnosis.probes import missing_rows

        return missing_rows.unsaved(self._databases, self.unsaved_turns())

    @once(limit=8)
    def retired_rows(self, folder: Path) -> RetiredRows:
        """Messages of a write-ahead log that Hermes set aside, and those that state.db lacks."""
        from hermes_doctor.diagnosis.probes import missing_rows

        return missing_rows.retired(self._databases, folder, patient=self.scope.deep)

    @once(limit=8)
    def unrestored(self) -> list[UnrestoredRows | CouldNotLook]:
        """Rows that backups of deleted write-ahead logs have and the live databases lack."""
        logs = self._records.saved_logs()
        if not logs:
            return []
        from hermes_doctor.diagnosis.probes import missing_rows

        return list(missing_rows.find_unrestored(self._databases, logs))
