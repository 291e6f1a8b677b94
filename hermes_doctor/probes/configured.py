"""The part of `Probes` about the settings that the gateway uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes.installed import InstalledProbes
from hermes_doctor.system.once import once

if TYPE_CHECKING:
    from hermes_doctor.installation.known_breaks import Break
    from hermes_doctor.probes.bot_locks import Holder
    from hermes_doctor.probes.dashboards import Dashboard
    from hermes_doctor.probes.leaks import Leak
    from hermes_doctor.probes.oversized_files import Dumps, LogFile
    from hermes_doctor.probes.programs import Program
    from hermes_doctor.probes.refusals import Refusal
    from hermes_doctor.probes.removable_files import RemovableFile
    from hermes_doctor.probes.secret_files import SecretFile
    from hermes_doctor.probes.siblings import SharedBot
    from hermes_doctor.probes.traffic import Traffic
    from hermes_doctor.settings.admission import PlatformAdmission
    from hermes_doctor.settings.api_server import ApiServer
    from hermes_doctor.settings.plain_secrets import PlainSecret
    from hermes_doctor.settings.platforms import Platform
    from hermes_doctor.settings.resolved import Resolved
    from hermes_doctor.settings.variables import Settings


class ConfiguredProbes(InstalledProbes):
    """The settings that the gateway uses, and what follows from them."""

    @once(limit=4)
    def settings(self) -> Settings:
        """The gateway's variables and config.yaml, including secrets."""
        from hermes_doctor.probes import effective_settings

        return effective_settings.read(self)

    @once(limit=4)
    def resolved(self) -> Resolved:
        """The settings that the next message would use, and where each value comes from."""
        from hermes_doctor.probes import setting_inputs
        from hermes_doctor.settings import resolved

        return resolved.of(*setting_inputs.read_inputs(self))

    @once(limit=2)
    def doors(self) -> list[PlatformAdmission]:
        """The platforms that check users, with the users they would let in."""
        from hermes_doctor.settings import admission

        return list(admission.platform_admissions(self.resolved()))

    @once(limit=4)
    def platforms(self) -> list[Platform]:
        """The platforms that the gateway of this home starts."""
        from hermes_doctor.settings import platforms

        found = self.installation()
        return platforms.find(self.settings(), found.release if found else None)

    @once(limit=2)
    def breaks(self) -> list[Break]:
        """The configured platforms that the installed release cannot start."""
        from hermes_doctor.installation import known_breaks
        from hermes_doctor.settings import platforms

        found = self.installation()
        if found is None:
            return []
        return known_breaks.find(found, [one.name for one in platforms.find(self.settings(), None)])

    def is_sandboxed(self) -> bool:
        """Whether the bot's commands run somewhere else than on this machine."""
        from hermes_doctor.settings import admission

        return admission.is_sandboxed(self.resolved().world)

    def unread_lists(self, platform: str, user: str) -> list[str]:
        """Places in config.yaml that name a user but do not let them in."""
        from hermes_doctor.settings import admission

        return [
            one.place for one in admission.ignored_mentions(self.resolved().world, platform, user)
        ]

    @once(limit=2)
    def api_server(self) -> ApiServer | None:
        """The API server, if it would start."""
        from hermes_doctor.settings import api_server

        return api_server.find(self.resolved())

    @once(limit=3)
    def open_dashboards(self) -> list[Dashboard]:
        """Dashboards of this home that other machines can use without a password."""
        from hermes_doctor.probes import dashboards

        return dashboards.exposed_dashboards(self.home, self.command_lines())

    @once(limit=2)
    def shared_tokens(self) -> list[SharedBot]:
        """Bots of this home that another home also uses: one under the same root, or running."""
        from hermes_doctor.probes import siblings

        return siblings.shared_bots(self.home, self.settings(), self.other_gateways())

    @once(limit=2)
    def in_config(self) -> list[PlainSecret]:
        """Keys and tokens in plain text in config.yaml."""
        from hermes_doctor.settings import plain_secrets

        config = self.config()
        if config is None or not any(plain_secrets.suspects(config.values or {})):
            return []
        return list(plain_secrets.find(self.resolved().world))

    @once(limit=2)
    def bot_holders(self) -> list[Holder]:
        """The processes that hold the locks of this home's bots."""
        from hermes_doctor.probes import bot_locks

        return bot_locks.holders(self.settings(), self.gateway_user().uid)

    @once(limit=6)
    def program(self, name: str) -> Program:
        """Where the gateway finds a program that it runs."""
        from hermes_doctor.probes import programs

        return programs.find(self, name)

    @once(limit=2)
    def bundle_fault(self, path: str) -> str | None:
        """What is wrong with a certificate file; None if nothing is."""
        from hermes_doctor.probes.network import bundles

        gateways = self.gateways()
        return bundles.fault(path, gateways[0].pid if gateways else None)

    @once(limit=2)
    def logs(self) -> list[LogFile]:
        """The log files, largest first."""
        from hermes_doctor.probes import oversized_files

        return oversized_files.logs(self.home)

    @once(limit=2)
    def removable_files(self) -> list[RemovableFile]:
        """The files that may be deleted when the disk is full, the largest first."""
        from hermes_doctor.probes import removable_files

        return removable_files.removable_files(self.home, self.logs())

    @once(limit=2)
    def dumps(self) -> Dumps:
        """The requests that Hermes dumped to files."""
        from hermes_doctor.probes import oversized_files

        return oversized_files.dumps(self.home, self.session_names())

    @once(limit=2)
    def traffic(self) -> Traffic:
        """The last message that came in and the last answer that went out."""
        from hermes_doctor.probes import traffic

        return traffic.read(self.home)

    @once(limit=2)
    def traffic_since(self) -> float | None:
        """The time from which on `traffic` knows the messages."""
        from hermes_doctor.probes import traffic

        return traffic.first_time(self.home)

    @once(limit=2)
    def refusals(self) -> list[Refusal]:
        """The users whose messages the bot rejected within the last day, latest first."""
        from hermes_doctor.probes import refusals

        return refusals.find(self.home)

    @once(limit=4)
    def in_logs(self) -> list[Leak]:
        """Secrets of this home that its logs contain."""
        from hermes_doctor.probes import leaks

        return leaks.find(self.home, self.settings(), deep=self.deep)

    @once(limit=2)
    def secrets(self) -> list[SecretFile]:
        """The files that contain secrets, with who may read them."""
        from hermes_doctor.probes import secret_files

        return secret_files.find(self.home)

    def secret_config(self) -> SecretFile | None:
        """config.yaml and who may read it, if it contains plain secrets and others may."""
        from hermes_doctor.probes import secret_files

        file = secret_files.examine_file(self.home / "config.yaml")
        try:
            return file if file and file.wide and self.in_config() else None
        except CouldNotLook:  # reported by other checks
            return None

    @once(limit=2)
    def open_to(self) -> tuple[bool, bool]:
        """Whether all users of the machine and whether the group can enter the home."""
        from hermes_doctor.probes import secret_files

        try:
            return secret_files.who_can_enter(self.home.path)
        except OSError as error:
            raise CouldNotLook("could not read the permissions of the home") from error

    @once(limit=2)
    def tracked(self) -> list[str]:
        """Files with secrets that are tracked by a git repository in the home."""
        from hermes_doctor.probes import git_secrets

        return git_secrets.find(self.home)
