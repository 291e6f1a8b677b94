"""Find copies of a file of the home that Hermes, an operator or this tool has left."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.backup.vault.copy_content import starts_like_database
from hermes_doctor.core.file_copies import DatabaseCopy, TextCopy
from hermes_doctor.core.home import SIDECARS, Home
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.preferences import effective
from hermes_doctor.core.system.files import (
    MEGABYTE,
    Snapshot,
    names_in,
    open_regular,
    read,
    snapshot,
    user_home,
)
from hermes_doctor.hermes.settings.config_yaml import LIMIT as CONFIG_LIMIT, NAME, parse

if TYPE_CHECKING:
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.hermes.stores.store_file import StoreFile

MOST = 200
ZIP_LIMIT = 2048 * MEGABYTE
DATABASE_LIMIT = 16 * 1024 * MEGABYTE
"""The largest database that is taken from a zip."""


def database_copies(home: Home, path: Path) -> list[DatabaseCopy]:
    """Other files that are copies of this database, newest first."""
    copies = filter(None, map(_copy_at, _places(home, path)))
    return sorted(copies, key=lambda copy: copy.mtime_ns, reverse=True)


def _copy_at(place: Path, *, doubtful: bool = False) -> DatabaseCopy | None:
    """The file at a place if it can be a copy of a database with rows."""
    with contextlib.suppress(OSError):
        st = os.lstat(place)
        if stat.S_ISREG(st.st_mode) and st.st_size > 4096:
            return DatabaseCopy(place, st.st_size, st.st_mtime_ns, "", doubtful)
    return None


def archived_databases(home: Home) -> dict[str, list[DatabaseCopy]]:
    """The databases in Hermes' own backup zips, by name; newest first, doubtful ones last.

    Each zip is opened once, however many databases a home has.
    """
    by_name: dict[str, list[DatabaseCopy]] = {}
    for archive, prefix in _zips(home, ""):
        for copy in _databases_in_zip(home, archive, prefix):
            by_name.setdefault(copy.member.removeprefix(prefix), []).append(copy)
    for same in by_name.values():
        same.sort(key=lambda copy: (copy.doubtful, -copy.mtime_ns))
    return by_name


def _databases_in_zip(home: Home, path: Path, prefix: str) -> list[DatabaseCopy]:
    """The databases in one zip, by its table of contents; a damaged zip has none."""
    import zipfile  # slow to load, and seldom needed

    try:
        if not _trusted(home, path, snapshot(path)):
            return []
        with os.fdopen(open_regular(path), "rb") as file, zipfile.ZipFile(file) as archive:
            inside = [info for info in archive.infolist() if info.filename.startswith(prefix)]
        doubtful, copies = _anywhere(home, path), []
        for info in inside:
            name, size = info.filename, info.file_size
            if name.endswith(".db") and 4096 < size <= DATABASE_LIMIT:
                written = time_of_member(info.date_time)
                copies.append(DatabaseCopy(path, size, written, name, doubtful))
        return copies
    except Exception:  # noqa: BLE001 (zlib.error, struct.error, BadZipFile, …)
        return []


def time_of_member(date_time: tuple[int, int, int, int, int, int]) -> int:
    """When a member of a zip was written, in ns since 1970; 0 if its local time is impossible."""
    try:
        return int(datetime(*date_time).astimezone().timestamp()) * 10**9
    except (ValueError, OverflowError, OSError):
        return 0


def _anywhere(home: Home, path: Path) -> bool:
    """Whether a zip may be of another home: `hermes backup` writes there for any home."""
    return home.path not in path.parents and path.parent.name != "backups"


def moved_copies(home: Home, path: Path) -> list[DatabaseCopy]:
    """Databases under another name or in another folder, as a person leaves them.

    They are looked for next to the database, in the folders of the home, in the folder around the
    home and in the user's own folder. Those outside of the home may be of another home.
    """
    stem = path.stem.lower()
    known = set(home.databases())
    moved: dict[Path, DatabaseCopy] = {}
    for folder, doubtful in _folders_of_people(home, path):
        for name in names_in(folder)[:MOST_NAMES]:
            if stem not in name.lower() or name.endswith(_NOT_COPIES):
                continue
            place = folder / name
            if ".hermes-doctor-" in name or place in known or place in moved:
                continue
            with contextlib.suppress(OSError, CouldNotLook):
                copy = _copy_at(place, doubtful=doubtful)
                if copy and starts_like_database(place) and _trusted(home, place, snapshot(place)):
                    moved[place] = copy
    return list(moved.values())


_NOT_COPIES = (*SIDECARS, ".lock")
_OTHER_FOLDERS = frozenset(
    {"profiles", "logs", "sessions", "skills", "node_modules", "kanban", "state-snapshots", "cache"}
)
"""Folders of a home that have files of their own kind."""
MOST_NAMES = 2000
MOST_FOLDERS = 100


def _folders_of_people(home: Home, path: Path) -> Iterator[tuple[Path, bool]]:
    """The folders to search, and whether a database there may be of another home."""
    yield path.parent, False
    if path.parent == home.path:
        names = [name for name in names_in(home.path) if name not in _OTHER_FOLDERS]
        folders = [home / name for name in names[:MOST_NAMES]]
        inside = [folder for folder in folders if folder.is_dir() and not folder.is_symlink()]
        yield from ((folder, False) for folder in inside[:MOST_FOLDERS])
        around = dict.fromkeys((home.path.parent, user_home()))
        yield from ((folder, True) for folder in around if folder != home.path)


def unsearched_folders(home: Home, path: Path) -> list[Path]:
    """The folders in which a person may have left a copy, and that we may not read."""
    return [
        folder
        for folder, _ in _folders_of_people(home, path)
        if folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK)
    ]


def damaged_copies(path: Path) -> list[DatabaseCopy]:
    """The whole copies that Hermes kept each time it found this database damaged."""
    damaged = []
    for name in names_in(path.parent):
        if name.startswith((f"{path.name}.malformed-backup-", f"{path.name}.corrupt.")):
            with contextlib.suppress(OSError):
                st = os.lstat(path.parent / name)
                damaged.append(DatabaseCopy(path.parent / name, st.st_size, st.st_mtime_ns))
    return damaged


def session_file_count(home: Home) -> int:
    """How many session files there are whose sessions are also in the database."""
    names = names_in(home / "sessions")
    return sum(name.endswith((".json", ".jsonl")) and name != "sessions.json" for name in names)


def _places(home: Home, path: Path) -> Iterator[Path]:
    for left in damaged_copies(path):
        if not left.path.name.endswith(("-wal", "-shm")):
            yield left.path
    snapshots = home / "state-snapshots"
    for name in names_in(snapshots)[-MOST:]:
        yield snapshots / name / home.name_of(path)
    for name in names_in(home.vault)[-MOST:]:
        yield home.vault / name / "files" / home.name_of(path)
    yield from _chosen_vault(home, home.name_of(path))
    for name in names_in(path.parent):
        if name.startswith(path.name + ".") and name.endswith((".bak", ".old", ".orig")):
            yield path.parent / name


def _chosen_vault(home: Home, name: str) -> Iterator[Path]:
    """Yield the copies in the vault that config.toml names; other homes may use it, too."""
    chosen = effective.load().vault(home.path)
    if chosen is None or chosen == home.vault:
        return
    from hermes_doctor.backup.vault.vault import Vault

    vault = Vault(home, chosen)
    for id in _own_backups(vault):
        yield vault.root / id / "files" / name


def _own_backups(vault: Vault) -> list[str]:
    """The newest backups of the home; none if the vault cannot be read."""
    try:
        return [id for id in vault.ids() if vault.began(id)][-MOST:]
    except CouldNotLook:
        return []


def text_copies(home: Home, name: str, limit: int) -> Iterator[TextCopy]:
    """Yield every copy of a small file: beside it, in snapshots, in the vault, in Hermes' zips."""
    path = home / name
    beside = [  # config.yaml.bak, config.yaml~, but not the file itself
        path.parent / sibling
        for sibling in names_in(path.parent)
        if sibling.startswith(path.name)
        and sibling != path.name
        and ".hermes-doctor-" not in sibling
    ]
    folder = home / "state-snapshots"
    snapshots = [folder / snapshot_name / name for snapshot_name in names_in(folder)[-MOST:]]
    for place in beside + snapshots:
        try:
            data, state = read(place, limit)
        except (FileNotFoundError, CouldNotLook):
            continue
        if _trusted(home, place, state):
            yield TextCopy(home.name_of(place), data, _moment(state.mtime_ns / 1e9))
    yield from _from_vault(home, name, limit)
    for archive, member in _zips(home, name):
        yield from _from_zip(home, archive, member, limit)


