"""Select what a whole backup covers: everything in a home that cannot be recreated."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from hermes_doctor.backup.vault.manifest import MANIFEST
from hermes_doctor.backup.vault.selection import Choice
from hermes_doctor.backup.vault.source_list import FoundPath, Sources
from hermes_doctor.backup.vault.unreadable_files import DENIED, MissingFile, reason_without_name
from hermes_doctor.backup.vault.vault import HOME_FILE, PARTIAL
from hermes_doctor.core.home import SIDECARS, Home, is_database
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import privileges
from hermes_doctor.core.system.files import Snapshot, snapshot, walk
from hermes_doctor.core.system.privileges import as_owner_of, cache_owners
from hermes_doctor.hermes.processes import gateway_processes
from hermes_doctor.sqlite import header
from hermes_doctor.sqlite.exclusive import in_use

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

    def add_unlisted(self, home: Home, error: OSError) -> None:
        """Add a folder that could not be listed, unless it is gone by now."""
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            self.missing.append(MissingFile.folder(home.name_of(Path(error.filename)), error))


def _passed_over(home: Home, folder: Path, name: str) -> bool:
    """Whether a backup leaves out a folder with this name in this place."""
    top = folder == home.path or folder.parent == home.path / "profiles"
    return name in ANYWHERE or (top and name in REBUILT)


def _is_ours(folder: Path, name: str, vaults: set[Path]) -> bool:
    """Whether a folder is a finished or unfinished backup; in a vault its name is enough.

    A vault may be anywhere in a home under any name, and backups of backups would double each time.
    """
    backup = BACKUP.fullmatch(name.removesuffix(PARTIAL))
    if backup and folder in vaults:
        return True
    known = (MANIFEST, HOME_FILE)
    return bool(backup) and any(os.path.lexists(folder / name / file) for file in known)


def list_sources(
    home: Home,
    vault: Path | None = None,
    choice: Choice = EVERYTHING,
    omitted: OmittedPaths | None = None,
) -> Sources:
    """List every path to back up and mark databases in use; what is left out is in `omitted`."""
    # A vault may be any folder of the home.
    vaults = {vault, vault.resolve()} if vault else set()
    omitted = OmittedPaths() if omitted is None else omitted
    sources = Sources(str(home.path))
    with cache_owners():
        walked = _with_targets(home, vaults, _walk(home, vaults, choice, omitted), omitted)
        places = [place for place in sources.add(walked) if is_database(place)]
    databases = [Path(place) for place in places if not place.endswith(SIDECARS)]
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
    try:
        return header.read(path).magic
    except (FileNotFoundError, CouldNotLook):
        return False


KERNEL = (Path("/proc"), Path("/sys"))
RUNNING = (Path("/dev"), Path("/run"))
"""Folders without user files: they show the state of the kernel and of running programs."""


def _with_targets(
    home: Home, vaults: set[Path], paths: Iterable[FoundPath], omitted: OmittedPaths
) -> Iterator[FoundPath]:
    """Yield the paths, and after each symlink that leads out of the home its targets, once."""
    known: set[str] = set()
    owner = home.path.stat().st_uid
    for source in paths:
        yield source
        if source[2].kind != "symlink":
            continue
        try:
            real = Path(source[1]).resolve(strict=True)
        except (OSError, RuntimeError):
            continue  # it leads nowhere
        if real.is_relative_to(home.path):
            continue  # it is saved in its own place
        systems = real in RUNNING or any(map(real.is_relative_to, KERNEL))
        if home.path.is_relative_to(real) or systems:
            omitted.unfollowed.append(source[0])
            continue
        for path in _behind(home, real, vaults, omitted):
            name = str(path)
            if name in known:
                continue
            known.add(name)
            try:
                state = snapshot(path)
            except CouldNotLook as why:
                omitted.missing.append(MissingFile(home.name_of(path), reason_without_name(why)))
                continue
            # Root must not copy files of other users than the home's owner.
            if state.kind == "file" and (os.geteuid() != 0 or owner in (0, state.uid)):
                yield home.name_of(path), name, state


def _behind(home: Home, real: Path, vaults: set[Path], omitted: OmittedPaths) -> Iterator[Path]:
    """Yield the targets of a symlink: a file and its sidecars, or all files of a folder."""
    yield from (real, *_sides(real))
    if not real.is_dir():
        return

    for base, folders, files in walk(real, partial(omitted.add_unlisted, home)):
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


def _walk(
    home: Home, vaults: set[Path], choice: Choice, omitted: OmittedPaths
) -> Iterator[FoundPath]:
    """Yield the files of the home, profiles included, in a stable order."""
    me = os.geteuid()
    passed: set[Path] = set()
    """Folders that are left out by default, and searched only for included files."""

    for base, folders, files in walk(home.path, partial(omitted.add_unlisted, home)):
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
            state, why = _state(place, ours=ours)
            if state is not None:
                yield name, place, state
            elif why:
                omitted.missing.append(MissingFile(name, why))


def _state(place: str, *, ours: bool) -> tuple[Snapshot | None, str]:
    """The state of a file or symlink that can be backed up; else None, and why it cannot be read.

    `ours` says that root may read everything in the folder.
    """
    try:
        state = snapshot(place)
    except CouldNotLook as why:
        return None, reason_without_name(why)
    me = os.geteuid()
    mine = state.uid == me != 0 and state.mode & 0o400  # root acts for others
    if state.kind == "symlink" or (state.kind == "file" and (ours or mine or _readable(place))):
        return state, ""
    denied = state.kind == "file" and os.path.lexists(place)
    return None, DENIED if denied else ""


def _readable(place: str) -> bool:
    """Whether we may read a file; root uses only the privileges of the place's owner."""
    with as_owner_of(Path(place)) as here:
        return os.access(here, os.R_OK, effective_ids=True)


def _sides(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in SIDECARS]
