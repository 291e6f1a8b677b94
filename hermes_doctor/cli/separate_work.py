"""Repair a home with the rights of its owner: as root, the whole command runs in his process.

This is the one place that decides it. The command starts here after it has found the home and
loaded root's own files, and before it opens the first file of the home. Its questions and its
output go through the terminal that both processes have.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.model import Trouble
    from hermes_doctor.plugins.load import Plugins


def run(
    home: Home,
    command: Callable[[], int],
    plugins: Plugins,
    *,
    writes: bool = True,
    vault: Path | None = None,
) -> int:
    """Run a command, as the owner of the home if root calls it; return its exit code."""
    from hermes_doctor.backup.vault import Vault
    from hermes_doctor.cli import exits, separate_look
    from hermes_doctor.system.root_parent import NeedsRoot

    owner = separate_look.owner_of(home.path)
    if owner is None or _is_of_root(vault, home):
        return command()
    if writes:
        from hermes_doctor.records import home_lock

        home_lock.refuse_name_of_others(home, owner.uid)
    _ = plugins.fixes  # those of a folder that the owner may not read
    try:
        ended: int = separate_look.look(
            home.path, lambda: exits.end_here(command), plugins=plugins, repairs=True
        )
    except NeedsRoot as needed:
        vault = Path(str(needed))
        if not Vault(home, vault).is_of_root():  # a forged receipt can name any folder
            raise _no_backup(vault) from None
        return command()
    return exits.pass_on(ended)


def _no_backup(vault: Path) -> Trouble:
    from hermes_doctor.message import text
    from hermes_doctor.model import Trouble

    return Trouble(text("{vault} has no backup of this home that root may use.", vault=vault))


def _is_of_root(vault: Path | None, home: Home) -> bool:
    """Whether the backups go into a folder that only root may change."""
    from hermes_doctor.preferences import effective
    from hermes_doctor.system import privileges

    chosen = vault or effective.load().vault(home.path)
    return chosen is not None and privileges.of(chosen.expanduser().absolute() / "_") is None
