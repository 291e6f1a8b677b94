"""Create backups that are wrong on purpose."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from hermes_doctor.backup.vault.manifest import MANIFEST, Backup, BackupEntry, seal
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.system import disk
from tests.helpers import support


def entry(backup: Backup, name: str) -> BackupEntry:
    """Return one entry, which must exist."""
    found = backup.entry(name)
    assert found is not None, name
    return found


def forge(home: Path, name: str, wrong: Callable[[BackupEntry], BackupEntry]) -> None:
    """Make the newest backup wrong about a file, and seal it again."""
    store = Vault(Home(home))
    backup = store.load(store.ids()[-1])
    entries = tuple(wrong(one) if one.path == name else one for one in backup.entries)
    assert entries != backup.entries
    disk.save(backup.folder / MANIFEST, seal(backup._replace(entries=entries)))
    assert store.load(backup.id).entries == entries


def unseen(copy: Path, data: bytes) -> None:
    """Write into a copy, and restore its modification time."""
    times = copy.stat()
    support.clobber(copy, data)
    os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
