"""Find, verify and import the backups that Hermes itself makes: its zips and snapshots.

Hermes verifies none of them. Its snapshot before an update leaves out files larger than a gigabyte,
and a zip may lack a database that could not be copied without saying so.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO

from hermes_doctor import __version__
from hermes_doctor.backup.vault.age import NamedCopy
from hermes_doctor.backup.vault.copies import time_of_member
from hermes_doctor.backup.vault.free_space import check_free_space
from hermes_doctor.backup.vault.intake import finish_import
from hermes_doctor.backup.vault.manifest import MANIFEST, Backup, BackupEntry, place_of
from hermes_doctor.backup.vault.selection import SECRET_STORES, is_process_file, of_store
from hermes_doctor.backup.vault.trial_restore import try_restore
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home, is_database
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import disk, root_parent
from hermes_doctor.core.system.files import (
    LONGEST_NAME,
    MEGABYTE,
    Snapshot,
    moment,
    names_in,
    open_regular,
    read,
    snapshot,
    user_home,
)
from hermes_doctor.core.system.privileges import as_owner_of

SNAPSHOTS = "state-snapshots"
EXPECTED = ("config.yaml", ".env", "auth.json", "state.db", "kanban.db", "cron/jobs.json")
"""Files that a working home has, so a backup of it should have them, too."""
PRIVATE = 0o600
MOST = 200
_UNREADABLE = (
    CouldNotLook,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


class HermesBackup(NamedTuple):
    """A zip or a snapshot made by Hermes."""

    path: Path
    kind: str
    """zip or snapshot."""
    made_at: datetime
    of_root: bool = False
    """Whether root has to open it for this process."""

    def open(self, name: str = "") -> int:
        """Open the zip, or a file in the snapshot; raise FileNotFoundError if it does not exist."""
        if not self.of_root:
            return open_in_folder(self.path / name)
        fd = root_parent.ask_root("open_in_copy", name)
        if fd is None:
            raise FileNotFoundError(name)
        return int(fd)

    @property
    def name(self) -> str:
        """The name to show."""
        return self.path.name


def find_backups(home: Home) -> list[HermesBackup]:
    """All backups in the places where Hermes puts them, oldest first."""
    places = [home / "backups", home.path.parent, user_home()]
    copies = {}
    for place in places:
        for name in names_in(place):
            if name.endswith(".zip") and name.startswith(("pre-", "hermes-backup-")):
                copies[place / name] = "zip"
    for name in names_in(home / SNAPSHOTS)[-MOST:]:
        if os.path.isdir(home / SNAPSHOTS / name):
            copies[home / SNAPSHOTS / name] = "snapshot"
    known = [of(path, kind) for path, kind in copies.items()]
    return sorted(known, key=lambda copy: (copy.made_at, copy.name))


def of(path: Path, kind: str) -> HermesBackup:
    """Describe one zip or snapshot."""
    state = snapshot(path)
    return HermesBackup(path, kind, datetime.fromtimestamp(state.mtime_ns / 1e9, UTC))


def find_named(home: Home, name: str) -> HermesBackup | None:
    """Find a backup by its path or by the name of a snapshot."""
    for path in (Path(name).expanduser(), home / SNAPSHOTS / name):
        if "/" not in name and path.parent != home / SNAPSHOTS and not path.suffix:
            continue
        if path.is_dir() and (path / MANIFEST).exists():
            return of(path.absolute(), "snapshot")
        if path.is_file() and path.suffix == ".zip":
            return of(path.absolute(), "zip")
    return None


def opened_by_root(copy: NamedCopy) -> HermesBackup | None:
    """Describe a zip or snapshot that root has opened for this process."""
    if copy.kind not in ("zip", "snapshot"):
        return None
    return HermesBackup(copy.path, copy.kind, moment(copy.mtime_ns), of_root=True)


def open_in_folder(path: Path) -> int:
    """Open a zip, or a file of a snapshot, with the rights of its owner."""
    with as_owner_of(path) as here:
        return open_regular(here, follow=False)


class VerifyResult(NamedTuple):
    """The result of reading a whole backup of Hermes."""

    wrong: list[str]
    missing: list[str]
    files: int
    size: int

    @property
    def whole(self) -> bool:
        """Whether everything can be restored."""
        return not self.wrong and not self.missing


def examine(vault: Vault, copy: HermesBackup) -> VerifyResult:
    """Extract a backup into a scratch folder and verify it, with SQLite checking every database."""
    try:
        with vault.unfinished() as partial:
            backup, missing = extract(vault, copy, partial)
            return VerifyResult(
                try_restore(vault, backup), missing, len(backup.entries), backup.size
            )
    except _UNREADABLE as error:
        return VerifyResult([_said(error)], [], 0, 0)


def extract(vault: Vault, copy: HermesBackup, partial: Path) -> tuple[Backup, list[str]]:
    """Extract a backup into a folder of the vault; also return the files that it lacks."""
    members = _of_zip if copy.kind == "zip" else _of_snapshot
    entries, home = [], vault.home
    owner = home.path.stat()
    for name, mode, mtime_ns, stream in members(copy, partial):
        place = place_of(partial, name)
        disk.make_folder(place.parent)
        with disk.new_file(place, durable=False) as fd, stream:
            sha256, size = disk.copy_stream(stream, fd)
        if is_database(Path(name)) or any(of_store(store, [name]) for store in SECRET_STORES):
            mode &= 0o700  # a zip made elsewhere may have lost the permissions
        entry = BackupEntry(name, "file", size, mode, owner.st_uid, owner.st_gid, mtime_ns, sha256)
        entries.append(entry)
    backup = Backup(
        folder=partial,
        id=partial.name,
        created_at=copy.made_at,
        home=str(home.path),
        reason=f"from {copy.name}",
        hermes=None,
        tool=__version__,
        entries=tuple(entries),
    )
    names = {entry.path for entry in entries}
    expected = [*EXPECTED, *_listed(copy)]
    missing = [name for name in expected if name not in names and _is_there(home, name, copy)]
    return backup, list(dict.fromkeys(missing))


def _of_zip(copy: HermesBackup, partial: Path) -> Iterator[tuple[str, int, int, IO[bytes]]]:
    with os.fdopen(copy.open(), "rb") as file, zipfile.ZipFile(file) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
        check_free_space(partial, sum(info.file_size for info in infos))
        prefix = _prefix([info.filename for info in infos])
        files: set[str] = set()
        folders: set[str] = set()
        for info in infos:
            name = info.filename.removeprefix(prefix)
            if is_process_file(name) or name.startswith("_external/"):
                continue
            _refuse_odd(name)
            name, above = str(PurePosixPath(name)), set(map(str, PurePosixPath(name).parents))
            if name in files or name in folders or not above.isdisjoint(files):
                raise CouldNotLook("it contains a file twice")
            files.add(name)
            folders |= above
            mode = (info.external_attr >> 16) & 0o777
            yield name, mode or PRIVATE, time_of_member(info.date_time), archive.open(info)


def _prefix(names: list[str]) -> str:
    """The folder that all names start with, if the zip contains the home's folder itself."""
    first = {PurePosixPath(name).parts[0] for name in names if "/" in name}
    for prefix in (".hermes/", "hermes/"):
        if first == {prefix[:-1]} and all(name.startswith(prefix) for name in names):
            return prefix
    return ""


