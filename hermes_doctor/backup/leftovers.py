"""Remove what killed commands left in a vault."""

from __future__ import annotations

import contextlib
import os
import re

from hermes_doctor.backup.vault import PARTIAL, Vault
from hermes_doctor.records.unfinished import RUN_FILE
from hermes_doctor.system import disk
from hermes_doctor.system.files import list_folder

ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]+")


def remove_leftovers(vault: Vault) -> None:
    """Remove runs without a journal and unfinished backups; the caller must hold the home's lock.

    A run without a journal had not started.
    """
    runs = vault.home.runs
    for id in filter(ID.fullmatch, list_folder(runs)):
        with contextlib.suppress(OSError):
            disk.remove_temporary(runs / id / RUN_FILE)
            if not os.path.lexists(runs / id / RUN_FILE):
                disk.remove_folder(runs / id)
    for name in list_folder(vault.root):
        id = name.removesuffix(PARTIAL)
        if name != id and ID.fullmatch(id) and vault.began(name):
            with contextlib.suppress(OSError):
                vault.discard(name)
