"""The class `Probes`, which answers the questions of checks and fixes about one home."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.diagnosis.probes.databases_view import DatabasesView
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView, RecordsView
from hermes_doctor.diagnosis.probes.health_view import HealthView
from hermes_doctor.diagnosis.probes.hermes_view import HermesView, SettingsView
from hermes_doctor.diagnosis.probes.machine_view import FilesView, MachineView
from hermes_doctor.diagnosis.probes.scope import Scope
from hermes_doctor.diagnosis.probes.stores_view import LogsView, StoresView
from hermes_doctor.hermes.knowledge import releases

HIGHEST_VERSION = 10_000
"""No release will have a higher version number; a higher one is damage."""


class Probes(Scope):
    """All facts that a check or a fix may ask for about one home, in one view a subject.

    A method of a view may be called from any thread, and raises `CouldNotLook` with the reason when
    there is no answer. An answer that takes time is looked up once and shared.
    """

    def __init__(
        self,
        home: Home,
        *,
        deep: bool = False,
        network: bool = False,
        alone: bool = True,
        paid_requests: bool = True,
        seconds: float = math.inf,
    ) -> None:
        super().__init__(
            home,
            deep=deep,
            network=network,
            alone=alone,
            paid_requests=paid_requests,
            seconds=seconds,
        )
        self.machine = MachineView(self)
        self.files = FilesView(self)
        self.gateway = GatewayView(self, self.machine)
        self.records = RecordsView(self, self.gateway)
        self.hermes = HermesView(self, self.gateway)
        self.settings = SettingsView(self, self.gateway, self.hermes)
        self.logs = LogsView(self, self.machine, self.gateway, self.settings)
        self.databases = DatabasesView(self, self.gateway, self.hermes)
        self.stores = StoresView(
            self,
            self.files,
            self.gateway,
            self.records,
            self.hermes,
            self.settings,
            self.databases,
        )
        self.health = HealthView(
            self,
            self.machine,
            self.files,
            self.gateway,
            self.hermes,
            self.settings,
            self.logs,
        )

    def close(self) -> None:
        """Close every database; the answers are kept."""
        self.databases.close()

    def progress(self) -> str:
        """The progress of the examinations of large databases."""
        return self.databases.progress()

    @once(limit=4)
    def newer(self) -> str | None:
        """Why knowledge about releases does not apply to this home; None if it does.

        The files that Hermes wrote count too, because the Hermes that uses a home may be in a
        container or not the one that was found here.
        """
        installed = self.hermes.installation()
        learned = releases.learned_of(installed.release) if installed else None
        if installed is not None and installed.release > releases.NEWEST and learned is None:
            return text(
                "Hermes {version} is newer than hermes-doctor knows", version=installed.version
            )
        config, schema = (learned.config, learned.schema) if learned else (0, 0)
        if _is_beyond(self._config_version, max(config, releases.NEWEST_CONFIG)):
            return "config.yaml is from a newer Hermes than hermes-doctor knows"
        if _is_beyond(self._schema_version, max(schema, releases.NEWEST_SCHEMA)):
            return "state.db is from a newer Hermes than hermes-doctor knows"
        return None

    def _config_version(self) -> Any:
        values = self.settings.resolved().world.document.values
        return values.get("_config_version") if values else None

    def _schema_version(self) -> Any:
        path = self.home / "state.db"
        return self.databases.schema(path).version if path in self.databases.files().paths else None

    @once(limit=4)
    def can_learn(self) -> bool:
        """Whether `hermes-doctor learn` can ask the Hermes of this home for what is unknown.

        A release in the files of this tool has nothing to add, but a checkout may differ from it.
        """
        from hermes_doctor.hermes.installation.details import read_details

        installation = self.hermes.installation()
        return installation is not None and (
            installation.version not in releases.shipped_releases()
            or read_details(installation).revision is not None
        )


def _is_beyond(read_version: Callable[[], Any], newest: int) -> bool:
    """Whether a version is newer; it is not if it cannot be read."""
    try:
        version = read_version()
    except (CouldNotLook, FileNotFoundError):
        return False
    return type(version) is int and newest < version <= HIGHEST_VERSION
