"""Decides which vaults root lends to the process that works as the owner of a home."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.backup.vault import free_space
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import disk, files, privileges
from hermes_doctor.core.system.closed_folders import LentFolder


@contextmanager
def lend(
    home: Home,
    owner: int,
    vaults: Sequence[Path | None],
    *,
    creates: bool = False,
    needed: bool = True,
) -> Iterator[list[LentFolder]]:
    """Yield the vaults that only root may use; one that is missing may be created.

    A created one is removed again if nothing was put into it. If a vault is `needed`, raise Trouble
    where it cannot be lent safely; otherwise leave it out.
    """
    lent: list[LentFolder] = []
    created: list[Path] = []
    for chosen in filter(None, vaults):
        place = chosen.expanduser().absolute()
        if privileges.of(place / "_") is not None:
            continue
        if not place.exists():
            if not creates:
                continue
            free_space.create_folder(place, owner)
            created.append(place)
        place = place.resolve()
        if why := _refused(place, home):
            if needed:
                raise why
            continue
        lent.append(LentFolder(place, _of_others(place, home), needed))
    try:
        yield lent
    finally:
        for place in created:
            with contextlib.suppress(OSError):  # it is not empty
                disk.remove_folder(place)


def _refused(vault: Path, home: Home) -> Trouble | None:
    """Why a vault cannot be lent: it would hide the home, or other users could enter it."""
    if home.path.is_relative_to(vault):
        return Trouble(
            "The vault {vault} contains the home. Nothing was changed. To use another folder: "
            "--vault DIR",
            vault=vault,
        )
    if os.stat(vault).st_mode & 0o077:
        return Trouble(
            "Other users may enter the vault {vault}. Nothing was changed. To solve it: "
            "chmod 700 {vault}",
            vault=vault,
        )
    return None


def _of_others(vault: Path, home: Home) -> tuple[str, ...]:
    """The names in a vault that are not backups of this home; what a symlink leads to stays closed.

    A link in the home could lead to them, and then the process would reach them.
    """
    store = Vault(home, vault)
    names = [name for name in files.list_folder(vault) if not (vault / name).is_symlink()]
    return tuple(name for name in names if not store.began(name))
