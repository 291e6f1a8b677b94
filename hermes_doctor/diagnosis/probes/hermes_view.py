"""The parts of `Probes` about the installed Hermes, and the settings that the gateway uses."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook, known_or
from hermes_doctor.core.system import root_parent
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.diagnosis.probes.scope import View
from hermes_doctor.hermes.knowledge import releases
from hermes_doctor.hermes.knowledge.releases import NEWEST
from hermes_doctor.hermes.settings import config_yaml, env_file, platforms

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_doctor.core.file_copies import TextCopy
    from hermes_doctor.core.home import Home
    from hermes_doctor.diagnosis.probes.file_permissions import SecretFile
    from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
    from hermes_doctor.diagnosis.probes.other_homes import BotHolder, SharedBot
    from hermes_doctor.diagnosis.probes.programs import Program
    from hermes_doctor.diagnosis.probes.scope import Scope
    from hermes_doctor.hermes.installation.find import Installation
    from hermes_doctor.hermes.installation.last_update import (
        FileChange,
        PendingRestart,
        UpdateReceipt,
        UpdateRun,
    )
    from hermes_doctor.hermes.installation.packages import Break, Packages
    from hermes_doctor.hermes.installation.virtualenv import Environments
    from hermes_doctor.hermes.settings.admission import PlatformAdmission
    from hermes_doctor.hermes.settings.config_yaml import ConfigFile, OldSettings
    from hermes_doctor.hermes.settings.credential_pool import PlainSecret
    from hermes_doctor.hermes.settings.env_file import EnvFile
    from hermes_doctor.hermes.settings.inputs import Settings
    from hermes_doctor.hermes.settings.platform_setup import ApiServer
    from hermes_doctor.hermes.settings.platforms import Platform
    from hermes_doctor.hermes.settings.resolved import Resolved


class HermesView(View):
    """The installed Hermes: its release, its libraries, its updates."""

    def __init__(self, scope: Scope, gateway: GatewayView) -> None:
        super().__init__(scope)
        self._gateway = gateway

    @once(limit=3)
    def installation(self) -> Installation | None:
        """The Hermes that runs here, or the newest one installed; None if there is none."""
        from hermes_doctor.hermes.installation import find

        installation = find.find_installation(self.home, self._gateway.running)
        _use_what_was_learned(installation, self.home)
        return installation

    def release(self) -> tuple[int, ...] | None:
        """The release of the installation; None if there is none."""
        installation = self.installation()
        return installation.release if installation else None

    def choose_knowledge(self) -> None:
        """Use what was learned from the installed Hermes, before checks run side by side."""
        if root_parent.is_separate() or os.path.isdir(releases.learned_folder()):
            with contextlib.suppress(CouldNotLook):
                self.installation()

    def is_release_known(self) -> bool:
        """Whether the installed release is not newer than the newest that this tool knows."""
        installation = self.installation()
        return installation is not None and installation.release <= NEWEST

    @once(limit=3)
    def environments(self) -> Environments:
        """The virtual environments that the gateway was, or would be, started from."""
        from hermes_doctor.hermes.installation import virtualenv

        if self.home.is_example:
            return virtualenv.Environments((), (), (), None)
        return virtualenv.find(
            self._gateway.supervision(), self.installation(), deep=self.scope.deep
        )

    @once(limit=2)
    def packages(self) -> Packages | None:
        """The packages installed with Hermes; None if its environment is unknown."""
        from hermes_doctor.hermes.installation import packages as packages_module

        installation = self.installation()
        return packages_module.read_packages(installation.where) if installation else None

    @once(limit=2)
    def library_path(self, name: str) -> Path | None:
        """The path of a library in the installed Hermes; None if it was not found."""
        installation = self.installation()
        places = (
            installation.where.glob(f"lib/python3*/site-packages/{name}")
            if installation
            else iter(())
        )
        return next(places, None)

    @once(limit=2)
    def code_change(self) -> FileChange | None:
        """When the code that this home's gateway runs was last changed on disk."""
        from hermes_doctor.hermes.installation import last_update as last_update_module

        installation = self.installation()
        return last_update_module.code_change(installation.where) if installation else None

    @once(limit=2)
    def code_commit(self) -> str | None:
        """The commit of the checkout that Hermes is installed from; None if there is none."""
        from hermes_doctor.hermes.installation import details

        installation = self.installation()
        return details.read_details(installation).revision if installation else None

    @once(limit=2)
    def last_update(self) -> FileChange | None:
        """The last update that Hermes itself finished."""
        from hermes_doctor.hermes.installation import last_update as last_update_module

        return last_update_module.last_update(self.home)

    @once(limit=2)
    def update_receipt(self) -> UpdateReceipt | None:
        """What the last `hermes update` wrote about itself."""
        from hermes_doctor.hermes.installation import last_update as last_update_module

        return last_update_module.read_receipt(self.home)

    @once(limit=3)
    def update_run(self) -> UpdateRun | None:
        """The last run of `hermes update` by its log, and whether it ended."""
        from hermes_doctor.hermes.installation import last_update as last_update_module

        return last_update_module.read_update_run(self.home)

    @once(limit=2)
    def pending_restart(self) -> PendingRestart | None:
        """The marker of an update that has not restarted the gateways."""
        from hermes_doctor.hermes.installation import last_update as last_update_module

        return last_update_module.read_pending(self.home)


