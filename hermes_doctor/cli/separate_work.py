"""Work in a home with the rights of its owner: as root, the command runs in a process of that user.

This is the one place that decides it. The work starts here after the command has found the home
and loaded root's own files, and before it opens the first file of the home. Its questions and its
output go through the terminal that both processes have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hermes_doctor.lazy import EMPTY

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.model import Trouble
    from hermes_doctor.plugins.load import Plugins
    from hermes_doctor.system.separate_process import Action

T = TypeVar("T")


def run(
    home: Home,
    command: Callable[[], int],
    plugins: Plugins | None = None,
    *,
    writes: bool = True,
    vault: Path | None = None,
    as_root: bool = False,
    actions: Mapping[str, Action] = EMPTY,
) -> int:
    """Run a command, as the owner of the home if root calls it; return its exit code.

    With `as_root`, it needs files that only root may use, such as keys, and runs as it is.
    """
    from hermes_doctor.cli import exits

    if as_root or not home.path.is_dir():
        return command()
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
) -> T:
    """Return the result of `work` as the home's owner if that is another user than root.

    In any other home, and with a vault that only root may change, return that of `otherwise`.
    `actions` and `keep` are those of `separate_look.look`.
    """
    from hermes_doctor.cli import separate_look
    from hermes_doctor.known_secrets import watch_home
    from hermes_doctor.system.root_parent import NeedsRoot

    owner = separate_look.owner_of(home.path)
    if owner is None or _is_of_root(vault, home):
        return otherwise()
    if writes:
        from hermes_doctor.records import home_lock

        home_lock.refuse_name_of_others(home, owner.uid)
    if plugins is not None:
        _ = plugins.fixes  # those of a folder that the owner may not read
    try:
        done = separate_look.look(
            home.path, work, modules, plugins, repairs=True, more=actions, keep=keep
        )
    except NeedsRoot as needed:
        named = Path(str(needed))
        if not _has_backups(named, home):  # a forged receipt can name any folder
            raise _no_backup(named) from None
        watch_home(home.path)
        return otherwise()
    return pass_on(done)


def is_in_container(home: Home) -> bool:
    """Whether root has found a container of another user's home, whose image only root may change.

    An update of such a home, and the way back, work with root's rights.
    """
    from hermes_doctor.cli import separate_look
    from hermes_doctor.probes.root_actions import Containers

    owner = separate_look.owner_of(home.path)
    return owner is not None and bool(Containers(home.path, owner.uid).find())


def _has_backups(vault: Path, home: Home) -> bool:
    """Whether only root may change a vault, and it has a backup of this home."""
    from hermes_doctor.backup.vault import Vault
    from hermes_doctor.model import CouldNotLook, Trouble
    from hermes_doctor.system import files, privileges

    try:
        if privileges.of(vault / "_") is not None:
            return False
        return any(map(Vault(home, vault).began, files.list_folder(vault)))
    except (CouldNotLook, OSError, Trouble):
        return False


def _no_backup(vault: Path) -> Trouble:
    from hermes_doctor.message import text
    from hermes_doctor.model import Trouble

    return Trouble(text("{vault} has no backup of this home that root may use.", vault=vault))


def _is_of_root(vault: Path | None, home: Home) -> bool:
    """Whether the backups go into a folder that only root may change or get to."""
    from hermes_doctor.preferences import effective
    from hermes_doctor.system import privileges

    chosen = vault or effective.load().vault(home.path)
    if chosen is None:
        return False
    place = chosen.expanduser().absolute()
    user = privileges.of(place / "_")
    return user is None or not (user.can_reach or place.is_relative_to(home.path))
