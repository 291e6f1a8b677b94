"""The part of `Probes` about the installed Hermes and its libraries."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes.gateway import GatewayProbes
from hermes_doctor.system import root_parent
from hermes_doctor.system.once import once

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.installation.changes import FileChange
    from hermes_doctor.installation.find import Installation
    from hermes_doctor.installation.packages import Packages
    from hermes_doctor.installation.update_receipt import PendingRestart, Receipt
    from hermes_doctor.installation.update_run import UpdateRun
    from hermes_doctor.installation.virtualenv import Environments
    from hermes_doctor.probes.other_gateways import OtherGateway
    from hermes_doctor.probes.unsaved_turns import UnsavedTurns
    from hermes_doctor.records.updates import Update


class InstalledProbes(GatewayProbes):
    """The installed Hermes: its release, its libraries, its updates."""

    @once(limit=3)
    def installation(self) -> Installation | None:
        """The Hermes that runs here, or the newest one installed; None if there is none."""
        from hermes_doctor.installation import find

        found = find.find_installation(self.home, self.gateways)
        _use_what_was_learned(found, self.home)
        return found

    def choose_knowledge(self) -> None:
        """Use what was learned from the installed Hermes, before checks run side by side."""
        from hermes_doctor.knowledge import data

        if root_parent.is_separate() or os.path.isdir(data.learned_folder()):
            with contextlib.suppress(CouldNotLook):
                self.installation()

    @once(limit=4)
    def unsaved(self) -> UnsavedTurns:
        """Messages that Hermes kept in files because it could not save them."""
        from hermes_doctor.probes import unsaved_turns

        try:
            found = self.installation()
        except CouldNotLook:
            found = None
        release = found.release if found else None
        return unsaved_turns.find(self.home, release, self.session_names)

    @once(limit=2)
    def copied_from(self) -> OtherGateway | None:
        """The running gateway of another home that the files of this home name."""
        from hermes_doctor.probes import other_gateways

        found = self.installation()
        return other_gateways.named_in(self.home, self.runtime(), found.release if found else None)

    def is_release_known(self) -> bool:
        """Whether the installed release is not newer than the newest that this tool knows."""
        from hermes_doctor.knowledge.data import NEWEST

        found = self.installation()
        return found is not None and found.release <= NEWEST

    @once(limit=3)
    def environments(self) -> Environments:
        """The virtual environments that the gateway was, or would be, started from."""
        from hermes_doctor.installation import virtualenv

        if self.home.is_example:
            return virtualenv.Environments((), (), (), None)
        return virtualenv.find(self.supervision(), self.installation(), deep=self.deep)

    @once(limit=2)
    def packages(self) -> Packages | None:
        """The packages installed with Hermes; None if its environment is unknown."""
        from hermes_doctor.installation import packages

        found = self.installation()
        return packages.read_packages(found.where) if found else None

    @once(limit=2)
    def library_path(self, name: str) -> Path | None:
        """The path of a library in the installed Hermes; None if it was not found."""
        found = self.installation()
        places = found.where.glob(f"lib/python3*/site-packages/{name}") if found else iter(())
        return next(places, None)

    @once(limit=2)
    def code_change(self) -> FileChange | None:
        """When the code that this home's gateway runs was last changed on disk."""
        from hermes_doctor.installation import changes

        found = self.installation()
        return changes.code_change(found.where) if found else None

    @once(limit=2)
    def code_commit(self) -> str | None:
        """The commit of the checkout that Hermes is installed from; None if there is none."""
        from hermes_doctor.installation import details

        found = self.installation()
        return details.read_details(found).revision if found else None

    @once(limit=2)
    def last_update(self) -> FileChange | None:
        """The last update that Hermes itself finished."""
        from hermes_doctor.installation import changes

        return changes.last_update(self.home)

    @once(limit=2)
    def update_receipt(self) -> Receipt | None:
        """What the last `hermes update` wrote about itself."""
        from hermes_doctor.installation import update_receipt

        return update_receipt.read_receipt(self.home)

    @once(limit=3)
    def update_run(self) -> UpdateRun | None:
        """The last run of `hermes update` by its log, and whether it ended."""
        from hermes_doctor.installation import update_run

        return update_run.read_run(self.home)

    @once(limit=2)
    def pending_restart(self) -> PendingRestart | None:
        """The marker of an update that has not restarted the gateways."""
        from hermes_doctor.installation import update_receipt

        return update_receipt.read_pending(self.home)

    @once(limit=2)
    def guarded_update(self) -> Update | None:
        """The last update of Hermes that was made with `hermes-doctor update-guard`."""
        if not os.path.isdir(self.home.vault / "updates"):
            return None
        from hermes_doctor.records.updates import UpdateRecords

        return UpdateRecords(self.home).last()


def _use_what_was_learned(found: Installation | None, home: Home) -> None:
    """Use what `hermes-doctor learn` stored about this Hermes; one stat if there is nothing.

    A known version is looked up too: a checkout has the version of the last release before it.
    """
    from hermes_doctor.knowledge import data

    separate = root_parent.is_separate()
    if found is None or not (separate or os.path.isdir(data.learned_folder())):
        data.use(None)
        return
    from hermes_doctor.installation.details import read_details
    from hermes_doctor.knowledge import learned

    if separate:
        said = root_parent.ask_root("learned", found.version, read_details(found).revision)
        data.use(learned.parse(said) if said else None)
        return
    path = learned.path_of(found.version, read_details(found).revision, os.stat(home.path).st_uid)
    data.use(learned.load(path) if path else None)
