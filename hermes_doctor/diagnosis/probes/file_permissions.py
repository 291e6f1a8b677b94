"""Find secrets that other users can read, and files that the gateway cannot read or write."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.core.home import SIDECARS, Home, is_database
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import Snapshot, list_folder, names_in, snapshot
from hermes_doctor.core.system.mounts import FileUser
from hermes_doctor.hermes.stores import pairing

_RW_OTHERS = stat.S_IROTH | stat.S_IWOTH
_RW_GROUP = stat.S_IRGRP | stat.S_IWGRP
_IX_GROUP = stat.S_IXGRP | stat.S_IXOTH  # group members can enter a folder with either bit
_NAMES = (
    ".env",
    "auth.json",
    "auth.json.corrupt",
    "webhook_subscriptions.json",
    "response_store.db",
    *(f"response_store.db{suffix}" for suffix in SIDECARS),
)
_COPY = pattern(r"(\.env|auth\.json)([.~_-].*)?(bak|old|save|orig|copy|backup|corrupt|~)[\w.~-]*")
"""Copies that editors and people leave next to the files."""


class SecretFile(NamedTuple):
    """A file with secrets, and who besides its owner can read it."""

    path: Path
    snapshot: Snapshot
    by_others: bool
    """Every user of the machine can read it."""
    by_group: bool
    """The members of its group can read it."""

    @property
    def wide(self) -> bool:
        """Whether its own mode grants access to others, whatever the folders above allow."""
        return bool(self.snapshot.mode & 0o077)


def find_secret_files(home: Home) -> list[SecretFile]:
    """Return every file of this home that contains secrets."""
    secret_files = (examine_file(path) for path in dict.fromkeys(_paths(home)))
    return [secret_file for secret_file in secret_files if secret_file]


def examine_file(path: Path) -> SecretFile | None:
    """Return who can read a file; a symlink is followed."""
    taken = snapshot(path)
    if taken.kind == "symlink":
        try:
            path = path.resolve(strict=True)
        except (OSError, RuntimeError):
            return None
        taken = snapshot(path)
    if taken.kind != "file":
        return None
    return SecretFile(
        path,
        taken,
        by_others=bool(taken.mode & _RW_OTHERS) and _open_to(path, stat.S_IXOTH),
        by_group=bool(taken.mode & _RW_GROUP) and _open_to(path, _IX_GROUP),
    )


def who_can_enter(folder: Path) -> tuple[bool, bool]:
    """Tell whether all users and whether the group can enter a folder."""
    mode = os.stat(folder).st_mode
    others = bool(mode & stat.S_IXOTH) and _open_to(folder, stat.S_IXOTH)
    return others, bool(mode & stat.S_IXGRP) and _open_to(folder, _IX_GROUP)


def _paths(home: Home) -> Iterator[Path]:
    """Yield the paths where Hermes keeps secrets, including its own backups."""
    for name in _NAMES:
        yield home / name
    for name in names_in(home.path):
        if _COPY.fullmatch(name):
            yield home / name
    for folder in (pairing.OLD, pairing.NEW):
        for name in names_in(home / folder):
            if name.endswith(".json"):
                yield home / folder / name
    for name in list_folder(home / "state-snapshots"):
        for secret in _NAMES:
            yield home / "state-snapshots" / name / secret
    for name in list_folder(home / "backups"):
        if name.endswith(".zip"):
            yield home / "backups" / name
    if home.path.name == ".hermes":  # `hermes backup` writes next to the home
        for name in names_in(home.path.parent):
            if name.startswith("hermes-backup-") and name.endswith(".zip"):
                yield home.path.parent / name


def _open_to(path: Path, bit: int) -> bool:
    """Tell whether every folder above lets that class of users through."""
    try:
        return all(os.stat(folder).st_mode & bit for folder in path.parents)
    except OSError:
        return False


DEPTH, MOST = 2, 4000
"""How deep and how far a quick check goes; a deep one goes everywhere."""
_DEEPEST, _ALL = 12, 200_000
_SKIPPED = frozenset(
    (
        *("hermes-agent", "node_modules", "node", "venv", ".venv", "backups", "profiles"),
        *("cache", "image_cache", "audio_cache", "checkpoints", "state-snapshots", "lost+found"),
    )
)
"""Code, caches and copies, which the gateway does not write, and other homes."""


class ClosedFile(NamedTuple):
    """A file or folder that the gateway's user may not read or write."""

    path: Path
    snapshot: Snapshot
    readable: bool


class OwnerScan(NamedTuple):
    """The result of the search for files that the gateway may not use."""

    closed: tuple[ClosedFile, ...]
    seen: int
    whole: bool
    """Whether the search was completed."""


def find_closed(home: Home, user: FileUser, *, deep: bool) -> OwnerScan:
    """Find everything that the gateway's user may not read or write, except databases."""
    if user.uid == 0:
        return OwnerScan((), 0, True)
    depth, most = (_DEEPEST, _ALL) if deep else (DEPTH, MOST)
    closed: list[ClosedFile] = []
    folders = [(home.path, 0)]
    seen = 0
    while folders:
        folder, level = folders.pop()
        try:
            names = list_folder(folder, most)
        except CouldNotLook:
            continue
        for name in names:
            path = folder / name
            try:
                st = os.lstat(path)
            except OSError:
                continue
            seen += 1
            if seen > most:
                return OwnerScan(tuple(closed), seen, False)
            is_folder = stat.S_ISDIR(st.st_mode)
            if is_folder and (name in _SKIPPED or os.path.ismount(path)):
                continue
            if not is_folder and (not stat.S_ISREG(st.st_mode) or is_database(path)):
                continue
            if is_folder and level < depth:
                folders.append((path, level + 1))
            snapshot = Snapshot.of(st)
            readable = _may(user, snapshot, 0o4)
            if not readable or not _may(user, snapshot, 0o2):
                closed.append(ClosedFile(path, snapshot, readable))
    return OwnerScan(tuple(closed), seen, True)


def _may(user: FileUser, snapshot: Snapshot, right: int) -> bool:
    """Tell whether the mode grants a permission; an owner can always change the mode."""
    if snapshot.uid == user.uid:
        return True
    return bool(snapshot.mode & (right << 3 if snapshot.gid in user.gids else right))
