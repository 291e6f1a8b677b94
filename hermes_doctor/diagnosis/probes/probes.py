"""The class `Probes`, which answers the questions of checks and fixes about one home."""

from __future__ import annotations

import math

from hermes_doctor.core.home import Home
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.diagnosis.probes.databases_view import DatabasesView
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView, RecordsView
from hermes_doctor.diagnosis.probes.health_view import HealthView
from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.diagnosis.probes.logs_view import LogsView
from hermes_doctor.diagnosis.probes.machine_view import FilesView, MachineView
from hermes_doctor.diagnosis.probes.scope import Scope
from hermes_doctor.diagnosis.probes.settings_view import SettingsView
from hermes_doctor.diagnosis.probes.stores_view import StoresView


class Probes:
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
        scope = Scope(
            home,
            deep=deep,
            network=network,
            alone=alone,
            paid_requests=paid_requests,
            seconds=seconds,
        )
        self.home = home
        self.deep = deep
        self.network = network
        self.paid_requests = paid_requests
        self.cache = scope.cache
        self.machine = MachineView(scope)
        self.files = FilesView(scope)
        self.gateway = GatewayView(scope, self.machine)
        self.records = RecordsView(scope, self.gateway)
        self.hermes = HermesView(scope, self.gateway)
        self.settings = SettingsView(scope, self.gateway, self.hermes)
        self.logs = LogsView(scope, self.machine, self.gateway, self.settings)
        self.databases = DatabasesView(scope, self.gateway, self.hermes)
        self.stores = StoresView(
            scope,
            self.files,
            self.gateway,
            self.records,
            self.hermes,
            self.settings,
            self.databases,
        )
        self.health = HealthView(
            scope,
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
        """Why knowledge about releases does not apply to this home; None if it does."""
        from hermes_doctor.diagnosis.probes import newer_release

        return newer_release.reason(self.hermes, self.settings, self.databases)

    @once(limit=4)
    def can_learn(self) -> bool:
        """Whether `hermes-doctor learn` can ask the Hermes of this home for what is unknown."""
        from hermes_doctor.diagnosis.probes import newer_release

        return newer_release.can_learn(self.hermes)