def _trusted(home: Home, path: Path, state: Snapshot) -> bool:
    """Whether a copy belongs to the home's owner: as root, a symlink could lead to any file."""
    owner = home.path.stat().st_uid
    return snapshot(path).kind == "file" and (os.geteuid() != 0 or state.uid == owner)


def _from_vault(home: Home, name: str, limit: int) -> Iterator[TextCopy]:
    """Yield the undamaged copies in this tool's own backups."""
    import hashlib

    from hermes_doctor.backup.vault.vault import Vault

    for vault in (Vault(home, root) for root in dict.fromkeys((home.vault, Vault(home).root))):
        for id in _own_backups(vault):
            try:
                backup = vault.load(id)
                entry = backup.entry(name)
                if entry is None or entry.kind != "file":
                    continue
                data, _ = read(backup.copy_of(entry), limit)
            except (FileNotFoundError, CouldNotLook, Trouble):
                continue
            if hashlib.sha256(data).hexdigest() == entry.sha256:
                label = home.name_of(backup.copy_of(entry))
                yield TextCopy(label, data, _moment(entry.mtime_ns / 1e9))


def _zips(home: Home, name: str) -> Iterator[tuple[Path, str]]:
    """Yield Hermes' own backup zips, each with the name of the file inside it.

    `hermes backup` writes into the user's home folder, for any home, and includes profiles. So a
    zip beside the default home is used too, but marked as possibly that of another home.
    """
    root = home.path.parent.parent if home.profile else home.path
    inside = f"profiles/{home.profile}/{name}" if home.profile else name
    places = {home / "backups": name, root / "backups": inside}
    for folder, member in places.items():
        for zip_name in names_in(folder):
            if zip_name.endswith(".zip"):
                yield folder / zip_name, member
    if root.name == ".hermes":
        for zip_name in names_in(root.parent):
            if zip_name.startswith("hermes-backup-") and zip_name.endswith(".zip"):
                yield root.parent / zip_name, inside


