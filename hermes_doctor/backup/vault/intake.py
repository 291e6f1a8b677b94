"""Import backups from elsewhere into the vault: archives, backups of Hermes, restic snapshots.

They become ordinary backups, so verify, restore and undo work the same way for all.
"""

from __future__ import annotations

import base64
import os
from pathlib import PurePosixPath

from hermes_doctor.backup.vault.manifest import MANIFEST, Backup, BackupEntry, seal
from hermes_doctor.backup.vault.vault import PARTIAL, Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import disk


def finish_import(vault: Vault, backup: Backup) -> Backup:
    """Make the imported files a backup of the vault; its id is the name of the folder."""
    partial = backup.folder
    id = partial.name.removesuffix(PARTIAL)
    # Not `whole`, because it is older: the newest backup made here must stay the newest.
    backup = backup._replace(id=id, shares=None, whole=False, left_out=())
    backup = assign_to_home(vault.home, backup)
    disk.sync_tree(partial)
    disk.save(partial / MANIFEST, seal(backup))
    return backup._replace(folder=vault.finish(partial))


def assign_to_home(home: Home, backup: Backup) -> Backup:
    """Assign an imported backup to this home; it may be of another home on another machine.

    Files outside that other home are left out. All files get this home's owner: the same user id
    may be another user here.
    """
    owner, here = home.path.stat(), backup.home == str(home.path)
    vault = home.name_of(home.vault) + "/"
    groups = (os.getegid(), *os.getgroups())
    entries = []
    for entry in backup.entries:
        if entry.path.startswith(vault) or (entry.path.startswith("/") and not here):
            continue
        is_his = entry.uid == owner.st_uid and (os.geteuid() == 0 or entry.gid in groups)
        entries.append(entry if is_his else entry._replace(uid=owner.st_uid, gid=owner.st_gid))
    reason = backup.reason if here else f"{backup.reason} (of {backup.home})"
    return backup._replace(home=str(home.path), entries=tuple(entries), reason=reason)


def refuse_invalid_entries(backup: Backup, what: str) -> None:
    """Raise Trouble if an imported manifest has entries that this tool would not write."""
    names = [entry.path for entry in backup.entries]
    if len(set(names)) < len(names) or not all(map(_is_plain, backup.entries)):
        why = "{what} is damaged: its manifest lists impossible entries. Nothing was changed."
        raise Trouble(why, what=what)


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
