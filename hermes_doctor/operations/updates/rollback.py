"""Plans and runs the return to the Hermes that was installed before an update.

Packages are restored with the tool that manages their environment.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from hermes_doctor.backup.records.updates import Update
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import listed
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import root_parent
from hermes_doctor.core.system.accounts import Account
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.installation.details import (
    COPIED,
    EDITABLE,
    GIT,
    IMAGE,
    PIPX,
    UV,
    UV_TOOL,
    InstallationDetails,
)
from hermes_doctor.hermes.processes import gateway_processes
from hermes_doctor.operations.updates import downtime, git_rollback, images, requirements
from hermes_doctor.operations.updates.git_rollback import CheckoutPlan
from hermes_doctor.repair.gateway.detached import python_of
from hermes_doctor.repair.gateway.manager_commands import (
    CommandResult,
    login_environment,
    owner_of,
    run_command,
)
from hermes_doctor.sqlite.files import sidecars

LIMIT = 1800.0
"""Seconds for a package manager to restore everything."""


class RollbackCommand(NamedTuple):
    """One command of the rollback."""

    words: tuple[str, ...]
    as_current_user: bool = False
    """Whether to run it as the current user, who alone may talk to the container engine."""

    def __str__(self) -> str:
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
            "The Hermes version before update {id} is unknown. Reinstall it yourself.", id=update.id
        )
    owner = owner_of(home)
    way = CheckoutPlan()
    if before.kind == GIT:
        way = git_rollback.checkout_rollback(before, after, update.id, owner)
    if images.is_container_image(before):
        command_lines = images.image_rollback(home, before, update)
        note = f"{before.source} is the previous image again, for every container that uses it."
        return _runnable(
            [RollbackCommand(words, as_current_user=True) for words in command_lines],
            (note,) if command_lines else (),
        )
    if before.kind == IMAGE:
        if after is not None and _same(before, after):
            return Plan()
        raise CannotFix(
            "Hermes is part of a container image. Start the container from the image of {version}.",
            version=before.version,
        )
    command_lines = [*way.commands, *package_rollback(home, before, after, owner)]
    return _runnable([RollbackCommand(words) for words in command_lines], way.notes)


def _runnable(commands: Sequence[RollbackCommand], notes: tuple[str, ...] = ()) -> Plan:
    for command in commands:
        if shutil.which(command.words[0]) is None:
            raise CannotFix(
                "{program} is needed to reinstall Hermes, but is not on the PATH. "
                "Install it first.",
                program=command.words[0],
            )
    return Plan(tuple(commands), notes)


def refuse_holders(home: Home, update: Update, *, keep_data: bool) -> None:
    """Raise if a process other than the gateways has a database open that will be restored."""
    halts = downtime.gateways_to_stop(
        home, update
    )  # raises before any change if one cannot be stopped
    if keep_data:
        return
    inside = [Probes(affected) for affected in downtime.affected_homes(home, update)]
    mine = {gateway.pid for probes in inside for gateway in probes.gateway.running()}

    def ends(pid: int) -> bool:
        return _is_below(pid, mine) or any(halt.service.also_stops(pid) for halt in halts)

    databases = [path for probes in inside for path in probes.databases.files().paths]
    names = {beside: path for path in databases for beside in (path, *sidecars(path))}
    for name, pids in gateway_processes.processes_using(names).items():
        others = [pid for pid in pids if pid not in mine and not ends(pid)]
        if others:
            who = ", ".join(str(pid) if pid else "of another container" for pid in sorted(others))
            raise CannotFix(
                "Process {pid} has {file} open. Stop that process first.",
                pid=who,
                file=home.name_of(names[name]),
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
    for command in commands:
        report_progress(f"running {command.words[0]} to reinstall Hermes {before.version}")
        result = _run(command, owner, lock_fd)
        if result.code:
            raise CannotFix(
                "`{command}` failed with exit code {code}: {message}",
                command=command,
                code=result.code,
                message=result.text or "no message",
            )
    there = images.hermes_in_place_of(before, home)
    if there is None or there.version != before.version:
        what = f"Hermes {there.version}" if there else "no Hermes"
        raise CannotFix(
            "After the rollback, {what} is installed instead of {version}. Reinstall it yourself.",
            what=what,
            version=before.version,
        )
    if there.revision != before.revision:
        what = "container" if images.is_container_image(before) else "checkout"
        raise CannotFix(
            "After the rollback, the {what} is still not at {revision}. Reinstall Hermes yourself.",
            what=what,
            revision=before.revision,
        )
    if images.is_container_image(before):
        return
    if left := missing_packages(before, there):
        names = listed([f"{name} {version}" for name, version in left], 1)
        raise CannotFix(
            "After the rollback, these packages are missing: {names}. Install them yourself.",
            names=names,
        )
    if commands and (broken := requirements.damaged_packages(there, owner)):
        raise CannotFix(
            "After the rollback, {package} is incomplete. Reinstall it yourself.", package=broken[0]
        )


def _run(command: RollbackCommand, owner: Account, hold: int) -> CommandResult:
    """Run a command as the home's owner, with our environment if that is us, else a login's."""
    if command.as_current_user:
        if root_parent.is_separate():
            said = root_parent.ask_root("recreate", list(command.words), descriptors=(hold,))
            return CommandResult(*said)
        return run_command(command.words, env=os.environ, limit=LIMIT, pass_fds=(hold,))
    own = owner.is_us and not root_parent.is_separate()
    env = dict(os.environ) if own else login_environment(owner)
    return run_command(command.words, user=owner, env=env, limit=LIMIT, pass_fds=(hold,))


NAME = "hermes-agent"
_MANAGERS = ("pip", "setuptools", "wheel")
"""Tools of the environment itself; these are left as they are."""


def package_rollback(
    home: Home, before: InstallationDetails, now: InstallationDetails | None, user: Account
) -> list[tuple[str, ...]]:
    """The commands, if any are needed; raise CannotFix if nothing can run them."""
    others = [
        f"{name}=={version}" for name, version in missing_packages(before, now) if name != NAME
    ]
    itself = _itself(before, now)
    if now is None or not _has_python(before):
        again = []
    else:
        again = [
            package for package in _damaged(before, now, user) if package not in (*others, *itself)
        ]
    if before.kind == PIPX:
        return _by_pipx(before, others, itself, again)
    if not others and not itself and not again:
        return []
    if not _has_python(before):
        return [*_anew(home, before, user), (*_by_uv(home, before, user), *others, *itself)]
    install: tuple[str, ...]
    has_pip = "pip" in (now or before).packages
    if has_pip and (before.kind not in (UV, UV_TOOL) or _uv(home, user) is None):
        python = str(python_of(Path(before.where), user))
        install = (python, "-m", "pip", "install", "--no-deps", "--quiet")
    else:
        install = _by_uv(home, before, user)
    commands = [(*install, *others, *itself)] if others or itself else []
    return [*commands, (*install, "--force-reinstall", *again)] if again else commands


def _by_pipx(
    before: InstallationDetails, others: list[str], itself: list[str], again: list[str]
) -> list[tuple[str, ...]]:
    commands: list[tuple[str, ...]] = []
    by_pip = ("pipx", "runpip", NAME, "install", "--no-deps", "--quiet")
    if itself:
        commands.append(("pipx", "install", "--force", f"{NAME}=={before.version}"))
    if others:
        commands.append((*by_pip, *others))
    if again:
        commands.append((*by_pip, "--force-reinstall", *again))
    return commands


def _damaged(before: InstallationDetails, now: InstallationDetails, user: Account) -> list[str]:
    """Packages with the old version that lack files; git restores those of a checkout."""
    names = requirements.damaged_packages(now, user)
    kept = [NAME] if before.source in (EDITABLE, COPIED) else []
    damaged = [name for name in names if name in before.packages and name not in kept]
    return [f"{name}=={before.packages[name]}" for name in damaged]


def missing_packages(
    before: InstallationDetails, now: InstallationDetails | None
) -> list[tuple[str, str]]:
    """The old packages that are missing now or have another version."""
    there = now.packages if now else {}
    return sorted(
        (name, version)
        for name, version in before.packages.items()
        if there.get(name) != version and name not in _MANAGERS
    )


def _itself(before: InstallationDetails, now: InstallationDetails | None) -> list[str]:
    """The requirement for Hermes as it was installed: a checkout, a repository or an index."""
    wanted = before.packages.get(NAME)
    if wanted is None:
        return []  # run from its checkout without being installed
    same = now is not None and now.packages.get(NAME) == wanted and now.source == before.source
    if before.source == COPIED and before.checkout:
        same = same and now is not None and now.revision == before.revision
        return [] if same else [before.checkout]
    if same:
        return []
    if before.source == EDITABLE and before.checkout:
        return ["--editable", before.checkout]
    return [before.source if "@" in before.source else f"{NAME}=={wanted}"]


def _by_uv(home: Home, before: InstallationDetails, user: Account) -> tuple[str, ...]:
    uv = _uv(home, user)
    if uv is None:
        raise CannotFix(
            "{folder} has no pip, and uv is not on the PATH. Install uv, which "
            "reinstalls the packages, then try again.",
            folder=before.where,
        )
    python = Path(before.where) / "bin" / "python"
    if _has_python(before):
        python = python_of(Path(before.where), user)
    return (uv, "pip", "install", "--quiet", "--python", str(python), "--no-deps")


def _anew(home: Home, before: InstallationDetails, user: Account) -> list[tuple[str, ...]]:
    """The command that recreates the environment if the update removed it."""
    uv = _uv(home, user)
    if uv is None or not before.python:
        version = f" with Python {before.python}" if before.python else ""
        raise CannotFix(
            "{folder} has lost its Python, and uv is not on the PATH. Create the "
            "environment{version} again, then try again.",
            folder=before.where,
            version=version,
        )
    if before.kind == UV_TOOL:
        return [(uv, "tool", "install", "--quiet", "--force", f"{NAME}=={before.version}")]
    words = ("venv", "--quiet", "--allow-existing", "--python", before.python, before.where)
    return [(uv, *words)]


def _has_python(before: InstallationDetails) -> bool:
    places = [Path(before.where) / folder for folder in ("", "venv", ".venv")]
    return any(os.access(place / "bin" / "python", os.X_OK) for place in places)


def _uv(home: Home, user: Account) -> str | None:
    """uv on the PATH, or where its installer or that of Hermes puts it for the home's owner."""
    folders = [home / "bin"]
    if user.folder:
        folders += [Path(user.folder) / ".local" / "bin", Path(user.folder) / ".cargo" / "bin"]
    candidates = ("uv", *(str(folder / "uv") for folder in folders))
    return next((program for program in candidates if shutil.which(program)), None)