def _of_snapshot(copy: HermesBackup, partial: Path) -> Iterator[tuple[str, int, int, IO[bytes]]]:
    files = _manifest(copy)
    check_free_space(partial, sum(size for size in files.values()))
    for listed, size in files.items():
        _refuse_odd(listed)
        name = str(PurePosixPath(listed))
        if is_process_file(name):
            continue
        for end in ("", "-wal", "-journal") if name.endswith(".db") else ("",):
            try:
                fd = copy.open(name + end)
            except FileNotFoundError:
                if not end:
                    break
                continue
            file = os.fdopen(fd, "rb")
            state = Snapshot.of(os.fstat(fd))
            if not end and state.size != size:
                file.close()
                raise CouldNotLook(
                    "{name} has {bytes:,} bytes instead of {expected:,}",
                    name=name,
                    bytes=state.size,
                    expected=size,
                )
            yield name + end, state.mode & 0o777, state.mtime_ns, file


def _manifest(copy: HermesBackup) -> dict[str, int]:
    """The files and sizes in a snapshot's manifest."""
    try:
        data, _ = read(copy.path / MANIFEST, 16 * MEGABYTE, lambda _: copy.open(MANIFEST))
        files = json.loads(data)["files"]
        if not isinstance(files, dict):
            raise TypeError
        return {str(name): int(size) for name, size in files.items()}
    except FileNotFoundError:
        raise CouldNotLook("it has no manifest, so it was not finished") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CouldNotLook("its manifest is damaged") from None


def names_of(folder: Path) -> list[str]:
    """The names in the manifest of a snapshot, of which root may open files for a process."""
    names = list(_manifest(of(folder, "snapshot")))
    for name in names:
        _refuse_odd(name)
    return [str(PurePosixPath(name)) for name in names]


def _listed(copy: HermesBackup) -> list[str]:
    return list(_manifest(copy)) if copy.kind == "snapshot" else []


def _is_there(home: Home, name: str, copy: HermesBackup) -> bool:
    """Whether a file should be in a backup: its manifest lists it, or the home has it now."""
    if name in _listed(copy) and not is_process_file(name):
        return True
    return name in EXPECTED and snapshot(home / name).kind == "file"


def _refuse_odd(name: str) -> None:
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise CouldNotLook("it contains a path outside of a home")
    if any(len(os.fsencode(part)) > LONGEST_NAME for part in parts):
        raise CouldNotLook("it contains a file name that is too long")


def _said(error: Exception) -> str:
    if isinstance(error, CouldNotLook):
        return str(error)
    return f"it is not a readable zip ({type(error).__name__})"


def import_backup(vault: Vault, copy: HermesBackup) -> Backup:
    """Import a backup of Hermes into the vault; raise Trouble if it cannot be read."""
    try:
        with vault.unfinished() as partial:
            return finish_import(vault, extract(vault, copy, partial)[0])
    except _UNREADABLE as error:
        raise Trouble(
            "{copy} cannot be used: {reason}. Nothing was changed.",
            copy=copy.name,
            reason=_said(error),
        ) from None