def _from_zip(home: Home, path: Path, name: str, limit: int) -> Iterator[TextCopy]:
    """The copy in one of Hermes' own backup zips; a damaged zip has none."""
    import zipfile  # slow to load, and seldom needed

    try:
        state = snapshot(path)
        if state.size > ZIP_LIMIT or not _trusted(home, path, state):
            return
        with os.fdopen(open_regular(path), "rb") as file, zipfile.ZipFile(file) as archive:
            info = next((i for i in archive.infolist() if i.filename == name), None)
            if info is None or info.file_size > limit:
                return
            with archive.open(info) as member:
                data = member.read(limit + 1)
            written = datetime(*info.date_time).astimezone(UTC)
    except Exception:  # noqa: BLE001 (zlib.error, LZMAError, struct.error, BadZipFile, …)
        return
    if len(data) <= limit:
        yield TextCopy(f"{home.name_of(path)}:{name}", data, written, _anywhere(home, path))


def _moment(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)


def config_copies(home: Home) -> list[TextCopy]:
    """Copies that parse to at least one setting, newest first."""

    def has_settings(copy: TextCopy) -> bool:
        values, fault = parse(copy.data)
        return bool(values) and not fault

    return _newest_first(filter(has_settings, text_copies(home, NAME, CONFIG_LIMIT)))


def intact_copies(home: Home, file: StoreFile) -> list[TextCopy]:
    """Copies of a store with at least one entry, newest first; harmless flaws are repaired."""
    from hermes_doctor.hermes.stores.damage import examine_bytes
    from hermes_doctor.hermes.stores.entries import entries_by_name
    from hermes_doctor.hermes.stores.json_repairs import repair_bytes
    from hermes_doctor.hermes.stores.store_file import LIMIT

    intact = []
    for copy in text_copies(home, file.name, LIMIT):
        values, flaw = examine_bytes(copy.data, file.store)
        if flaw is not None:
            mended = repair_bytes(copy.data, file.store)
            if mended is None or not mended.lossless:
                continue
            copy, values = copy._replace(data=mended.data), mended.values
        if entries_by_name(values, file.store):
            intact.append(copy)
    return _newest_first(intact)


def _newest_first(copies: Iterable[TextCopy]) -> list[TextCopy]:
    """The copies without those that are the same as a newer one."""
    by_content: dict[bytes, TextCopy] = {}
    for copy in sorted(copies, key=lambda copy: copy.modified, reverse=True):
        by_content.setdefault(copy.data, copy)
    return list(by_content.values())
