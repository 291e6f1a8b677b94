"""Work in a home with the rights of its owner: as root, the command runs in a process of that user.

This is the one place that decides it. The work starts here after the command has found the home
and loaded root's own files, and before it opens the first file of the home. Its questions and its
output go through the terminal that both processes have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hermes_doctor.core.lazy import EMPTY
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.preferences import effective
from hermes_doctor.core.system import files, privileges
from hermes_doctor.core.system.root_parent import NeedsRoot

if TYPE_CHECKING:
    from hermes_doctor.core.home import Home
    from hermes_doctor.core.system.closed_folders import LentFolder
    from hermes_doctor.core.system.separate_process import Action
    from hermes_doctor.diagnosis.plugins.load import Plugins

T = TypeVar("T")


def run(
    home: Home,
    command: Callable[[], int],
    plugins: Plugins | None = None,
    *,
    writes: bool = True,
    vault: Path | None = None,
    actions: Mapping[str, Action] = EMPTY,
) -> int:
    """Run a command, as the owner of the home if root calls it; return its exit code.

    If the home is lost, the command works in its vault only, and runs as the owner of that.
    """
    from hermes_doctor.cli import exits, separate_look

    if not home.path.is_dir():
        place = vault or effective.load().vault(home.path)
        if place is None or not place.is_dir() or separate_look.owner_of(place) is None:
            return command()
        work = partial(exits.end_here, command)
        return exits.pass_on(separate_look.look(place, work, repairs=True, lent=()))
    return do(
        home,
        lambda: exits.end_here(command),
        plugins,
        otherwise=command,
        pass_on=exits.pass_on,
        writes=writes,
        vault=vault,
        actions=actions,
    )


def do(
    home: Home,
    work: Callable[[], T],
    plugins: Plugins | None = None,
    *,
    otherwise: Callable[[], T],
    pass_on: Callable[[T], T] = lambda result: result,
    writes: bool = True,
    vault: Path | None = None,
    modules: tuple[str, ...] = (),
    actions: Mapping[str, Action] = EMPTY,
    keep: Sequence[int] = (),
    lent: Sequence[LentFolder] = (),
) -> T:
    """Return the result of `work` as the home's owner if that is another user than root.

    In any other home, return that of `otherwise`. A vault that only root may use is lent to that
    process, as are the folders in `lent`. `actions` and `keep` are those of `separate_look.look`.
    """
    from hermes_doctor.cli import lent_vaults, separate_look

    owner = separate_look.owner_of(home.path)
    if owner is None:
        return otherwise()
    if writes:
        from hermes_doctor.backup.records import home_lock

        home_lock.refuse_name_of_others(home, owner.uid)
    if plugins is not None:
        _ = plugins.fixes  # those of a folder that the owner may not read

    def try_with(*vaults: Path | None) -> T:
        with lent_vaults.lend(home, owner.uid, vaults, creates=writes) as vaults_lent:
            return separate_look.look(
                home.path,
                work,
                modules,
                plugins,
                repairs=True,
                more=actions,
                keep=keep,
                lent=[*vaults_lent, *lent],
            )

    vault = vault or effective.load().vault(home.path)
    try:
        done = try_with(vault)
    except NeedsRoot as needed:
        named = Path(str(needed))
        if not _has_backups(named, home):  # a forged receipt can name any folder
            raise Trouble(
                "{vault} has no backup of this home that root may use.", vault=named
            ) from None
        done = try_with(vault, named)
    return pass_on(done)


def actions_of_updates(home: Home) -> Mapping[str, Action]:
    """What root does for an update of another user's home, whose Hermes may be in a container."""
    from hermes_doctor.cli import separate_look
    from hermes_doctor.operations.updates import root_actions

    owner = separate_look.owner_of(home.path)
    return root_actions.actions(home.path, owner.uid) if owner else EMPTY


def _has_backups(vault: Path, home: Home) -> bool:
    """Whether only root may change a vault, and it has a backup of this home."""
    from hermes_doctor.backup.vault.vault import Vault

    try:
        if privileges.of(vault / "_") is not None:
            return False
        return any(map(Vault(home, vault).began, files.list_folder(vault)))
    except (CouldNotLook, OSError, Trouble):
        return False
