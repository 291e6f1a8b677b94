"""Import backups from elsewhere into the vault: archives, backups of Hermes, restic snapshots.

They become ordinary backups, so verify, restore and undo work the same way for all. Until an import
is complete it is a `.partial`, which the next command removes if we are killed.
"""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from hermes_doctor.backup.entry import BackupEntry
from hermes_doctor.backup.manifest import MANIFEST, Backup, seal
from hermes_doctor.backup.vault import HOME_FILE, PARTIAL, Vault
from hermes_doctor.home import Home
from hermes_doctor.message import text
from hermes_doctor.model import Trouble
from hermes_doctor.system import disk
from hermes_doctor.system.signals import delay_signals


@contextmanager
def import_folder(vault: Vault) -> Iterator[Path]:
    """A folder for an import; it is removed afterwards unless `keep` made it a backup."""
    vault.prepare()
    partial = vault.root / (vault.next_id() + PARTIAL)
    disk.make_folder(partial)
    try:
        home = str(vault.home.path).encode("utf-8", "surrogateescape")
        disk.save(partial / HOME_FILE, home)
        yield partial
    finally:
        if partial.exists():
            with delay_signals(), contextlib.suppress(OSError):
                vault.discard(partial.name)


def finish_import(vault: Vault, backup: Backup) -> Backup:
    """Make the imported files a backup of the vault; its id is the name of the folder."""
    partial = backup.folder
    id = partial.name.removesuffix(PARTIAL)
    # Not `whole`, because it is older: the newest backup made here must stay the newest.
    backup = assign_to_home(
        vault.home, backup._replace(id=id, shares=None, whole=False, left_out=())
    )
    disk.sync_tree(partial)
    disk.save(partial / MANIFEST, seal(backup))
    disk.rename(partial, vault.root / id)
    disk.sync_folder(vault.root)
    return backup._replace(folder=vault.root / id)


def assign_to_home(home: Home, backup: Backup) -> Backup:
    """Assign an imported backup to this home; it may be of another home on another machine.

    Files outside that other home are left out. All files get this home's owner: the same user id
    may be another user here.
    """
    owner, here = home.path.stat(), backup.home == str(home.path)
    vault = home.name_of(home.vault) + "/"
    entries = tuple(
        _owned(entry, owner)
        for entry in backup.entries
        if not entry.path.startswith(vault) and (here or not entry.path.startswith("/"))
    )
    reason = backup.reason if here else f"{backup.reason} (of {backup.home})"
    return backup._replace(home=str(home.path), entries=entries, reason=reason)


def _owned(entry: BackupEntry, owner: os.stat_result) -> BackupEntry:
    mine = (os.getegid(), *os.getgroups())
    if entry.uid == owner.st_uid and (os.geteuid() == 0 or entry.gid in mine):
        return entry
    return entry._replace(uid=owner.st_uid, gid=owner.st_gid)


def refuse_invalid_entries(backup: Backup, what: str) -> None:
    """Raise Trouble if an imported manifest has entries that this tool would not write."""
    names = [entry.path for entry in backup.entries]
    if len(set(names)) < len(names) or not all(map(_is_plain, backup.entries)):
        raise Trouble(
            text(
                "{what} is damaged: its manifest lists impossible entries. Nothing was changed.",
                what=what,
            )
        )


def _is_plain(entry: BackupEntry) -> bool:
    try:
        for value in entry.xattrs.values():
            base64.b64decode(value, validate=True)
        os.fsencode(entry.path + (entry.target or ""))
    except ValueError:
        return False
    owners = (entry.uid, entry.gid)
    return (
        str(PurePosixPath(entry.path)) == entry.path != "."
        and "\0" not in entry.path + (entry.target or "")
        and entry.size >= 0
        and abs(entry.mtime_ns) < 2**63
        and all(-1 <= number < 2**32 - 1 for number in owners)
    )
