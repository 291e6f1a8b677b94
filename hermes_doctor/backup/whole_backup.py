"""Select what a whole backup covers: everything in a home that cannot be recreated."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes_doctor.backup.manifest import MANIFEST
from hermes_doctor.backup.selection import Choice
from hermes_doctor.backup.source_list import FoundPath, Sources
from hermes_doctor.backup.unreadable_files import DENIED, MissingFile, os_error_reason
from hermes_doctor.backup.vault import HOME_FILE, PARTIAL
from hermes_doctor.home import SIDECARS, Home, is_database
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system import privileges
from hermes_doctor.system.files import Snapshot, snapshot, walk
from hermes_doctor.system.privileges import as_owner_of, cache_owners

REBUILT = frozenset(
    {
        "backups",
        "logs",
        "cache",
        "audio_cache",
        "image_cache",
        "document_cache",
        "checkpoints",
        "hermes-agent",
        "state-snapshots",
        "sandboxes",
        "tmp",
    }
)
"""Folders at the top of a home that are logs, caches, code, or backups themselves."""
ANYWHERE = frozenset({"__pycache__", "node_modules", ".venv", "venv", ".git"})
OURS = re.compile(r"\..+\.hermes-doctor-[0-9a-f-]+\.(new|old|back)(\.\w+)?(-wal|-shm|-journal)?")
"""Names of the temporary files of a run."""
BACKUP = re.compile(r"\d{8}-\d{6}-[0-9a-f]{5}")
BESIDE = re.compile(rf"\.?{BACKUP.pattern}\.tar\.age(\.hermes-doctor-[0-9a-f]+\.new)?|lost\+found")
"""Names in a vault's folder that are not backups but not the user's files either: exported
archives, and the lost+found of a separate disk."""
MOMENTARY = frozenset({"gateway.pid", "gateway.lock"})
"""Files that describe a running process: restored, they would be wrong."""


EVERYTHING = Choice()


class OmittedPaths:
    """What a whole backup leaves out, and why."""

    def __init__(self) -> None:
        self.folders: list[str] = []
        """Folders with logs, caches, code and copies; the vault's backups are not listed."""
        self.unwanted: list[str] = []
        """Files that the operator's choice leaves out."""
        self.missing: list[MissingFile] = []
        """Files and folders that should be in the backup and cannot be read."""
        self.unfollowed: list[str] = []
        """Symlinks to folders that contain the home or are the kernel's: saved as links only."""


def _passed_over(home: Home, folder: Path, name: str) -> bool:
    """Whether a backup leaves out a folder with this name in this place."""
    top = folder == home.path or folder.parent == home.path / "profiles"
    return name in ANYWHERE or (top and name in REBUILT)


def _is_backup(folder: Path) -> bool:
    """Whether a folder is a finished or unfinished backup.

    A vault may be anywhere in a home under any name, and backups of backups would double each time.
    """
    name = folder.name.removesuffix(PARTIAL)
    known = (MANIFEST, HOME_FILE)
    return bool(BACKUP.fullmatch(name)) and any(os.path.lexists(folder / one) for one in known)


def _is_ours(folder: Path, name: str, vaults: set[Path]) -> bool:
    """Whether a folder is a backup; in a vault its name is enough, even if its files are lost."""
    if folder in vaults and BACKUP.fullmatch(name.removesuffix(PARTIAL)):
        return True
    return _is_backup(folder / name)


def list_sources(
    home: Home,
    vault: Path | None = None,
    choice: Choice = EVERYTHING,
    omitted: OmittedPaths | None = None,
) -> Sources:
    """List every path to back up; databases in use are marked to be copied through SQLite.

    What is left out is added to `omitted`.
    """
    from hermes_doctor.processes import gateway_processes
    from hermes_doctor.sqlite.exclusive import in_use

    # A vault may be any folder of the home.
    places = {vault, vault.resolve()} if vault else set()
    omitted = OmittedPaths() if omitted is None else omitted
    sources = Sources(str(home.path))
    with cache_owners():
        walked = _with_targets(home, places, _walk(home, places, choice, omitted), omitted)
        databases = [Path(place) for place in sources.add(walked) if _is_main(place)]
    beside = {side: path for path in databases for side in _sides(path)}
    held = gateway_processes.processes_with_open([*databases, *beside])
    live = {beside.get(path, path) for path in held} | {p for p in databases if in_use(p)}
    # SQLite would refuse a file that is not a database, so that is copied as bytes.
    live = {path for path in live if _begins_as_one(path)}
    # The copy through SQLite contains the log.
    merged = {str(side) for path in live for side in _sides(path)}
    sources.know_live({str(path) for path in live}, merged)
    return sources


def _begins_as_one(path: Path) -> bool:
    """Whether a file is a database by its first bytes; False if it is gone."""
    from hermes_doctor.sqlite import header

    try:
        return header.read(path).magic
    except (FileNotFoundError, CouldNotLook):
        return False


def _is_main(place: str) -> bool:
    return is_database(place) and not place.endswith(SIDECARS)


KERNEL = (Path("/proc"), Path("/sys"))
RUNNING = (Path("/dev"), Path("/run"))
"""Folders without user files: they show the state of the kernel and of running programs."""


