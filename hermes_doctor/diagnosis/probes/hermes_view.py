"""The part of `Probes` about the installed Hermes and its libraries."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import root_parent
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.diagnosis.probes.scope import View

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_doctor.core.home import Home
    from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
    from hermes_doctor.diagnosis.probes.scope import Scope
    from hermes_doctor.hermes.installation.find import Installation
    from hermes_doctor.hermes.installation.last_update import (
        FileChange,
        PendingRestart,
        UpdateReceipt,
        UpdateRun,
    )
    from hermes_doctor.hermes.installation.packages import Packages
    from hermes_doctor.hermes.installation.virtualenv import Environments


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

    def choose_knowledge(self) -> None:
        """Use what was learned from the installed Hermes, before checks run side by side."""
        from hermes_doctor.hermes.knowledge import data

        if root_parent.is_separate() or os.path.isdir(data.learned_folder()):
            with contextlib.suppress(CouldNotLook):
                self.installation()

    def is_release_known(self) -> bool:
        """Whether the installed release is not newer than the newest that this tool knows."""
        from hermes_doctor.hermes.knowledge.data import NEWEST

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
    from hermes_doctor.hermes.knowledge import data

    separate = root_parent.is_separate()
    if installation is None or not (separate or os.path.isdir(data.learned_folder())):
        data.use(None)
        return
    from hermes_doctor.hermes.installation.details import read_details
    from hermes_doctor.hermes.knowledge import data

    if separate:
        said = root_parent.ask_root(
            "learned", installation.version, read_details(installation).revision
        )
        data.use(data.parse_learned(said) if said else None)
        return
    path = data.learned_path(
        installation.version, read_details(installation).revision, os.stat(home.path).st_uid
    )
    data.use(data.load_learned(path) if path else None)
