"""The part of `Probes` about the stores: the JSON files of Hermes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes.database_files import DatabaseProbes
from hermes_doctor.system.once import once

if TYPE_CHECKING:
    from hermes_doctor.probes.cron import CronJob, Ticker, UndeliverableTarget
    from hermes_doctor.stores.best_repair import Repair
    from hermes_doctor.stores.chats import UnknownPlatform
    from hermes_doctor.stores.pairing import Pairing
    from hermes_doctor.stores.store_file import StoreFile, Stores


class StoreProbes(DatabaseProbes):
    """The stores of a home: jobs, chats, pairing."""

    @once(limit=3)
    def stores(self) -> Stores:
        """The stores of this home, examined, including secrets."""
        from hermes_doctor.stores import store_file

        found = self.installation()
        return store_file.find(self.home, found.release if found else None)

    def strangers(self) -> list[UnknownPlatform]:
        """The platforms of chats that the installed Hermes does not know."""
        from hermes_doctor.stores import chats

        file, found = self.stores().of("sessions"), self.installation()
        if file is None or found is None:
            return []
        known = chats.unknown_platforms(file.values, found.release)
        own = {one.name for one in known if not one.since and self._plugged_in(one.name)}
        return [one for one in known if one.name not in own]

    def _plugged_in(self, platform: str) -> bool:
        """Whether a platform may come from a plugin of Hermes."""
        from hermes_doctor.system.files import list_folder

        config = self.settings().config
        blocks = [config.get(key) for key in ("platforms", "gateway")]
        named = any(isinstance(block, dict) and platform in str(block) for block in blocks)
        plugins = list_folder(self.home / "plugins") or config.get("plugins")
        return bool(plugins) or platform in config or named

    @once(limit=3)
    def jobs(self) -> list[CronJob]:
        """The enabled scheduled jobs, if their list can be read."""
        listed = self.stores().of("jobs")
        if listed is None:
            return []
        from hermes_doctor.probes import cron

        return cron.jobs(listed)

    @once(limit=2)
    def ticker(self) -> Ticker:
        """When the ticker last looked for jobs."""
        from hermes_doctor.probes import cron

        return cron.ticker(self.home)

    @once(limit=4)
    def undeliverable(self) -> list[tuple[CronJob, UndeliverableTarget]]:
        """The jobs whose results cannot be delivered, also with the service's environment."""
        from hermes_doctor.probes import cron
        from hermes_doctor.settings import platforms

        found = self.installation()
        release = found.release if found else None
        settings = self.settings()
        ready = frozenset(one.name for one in self.platforms())
        lost = cron.undeliverable(self.jobs(), settings, ready, release)
        owner = self.supervision().owner if lost and not self.gateways() else None
        if owner is not None and owner.environment:
            seen = settings._replace(variables={**owner.environment, **settings.variables})
            ready = frozenset(one.name for one in platforms.find(seen, release))
            lost = cron.undeliverable([job for job, _ in lost], seen, ready, release)
        return lost

    def script_fault(self, script: str) -> str | None:
        """Why a job's script cannot be run."""
        from hermes_doctor.probes import cron

        return cron.script_fault(self.home, script)

    def zone_known(self, name: str) -> bool:
        """Whether there is a time zone of that name."""
        from hermes_doctor.probes import cron

        return cron.is_zone_known(name, self.library_path("tzdata"))

    def clock_in_utc(self) -> bool:
        """Whether the gateway's clock is in UTC."""
        from hermes_doctor.probes import cron

        return cron.is_clock_utc(self.settings(), running=bool(self.gateways()))

    @once(limit=2)
    def torn_transcripts(self) -> list[tuple[str, int]]:
        """Transcripts with unreadable lines, if this release still reads transcripts."""
        from hermes_doctor.stores import store_file

        found = self.installation()
        if found is None or found.release >= (0, 15):
            return []
        return store_file.count_invalid_transcript_lines(self.home, deep=self.deep)

    def store_repair(self, file: StoreFile) -> Repair | None:
        """The best repair of a damaged store: from its own bytes, else from the newest intact copy.

        For an intact store: the repair that merges what Hermes had set aside of it.
        """
        from hermes_doctor.stores import best_repair

        if file.flaw is None:
            return best_repair.restore_set_aside(self.home, file)
        return best_repair.best_repair(self.home, file)

    @once(limit=2)
    def pairing(self) -> Pairing:
        """The paired users of this home's gateway, and those who wait for approval."""
        from hermes_doctor.stores import pairing

        found = self.installation()
        return pairing.find(self.home.path, found.release if found else None)

    def paired_elsewhere(self, platform: str, user: str) -> list[str]:
        """Stores that this home's gateway does not read and in which a user is approved."""
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
