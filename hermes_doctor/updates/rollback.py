"""Plans and runs the return to the Hermes that was installed before an update."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Sequence

from hermes_doctor.gateway.manager_commands import (
    CommandResult,
    login_environment,
    owner_of,
    run_command,
)
from hermes_doctor.home import Home
from hermes_doctor.installation.details import GIT, IMAGE, InstallationDetails
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import listed, text
from hermes_doctor.model import CannotFix
from hermes_doctor.probes.probes import Probes
from hermes_doctor.records.updates import Update
from hermes_doctor.sqlite.files import sidecars
from hermes_doctor.system import root_parent
from hermes_doctor.system.accounts import Account
from hermes_doctor.updates import (
    current_hermes,
    downtime,
    git_rollback,
    images,
    package_rollback,
    requirements,
)
from hermes_doctor.updates.git_rollback import CheckoutPlan

LIMIT = 1800.0
"""Seconds for a package manager to restore everything."""


class RollbackCommand(NamedTuple):
    """One command of the rollback."""

    words: tuple[str, ...]
    as_current_user: bool = False
    """Whether to run it as the current user, who alone may talk to the container engine."""

    def __str__(self) -> str:
        import shlex

        return shlex.join(self.words)


class Plan(NamedTuple):
    """The commands that restore the old Hermes; empty if it is installed already."""

    commands: tuple[RollbackCommand, ...] = ()
    notes: tuple[str, ...] = ()
    """Where to find what the commands put aside."""


def plan(home: Home, update: Update, after: InstallationDetails | None) -> Plan:
    """Plan without changing anything; raise CannotFix if there is no way back."""
    before = update.before
    if before is None:
        raise CannotFix(
            text(
                "The Hermes version before update {id} is unknown. Reinstall it yourself.",
                id=update.id,
            )
        )
    owner = owner_of(home)
    way = CheckoutPlan()
    if before.kind == GIT:
        way = git_rollback.checkout_rollback(before, after, update.id, owner)
    if images.is_container_image(before):
        return _exchange(home, update, before)
    if before.kind == IMAGE:
        if after is not None and _same(before, after):
            return Plan()
        raise CannotFix(
            text(
                "Hermes is part of a container image. Start the container from the image "
                "of {version}.",
                version=before.version,
            )
        )
    made = [*way.commands, *package_rollback.package_rollback(home, before, after, owner)]
    return _runnable([RollbackCommand(words) for words in made], way.notes)


def _exchange(home: Home, update: Update, before: InstallationDetails) -> Plan:
    """Plan the return to the previous container image."""
    made = images.image_rollback(home, before, update)
    note = f"{before.source} is the previous image again, for every container that uses it."
    return _runnable(
        [RollbackCommand(words, as_current_user=True) for words in made], (note,) if made else ()
    )


def _runnable(made: Sequence[RollbackCommand], notes: tuple[str, ...] = ()) -> Plan:
    for one in made:
        if shutil.which(one.words[0]) is None:
            raise CannotFix(
                text(
                    "{program} is needed to reinstall Hermes, but is not on the PATH. "
                    "Install it first.",
                    program=one.words[0],
                )
            )
    return Plan(tuple(made), notes)


def refuse_holders(home: Home, update: Update, *, keep_data: bool) -> None:
    """Raise if a process other than the gateways has a database open that will be restored."""
    from hermes_doctor.processes import gateway_processes

    halts = downtime.gateways_to_stop(
        home, update
    )  # raises before any change if one cannot be stopped
    if keep_data:
        return
    inside = [Probes(one) for one in downtime.affected_homes(home, update)]
    mine = {gateway.pid for probes in inside for gateway in probes.gateways()}

    def ends(pid: int) -> bool:
        return _is_below(pid, mine) or any(halt.service.also_stops(pid) for halt in halts)

    databases = [path for probes in inside for path in probes.databases().paths]
    names = {beside: path for path in databases for beside in (path, *sidecars(path))}
    for name, pids in gateway_processes.processes_using(names).items():
        others = [pid for pid in pids if pid not in mine and not ends(pid)]
        if others:
            who = ", ".join(str(pid) if pid else "of another container" for pid in sorted(others))
            raise CannotFix(
                text(
                    "Process {pid} has {file} open. Stop that process first.",
                    pid=who,
                    file=home.name_of(names[name]),
                )
            )


def _is_below(pid: int, above: Collection[int]) -> bool:
    """Whether a process is a descendant of one of these, so that it ends with it."""
    for _ in range(64):
        try:
            with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
        if pid in above:
            return True
    return False


def _same(before: InstallationDetails, after: InstallationDetails) -> bool:
    then = (before.version, before.revision, before.source, dict(before.packages))
    return then == (after.version, after.revision, after.source, dict(after.packages))


def restore_hermes(
    home: Home,
    commands: Sequence[RollbackCommand],
    before: InstallationDetails,
    report_progress: Callable[[str], None],
    *,
    lock_fd: int,
) -> None:
    """Run the commands in order; raise CannotFix if the old Hermes is not there afterwards.

    They inherit the lock's descriptor, so that a command that outlives us keeps the lock.
    """
    owner = owner_of(home)
    for one in commands:
        report_progress(f"running {one.words[0]} to reinstall Hermes {before.version}")
        said = _ask(one, owner, lock_fd)
        if said.code:
            raise CannotFix(
                text(
                    "`{command}` failed with exit code {code}: {message}",
                    command=one,
                    code=said.code,
                    message=said.text or "no message",
                )
            )
    there = current_hermes.hermes_in_place_of(before)
    if there is None or there.version != before.version:
        what = f"Hermes {there.version}" if there else "no Hermes"
        raise CannotFix(
            text(
                "After the rollback, {what} is installed instead of {version}. "
                "Reinstall it yourself.",
                what=what,
                version=before.version,
            )
        )
    if there.revision != before.revision:
        what = "container" if images.is_container_image(before) else "checkout"
        raise CannotFix(
            text(
                "After the rollback, the {what} is still not at {revision}. Reinstall "
                "Hermes yourself.",
                what=what,
                revision=before.revision,
            )
        )
    if images.is_container_image(before):
        return
    if left := package_rollback.missing_packages(before, there):
        names = listed([f"{name} {version}" for name, version in left], 1)
        raise CannotFix(
            text(
                "After the rollback, these packages are missing: {names}. Install them yourself.",
                names=names,
            )
        )
    if commands and (broken := requirements.damaged_packages(there, owner)):
        raise CannotFix(
            text(
                "After the rollback, {package} is incomplete. Reinstall it yourself.",
                package=broken[0],
            )
        )


def _ask(one: RollbackCommand, owner: Account, hold: int) -> CommandResult:
    """Run a command as the home's owner, with our environment if that is us, else a login's."""
    if one.as_current_user:
        return run_command(one.words, env=os.environ, limit=LIMIT, pass_fds=(hold,))
    own = owner.is_us and not root_parent.is_separate()
    env = dict(os.environ) if own else login_environment(owner)
    return run_command(one.words, user=owner, env=env, limit=LIMIT, pass_fds=(hold,))
