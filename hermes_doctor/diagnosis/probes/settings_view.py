"""The part of `Probes` about the settings that the gateway uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.diagnosis.probes.scope import View

if TYPE_CHECKING:
    from hermes_doctor.core.file_copies import TextCopy
    from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
    from hermes_doctor.diagnosis.probes.hermes_view import HermesView
    from hermes_doctor.diagnosis.probes.other_homes import BotHolder, SharedBot
    from hermes_doctor.diagnosis.probes.programs import Program
    from hermes_doctor.diagnosis.probes.scope import Scope
    from hermes_doctor.diagnosis.probes.secret_files import SecretFile
    from hermes_doctor.hermes.installation.packages import Break
    from hermes_doctor.hermes.settings.admission import PlatformAdmission
    from hermes_doctor.hermes.settings.config_yaml import ConfigFile, OldSettings
    from hermes_doctor.hermes.settings.env_file import EnvFile
    from hermes_doctor.hermes.settings.inputs import Settings
    from hermes_doctor.hermes.settings.keys import PlainSecret
    from hermes_doctor.hermes.settings.platform_setup import ApiServer
    from hermes_doctor.hermes.settings.platforms import Platform
    from hermes_doctor.hermes.settings.resolved import Resolved


class SettingsView(View):
    """The settings that the gateway uses, and what follows from them."""

    def __init__(self, scope: Scope, gateway: GatewayView, hermes: HermesView) -> None:
        super().__init__(scope)
        self._gateway = gateway
        self._hermes = hermes

    @once(limit=2)
    def config(self) -> ConfigFile | None:
        """config.yaml, parsed or with the position of the error; None if it is missing."""
        from hermes_doctor.hermes.settings import config_yaml

        return config_yaml.read(self.home)

    @once(limit=4)
    def config_copies(self) -> list[TextCopy]:
        """Older copies of config.yaml that do parse, newest first."""
        from hermes_doctor.backup.vault import copies as backup_copies

        return backup_copies.config_copies(self.home)

    @once(limit=2)
    def env(self) -> EnvFile | None:
        """.env as bytes with its encoding; None if it is missing."""
        from hermes_doctor.hermes.settings import env_file

        return env_file.read(self.home)

    @once(limit=2, what="old settings")
    def gateway_json(self) -> OldSettings | None:
        """gateway.json of an older set-up; None if it is missing."""
        from hermes_doctor.hermes.settings import config_yaml

        return config_yaml.read_gateway_json(self.home)

    @once(limit=4, what="settings")
    def effective(self) -> Settings:
        """The gateway's variables and config.yaml, including secrets."""
        from hermes_doctor.diagnosis.probes import effective_settings

        return effective_settings.read(self._gateway.start_environment, self.env, self.config)

    @once(limit=4)
    def resolved(self) -> Resolved:
        """The settings that the next message would use, and where each value comes from."""
        from hermes_doctor.diagnosis.probes import setting_inputs
        from hermes_doctor.hermes.settings import resolved as resolved_module

        return resolved_module.resolve_settings(
            *setting_inputs.read_inputs(
                self.home,
                self._gateway.start_environment,
                self._hermes.installation(),
                self.config(),
                self.env(),
            )
        )

    @once(limit=2, what="doors")
    def admissions(self) -> list[PlatformAdmission]:
        """The platforms that check users, with the users they would let in."""
        from hermes_doctor.hermes.settings import admission

        return list(admission.platform_admissions(self.resolved()))

    @once(limit=4)
    def platforms(self) -> list[Platform]:
        """The platforms that the gateway of this home starts."""
        from hermes_doctor.hermes.settings import platforms

        installation = self._hermes.installation()
        return platforms.find(self.effective(), installation.release if installation else None)

    @once(limit=2)
    def breaks(self) -> list[Break]:
        """The configured platforms that the installed release cannot start."""
        from hermes_doctor.hermes.installation import packages
        from hermes_doctor.hermes.settings import platforms

        installation = self._hermes.installation()
        if installation is None:
            return []
        return packages.known_breaks(
            installation, [platform.name for platform in platforms.find(self.effective(), None)]
        )

    def is_managed(self) -> bool:
        """Whether a package manager writes this home, according to Hermes' own marks."""
        if snapshot(self.home / ".managed").kind != "absent":
            return True
        return bool(self._gateway.start_environment().get("HERMES_MANAGED", "").strip())

    def is_sandboxed(self) -> bool:
        """Whether the bot's commands run somewhere else than on this machine."""
        from hermes_doctor.hermes.settings import admission

        return admission.is_sandboxed(self.resolved().world)

    def ignored_lists(self, platform: str, user: str) -> list[str]:
        """Places in config.yaml that name a user but do not let them in."""
        from hermes_doctor.hermes.settings import admission

        return [
            source.place
            for source in admission.ignored_mentions(self.resolved().world, platform, user)
        ]

    @once(limit=2)
    def api_server(self) -> ApiServer | None:
        """The API server, if it would start."""
        from hermes_doctor.hermes.settings import platform_setup

        return platform_setup.find_api_server(self.resolved())

    @once(limit=2, what="in config")
    def plain_secrets(self) -> list[PlainSecret]:
        """Keys and tokens in plain text in config.yaml."""
        from hermes_doctor.hermes.settings import keys

        config = self.config()
        if config is None or not any(keys.suspected_secrets(config.values or {})):
            return []
        return list(keys.find_plain_secrets(self.resolved().world))

    def exposed_config(self) -> SecretFile | None:
        """config.yaml and who may read it, if it contains plain secrets and others may."""
        from hermes_doctor.diagnosis.probes import secret_files

        file = secret_files.examine_file(self.home / "config.yaml")
        try:
            return file if file and file.wide and self.plain_secrets() else None
        except CouldNotLook:  # reported by other checks
            return None

    @once(limit=2, what="shared tokens")
    def shared_bots(self) -> list[SharedBot]:
        """Bots of this home that another home also uses: one under the same root, or running."""
        from hermes_doctor.diagnosis.probes import other_homes

        return other_homes.shared_bots(self.home, self.effective(), self._gateway.others())

    @once(limit=2)
    def bot_holders(self) -> list[BotHolder]:
        """The processes that hold the locks of this home's bots."""
        from hermes_doctor.diagnosis.probes import other_homes

        return other_homes.bot_holders(self.effective(), self._gateway.user().uid)

    @once(limit=6)
    def program(self, name: str) -> Program:
        """Where the gateway finds a program that it runs."""
        from hermes_doctor.diagnosis.probes import programs

        return programs.find(self._gateway, name)