def _use_what_was_learned(installation: Installation | None, home: Home) -> None:
    """Use what `hermes-doctor learn` stored about this Hermes; one stat if there is nothing.

    A known version is looked up too: a checkout has the version of the last release before it.
    """
    learned, separate = None, root_parent.is_separate()
    if installation and (separate or os.path.isdir(releases.learned_folder())):
        from hermes_doctor.hermes.installation.details import read_details

        version, revision = installation.version, read_details(installation).revision
        if separate:
            said = root_parent.ask_root("learned", version, revision)
            learned = releases.parse_learned(said) if said else None
        else:
            path = releases.learned_path(version, revision, os.stat(home.path).st_uid)
            learned = releases.load_learned(path) if path else None
    releases.use(learned)


class SettingsView(View):
    """The settings that the gateway uses, and what follows from them."""

    def __init__(self, scope: Scope, gateway: GatewayView, hermes: HermesView) -> None:
        super().__init__(scope)
        self._gateway = gateway
        self._hermes = hermes

    @once(limit=2)
    def config(self) -> ConfigFile | None:
        """config.yaml, parsed or with the position of the error; None if it is missing."""
        return config_yaml.read(self.home)

    @once(limit=4)
    def config_copies(self) -> list[TextCopy]:
        """Older copies of config.yaml that do parse, newest first."""
        from hermes_doctor.backup.vault import copies as backup_copies

        return backup_copies.config_copies(self.home)

    @once(limit=2)
    def env(self) -> EnvFile | None:
        """.env as bytes with its encoding; None if it is missing."""
        return env_file.read(self.home)

    @once(limit=2, what="old settings")
    def gateway_json(self) -> OldSettings | None:
        """gateway.json of an older set-up; None if it is missing."""
        return config_yaml.read_gateway_json(self.home)

    @once(limit=4, what="settings")
    def effective(self) -> Settings:
        """The gateway's variables and config.yaml, including secrets."""
        from hermes_doctor.diagnosis.probes import setting_inputs

        return setting_inputs.read_effective(self._gateway.start_environment, self.env, self.config)

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
        return platforms.find(self.effective(), self._hermes.release())

    @once(limit=2)
    def breaks(self) -> list[Break]:
        """The configured platforms that the installed release cannot start."""
        from hermes_doctor.hermes.installation import packages

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
        from hermes_doctor.hermes.settings import credential_pool

        config = self.config()
        if config is None or not any(credential_pool.suspected_secrets(config.values or {})):
            return []
        return list(credential_pool.find_plain_secrets(self.resolved().world))

    def exposed_config(self) -> SecretFile | None:
        """config.yaml and who may read it, if it contains plain secrets and others may."""
        from hermes_doctor.diagnosis.probes import file_permissions

        file = file_permissions.examine_file(self.home / "config.yaml")
        return known_or(
            None, lambda: file if file and file.wide and self.plain_secrets() else None
        )  # reported by other checks

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