def _with_targets(
    home: Home, vaults: set[Path], found: Iterable[FoundPath], omitted: OmittedPaths
) -> Iterator[FoundPath]:
    """Yield the paths, and after each symlink that leads out of the home its targets, once."""
    known: set[str] = set()
    for one in found:
        yield one
        if one[2].kind != "symlink":
            continue
        try:
            real = Path(one[1]).resolve(strict=True)
        except (OSError, RuntimeError):
            continue  # it leads nowhere
        if real.is_relative_to(home.path):
            continue  # it is saved in its own place
        if home.path.is_relative_to(real) or _is_systems(real):
            omitted.unfollowed.append(one[0])
            continue
        for path in _behind(home, real, vaults, omitted):
            name = str(path)
            if name in known:
                continue
            known.add(name)
            try:
                taken = snapshot(path)
            except CouldNotLook as why:
                omitted.missing.append(MissingFile(home.name_of(path), _without_name(why)))
                continue
            if _lent(home, taken):
                yield home.name_of(path), name, taken


def _is_systems(real: Path) -> bool:
    return real in RUNNING or any(map(real.is_relative_to, KERNEL))


def _behind(home: Home, real: Path, vaults: set[Path], omitted: OmittedPaths) -> Iterator[Path]:
    """Yield the targets of a symlink: a file and its sidecars, or all files of a folder."""
    yield from (real, *_sides(real))
    if not real.is_dir():
        return

    def failed(error: OSError) -> None:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            omitted.missing.append(MissingFile.folder(home.name_of(Path(error.filename)), error))

    for base, folders, files in walk(real, failed):
        here = Path(base)
        folders[:] = sorted(
            name
            for name in folders
            if name not in ANYWHERE
            and here / name != home.path  # saved in its own place
            and not _is_ours(here, name, vaults)
            and not (here in vaults and BESIDE.fullmatch(name))
        )
        for name in sorted(files):
            if not (here in vaults and BESIDE.fullmatch(name)):
                yield here / name


def _lent(home: Home, taken: Snapshot) -> bool:
    """Whether the home's owner owns a file outside: root must not copy other users' files."""
    owner = home.path.stat().st_uid
    return taken.kind == "file" and (os.geteuid() != 0 or owner == 0 or taken.uid == owner)


def _walk(
    home: Home, vaults: set[Path], choice: Choice, omitted: OmittedPaths
) -> Iterator[FoundPath]:
    """Yield the files of the home, profiles included, in a stable order."""
    me = os.geteuid()
    passed: set[Path] = set()
    """Folders that are left out by default, and searched only for included files."""

    def failed(error: OSError) -> None:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):  # gone by now
            omitted.missing.append(MissingFile.folder(home.name_of(Path(error.filename)), error))

    for base, folders, files in walk(home.path, failed):
        here = Path(base)
        top = here == home.path or here.parent == home.path / "profiles"
        out = here in passed
        below = "" if here == home.path else f"{home.name_of(here)}/"
        wanted = []
        if here in vaults:
            beside = [
                name
                for name in (*folders, *files)
                if BESIDE.fullmatch(name) and not choice.wants(below + name, anyway=False)
            ]
            omitted.folders += [f"{below}{name}" for name in sorted(beside)]
            files = [name for name in files if name not in beside]
            folders[:] = [name for name in folders if name not in beside]
        for folder in sorted(folders):
            over = _passed_over(home, here, folder)
            if here / folder == home.vault or _is_ours(here, folder, vaults):
                continue
            if not (over or out) or choice.may_want_in(f"{below}{folder}"):
                wanted.append(folder)
            elif over and folder != "backups":
                omitted.folders.append(f"{below}{folder}")
            if over or out:
                passed.add(here / folder)
        folders[:] = wanted
        links = [name for name in folders if os.path.islink(f"{base}/{name}")]
        ours = me == 0 and privileges.of(f"{base}/any") is None  # root may read everything there
        for file in sorted(files + links):
            if (file[0] == "." and OURS.fullmatch(file)) or (top and file in MOMENTARY):
                continue
            name, place = f"{below}{file}", f"{base}/{file}"
            if not choice.wants(name, anyway=not out):
                if not out:
                    omitted.unwanted.append(name)
                continue
            try:
                taken = snapshot(place)
            except CouldNotLook as why:
                omitted.missing.append(MissingFile(name, _without_name(why)))
                continue
            if taken.kind == "symlink":
                yield name, place, taken
            elif taken.kind == "file":
                mine = taken.uid == me != 0 and taken.mode & 0o400  # root acts for others
                if ours or mine or _readable(place):
                    yield name, place, taken
                elif os.path.lexists(place):
                    omitted.missing.append(MissingFile(name, DENIED))


def _readable(place: str) -> bool:
    """Whether we may read a file; root uses only the privileges of the place's owner."""
    with as_owner_of(Path(place)) as here:
        return os.access(here, os.R_OK, effective_ids=True)


def _without_name(why: CouldNotLook) -> str:
    """The reason of an error, without the name of the file."""
    if isinstance(why.__cause__, OSError):
        return os_error_reason(why.__cause__)
    return str(why).rpartition(": ")[2]


def _sides(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in SIDECARS]
