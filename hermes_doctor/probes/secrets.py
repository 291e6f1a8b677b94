"""The files of a home that hold secrets, and which other users could read them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.files import Snapshot, listing, snapshot
from hermes_doctor.home import SIDECARS, Home
from hermes_doctor.model import CouldNotLook
from hermes_doctor.values import NamedTuple

_RW_OTHERS = stat.S_IROTH | stat.S_IWOTH
_RW_GROUP = stat.S_IRGRP | stat.S_IWGRP
_IX_GROUP = stat.S_IXGRP | stat.S_IXOTH  # a member may pass a folder as either
_NAMES = (
    ".env",
    "auth.json",
    "auth.json.corrupt",
    "webhook_subscriptions.json",
    "response_store.db",
    *(f"response_store.db{suffix}" for suffix in SIDECARS),
)


class SecretFile(NamedTuple):
    """A file with secrets: what it is, and who beside its owner can read it."""

    path: Path
    snapshot: Snapshot
    by_others: bool
    """Every user of the machine can read it."""
    by_group: bool
    """The members of its group can read it."""

    @property
    def wide(self) -> bool:
        """Its own mode lets somebody else in, whatever the folders above allow."""
        return bool(self.snapshot.mode & 0o077)


def find(home: Home) -> list[SecretFile]:
    """Every file of this home that holds secrets."""
    found = []
    for path in _paths(home):
        taken = snapshot(path)
        if taken.kind == "symlink":  # what counts is the file that it leads to
            try:
                path = path.resolve(strict=True)
            except (OSError, RuntimeError):
                continue
            taken = snapshot(path)
        if taken.kind == "file":
            found.append(
                SecretFile(
                    path,
                    taken,
                    by_others=bool(taken.mode & _RW_OTHERS) and _open_to(path, stat.S_IXOTH),
                    by_group=bool(taken.mode & _RW_GROUP) and _open_to(path, _IX_GROUP),
                )
            )
    return found


def _paths(home: Home) -> Iterator[Path]:
    """The places where Hermes keeps secrets, its own backups included."""
    for name in _NAMES:
        yield home / name
    for name in listing(home / "state-snapshots"):
        for secret in _NAMES:
            yield home / "state-snapshots" / name / secret
    for name in listing(home / "backups"):
        if name.endswith(".zip"):
            yield home / "backups" / name
    if home.path.name == ".hermes":  # `hermes backup` writes beside the home
        try:
            beside = listing(home.path.parent)
        except CouldNotLook:
            return
        for name in beside:
            if name.startswith("hermes-backup-") and name.endswith(".zip"):
                yield home.path.parent / name


def _open_to(path: Path, bit: int) -> bool:
    """Whether every folder above lets that class of users through."""
    try:
        return all(os.stat(folder).st_mode & bit for folder in path.parents)
    except OSError:
        return False
