"""Decides which vaults root lends to the process that works as the owner of a home."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.backup.vault import free_space
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
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
    """Yield the vaults that the owner cannot use alone; one that is missing may be created.

    Those of another user are left out. A created one is removed again if nothing was put into it.
    """
    lent: list[LentFolder] = []
    created: list[Path] = []
    for chosen in filter(None, vaults):
        place = chosen.expanduser().absolute()
        user = privileges.of(place / "_")
        if user and (user.can_reach or user.uid != owner or place.is_relative_to(home.path)):
            continue
        if not place.exists():
            if not creates:
                continue
            free_space.create_folder(place, owner)
            created.append(place)
        place = place.resolve()
        lent.append(LentFolder(place, user is None, _of_others(place, home), needed))
    try:
        yield lent
    finally:
        for place in created:
            with contextlib.suppress(OSError):  # it is not empty
                disk.remove_folder(place)


def _of_others(vault: Path, home: Home) -> tuple[str, ...]:
    """The names in a vault that are not backups of this home; what a symlink leads to stays closed.

    A link in the home could lead to them, and then the process would reach them.
    """
    store = Vault(home, vault)
    names = [name for name in files.list_folder(vault) if not (vault / name).is_symlink()]
    return tuple(name for name in names if not store.began(name))
