"""Taking in what others made: an archive, a copy of Hermes' own, what an engine brought back.

It becomes a backup of the vault like any other, so that verifying, restoring and undoing are the
same for all. Until it is whole it is a `.partial`, which the next command removes if we are killed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hermes_doctor import durable
from hermes_doctor.home import Home
from hermes_doctor.interrupts import uninterrupted
from hermes_doctor.manifest import MANIFEST, Backup, seal
from hermes_doctor.vault import BEGUN, PARTIAL, Vault


@contextmanager
def arriving(vault: Vault) -> Iterator[Path]:
    """A folder for something that comes in; gone afterwards unless it was kept."""
    vault.prepare()
    partial = vault.root / (vault.next_id() + PARTIAL)
    durable.make_folder(partial)
    try:
        home = str(vault.home.path).encode("utf-8", "surrogateescape")
        durable.save(partial / BEGUN, home)
        yield partial
    finally:
        if partial.exists():
            with uninterrupted(), contextlib.suppress(OSError):
                vault.discard(partial.name)


def keep(vault: Vault, backup: Backup) -> Backup:
    """Make a backup of what came in, under the name that its folder has."""
    partial = backup.folder
    id = partial.name.removesuffix(PARTIAL)
    # It is of some time ago: the newest backup of the home remains the one that was made here.
    backup = mine(vault.home, replace(backup, id=id, shares=None, whole=False, left_out=()))
    durable.settle(partial)
    durable.save(partial / MANIFEST, seal(backup))
    durable.rename(partial, vault.root / id)
    durable.sync_folder(vault.root)
    return replace(backup, folder=vault.root / id)


def mine(home: Home, backup: Backup) -> Backup:
    """A backup of this home, though it may have been made of another, on another machine.

    What a symlink of that other home led to, outside, is not brought along.
    """
    if backup.home == str(home.path):
        return backup
    inside = tuple(entry for entry in backup.entries if not entry.path.startswith("/"))
    reason = f"{backup.reason} (of {backup.home})"
    return replace(backup, home=str(home.path), entries=inside, reason=reason)
