"""The vault: create, load, verify and remove the backups of a home."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hermes_doctor import __version__
from hermes_doctor.backup.records.receipts import RUN_FILE
from hermes_doctor.backup.vault import blocks, large_manifest
from hermes_doctor.backup.vault.free_space import check_free_space, create_folder, write_error
from hermes_doctor.backup.vault.large_manifest import Lines
from hermes_doctor.backup.vault.manifest import (
    BASE,
    CHANGED,
    DAMAGE,
    MANIFEST,
    Backup,
    BackupEntry,
    BackupSource,
    damaged_manifest,
    parse,
    seal,
)
from hermes_doctor.backup.vault.save import BackupWriter
from hermes_doctor.backup.vault.unchanged import PreviousBackup
from hermes_doctor.backup.vault.unreadable_files import MissingFile
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.preferences import effective
from hermes_doctor.core.system import digests, disk, limits, privileges, root_parent
from hermes_doctor.core.system.files import MEGABYTE, list_folder, read, snapshot, walk
from hermes_doctor.core.system.signals import delay_signals

PARTIAL = ".partial"
HOME_FILE = "home"
"""A file in a backup with the path of its home, written before the manifest."""
SMALL = 2 * MEGABYTE
"""Bytes up to which a manifest is read into memory as a whole."""

Progress = Callable[[int], None]

_ID = re.compile(r"(\d{8}-\d{6}-\d{3})[0-9a-f]{2}")
_LEFT = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]+")
"""The ids among the names in a folder of runs or backups."""


def new_id(known: Iterable[str] = ()) -> str:
    """Make a unique id that sorts after all known ids, even if the clock was set back."""
    now = datetime.now(UTC)
    stamps = [match[1] for name in known if (match := _ID.match(name))]
    with contextlib.suppress(ValueError, OverflowError):  # a name that is not a time
        day, clock, thousandths = max(stamps, default="").split("-")
        last = datetime.fromisoformat(f"{day}T{clock}.{thousandths}+00:00")
        now = max(now, last + timedelta(milliseconds=1))
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03d}{os.urandom(1).hex()}"


class Vault:
    """The vault: the folder in which the backups of a home are stored."""

    def __init__(self, home: Home, root: Path | None = None) -> None:
        self.home = home
        chosen = root or effective.load().vault(home.path)
        self.root = chosen.expanduser().absolute() if chosen else home.vault
        limits.note_drive(self.root)
        place = next(place for place in (home.path, *home.path.parents) if place.exists())
        self.owner = os.stat(place).st_uid  # if the home is lost, of the folder above it

    # -- reading ---------------------------------------------------------------------------

    def ids(self) -> list[str]:
        """The ids of the complete backups, oldest first."""
        names = [name for name in list_folder(self.root) if not name.endswith(PARTIAL)]
        return [n for n in names if self._is_trusted(n)]

    def _is_trusted(self, id: str) -> bool:
        """Whether a backup is complete and belongs to the home's owner, to root or to us."""
        try:
            folder = os.lstat(self.root / id)
            os.lstat(self.root / id / MANIFEST)
        except OSError:
            return False
        return folder.st_uid in (0, os.geteuid(), self.owner)

    def next_id(self, reserved: Iterable[str] = ()) -> str:
        """Make an id for a new backup or run, after all existing ones and those in `reserved`."""
        known = list(reserved)
        for place in (self.root, self.home.runs):
            with contextlib.suppress(CouldNotLook):
                known += list_folder(place)
        return new_id(known)

    def load(self, id: str) -> Backup:
        """Load one backup and check the seal of its manifest."""
        named = id == Path(id).name and not id.endswith(PARTIAL)
        if not named or not self._is_trusted(id):
            if root_parent.is_separate() and not os.access(self.root, os.R_OK | os.X_OK):
                raise root_parent.NeedsRoot(self.root)
            no_backup = "No backup {id!r} in {vault}. See: hermes-doctor backup list"
            raise Trouble(no_backup, id=id, vault=self.root)
        folder = self.root / id
        backup = self._read(folder)
        stranger = os.geteuid() == 0 and self.owner != 0 and backup.home != str(self.home.path)
        if stranger and not self.root.resolve().is_relative_to(self.home.path):
            what = "Backup {id} in {vault} belongs to another home, {home}."
            raise Trouble(what, id=id, vault=self.root, home=backup.home)
        return backup

    def own_ids(self) -> list[str]:
        """The ids of the complete backups of this home, oldest first."""
        return [id for id in self.ids() if self.is_ours(id)]

    def load_readable(self, ids: Iterable[str]) -> Iterator[Backup]:
        """The backups with these ids, in this order, without those that cannot be read."""
        for id in ids:
            with contextlib.suppress(Trouble):
                yield self.load(id)

    def _read(self, folder: Path) -> Backup:
        """Read a backup's manifest; the entries of a large one stay on disk."""
        try:
            if snapshot(folder / MANIFEST).size > SMALL:
                try:
                    if large := large_manifest.load(folder):
                        return large
                except DAMAGE:
                    raise damaged_manifest(folder) from None
            data, _ = read(folder / MANIFEST, 256 * MEGABYTE)
        except (CouldNotLook, OSError):
            what = "Could not read the manifest of backup {id} ({folder})."
            raise Trouble(what, id=folder.name, folder=folder) from None
        return parse(folder, data)

    def is_ours(self, id: str) -> bool:
        """Whether a backup is of this home; a vault elsewhere may serve several homes."""
        if self.root == self.home.vault:
            return True
        try:
            return self.load(id).home == str(self.home.path)
        except Trouble:
            return False

    def verify(
        self,
        backup: Backup,
        progress: Progress | None = None,
        known: dict[bytes, str] | None = None,
    ) -> list[str]:
        """Compare all copies with their digests; return messages about the wrong ones.

        `known` caches the digests of copies that were read before, which backups may share.
        """
        wrong = []
        for entry in backup.entries:
            if entry.kind != "file":
                continue
            copy = backup.copy_of(entry)
            try:
                marks = _marks(copy, entry)
                digest = (known or {}).get(marks) or blocks.digest_of(copy, entry, progress)
                if known is not None and _marks(copy, entry) == marks:  # else it changed since
                    known[marks] = digest
            except (FileNotFoundError, NotADirectoryError):
                wrong.append(f"{entry.path}: the copy is missing")
            except (CouldNotLook, OSError) as error:
                wrong.append(f"{entry.path}: the copy could not be read ({type(error).__name__})")
            else:
                if digest != entry.sha256:
                    wrong.append(f"{entry.path}: the copy is damaged")
        return wrong

    # -- writing ---------------------------------------------------------------------------

    def prepare(self) -> None:
        """Create the vault's folder, private; raise Trouble if another user owns it."""
        create_folder(self.root, self.owner)

    def room(self, needed: int) -> None:
        """Raise Trouble if the vault's disk has too little free space."""
        place = self.root
        while not place.exists():
            place = place.parent
        check_free_space(place, needed)

    def create(
        self,
        sources: Sequence[BackupSource],
        *,
        reason: str,
        hermes: str | None,
        id: str | None = None,
        whole: bool = False,
        full: bool = False,
        left_out: Sequence[str] = (),
        missing: Sequence[MissingFile] = (),
        progress: Progress | None = None,
    ) -> Backup:
        """Make a backup: copy, verify by digest, seal; until the last rename it is a .partial.

        Unchanged files are shared with the last backup of the home, unless `full` is set. `missing`
        are files that could not be opened. A backup that lacks any file is not `whole`.
        """
        id = id or self.next_id()
        self.prepare()
        partial, folder = self.root / (id + PARTIAL), self.root / id
        shares = (whole or left_out) and not full
        earlier = PreviousBackup(self.newest() if shares else None)
        saving = BackupWriter(self.home, partial, earlier, progress)
        if sources:  # a run without files may be the one that frees space
            self.room(saving.wanted(sources))
        try:
            with self.unfinished(id):
                entries = _saved(saving, sources)
                lacking = (*missing, *saving.missing)
                backup = Backup(
                    folder=partial,
                    id=id,
                    created_at=datetime.now(UTC),
                    home=str(self.home.path),
                    reason=reason,
                    hermes=hermes,
                    tool=__version__,
                    entries=entries,
                    whole=whole and not lacking,
                    missing=lacking,
                    shares=earlier.backup.id if earlier.backup and earlier.shared else None,
                    left_out=tuple(left_out),
                )
                if isinstance(entries, Lines):
                    entries.finish(backup)
                else:
                    disk.save(partial / MANIFEST, seal(backup, earlier.backup))
                self.finish(partial)
            if isinstance(entries, Lines):
                backup = backup._replace(entries=self._read(folder).entries)
        except OSError as error:
            why = os.strerror(error.errno or 0).lower()
            raise write_error(self.root, why) from None
        before = earlier.backup.id if earlier.backup else ""
        damaged = tuple((before, name) for name in sorted(earlier.wrong))
        return backup._replace(folder=folder, damaged_before=damaged)

    def keep(
        self, *, reason: str, hermes: str | None, write: Callable[[Path], Sequence[BackupEntry]]
    ) -> Backup:
        """Make a backup of files that have no path: `write` puts them into the given folder.

        `write` returns the entries that it wrote, synced and read back. Until the last rename the
        backup is only a .partial.
        """
        id, home = self.next_id(), str(self.home.path)
        with self.unfinished(id) as partial:
            entries, now = tuple(write(partial)), datetime.now(UTC)
            backup = Backup(partial, id, now, home, reason, hermes, __version__, entries)
            disk.save(partial / MANIFEST, seal(backup))
            return backup._replace(folder=self.finish(partial))

    @contextmanager
    def unfinished(self, id: str | None = None, *, prepare: bool = True) -> Iterator[Path]:
        """A folder for a new backup, or for a while; it is removed unless it was finished.

        Until then it is a `.partial`, which the next command removes if we are killed. A command
        that only reads backups does not prepare the vault, which may belong to somebody else.
        """
        if prepare:
            self.prepare()
        partial = self.root / ((id or self.next_id()) + PARTIAL)
        try:
            disk.make_folder(partial)
            disk.save(partial / HOME_FILE, str(self.home.path).encode("utf-8", "surrogateescape"))
            yield partial
        finally:
            if os.path.lexists(partial):
                with delay_signals(), contextlib.suppress(OSError):
                    self.discard(partial.name)

    def finish(self, partial: Path) -> Path:
        """Make an unfinished backup, whose manifest is written, a backup; return its folder."""
        folder = self.root / partial.name.removesuffix(PARTIAL)
        disk.rename(partial, folder)
        disk.sync_folder(self.root)
        return folder

    def remove_leftovers(self) -> None:
        """Remove runs without a journal and unfinished backups; the caller must hold the lock.

        A run without a journal had not started.
        """
        runs = self.home.runs
        for id in filter(_LEFT.fullmatch, list_folder(runs)):
            with contextlib.suppress(OSError):
                disk.remove_temporary(runs / id / RUN_FILE)
                if not os.path.lexists(runs / id / RUN_FILE):
                    disk.remove_folder(runs / id)
        for name in list_folder(self.root):
            id = name.removesuffix(PARTIAL)
            if name != id and _LEFT.fullmatch(id) and self.began(name):
                with contextlib.suppress(OSError):
                    self.discard(name)

    def newest(self) -> Backup | None:
        """The newest readable backup of this home, of all of it or of a selection."""
        for backup in self.load_readable(reversed(self.ids())):
            if backup.of_home and backup.home == str(self.home.path):
                return backup
        return None

    def began(self, name: str) -> bool:
        """Whether a backup, finished or not, is of this home; several homes may share a vault."""
        if self.root == self.home.vault:
            return True
        try:
            data, _ = read(self.root / name / HOME_FILE, 4 * 4096)
        except (CouldNotLook, OSError):
            return False
        return data.decode("utf-8", "surrogateescape") == str(self.home.path)

    def discard(self, name: str) -> None:
        """Remove a backup's folder, the manifest first: a partial backup must not look complete."""
        folder = self.root / name
        if not name.endswith(PARTIAL):
            folder = self.root / (name + PARTIAL)
            disk.rename(self.root / name, folder)
            disk.sync_folder(self.root)
        if folder.is_symlink():  # never follow it
            disk.remove(folder)
            return
        disk.remove(folder / MANIFEST)
        folders = []
        for base, below, files in walk(folder):
            folders.append(base)
            links = [name for name in below if os.path.islink(f"{base}/{name}")]
            for name in (*files, *links):
                disk.remove(Path(f"{base}/{name}"))
        for base in reversed(folders):
            disk.remove_folder(Path(base))


def _saved(writer: BackupWriter, sources: Sequence[BackupSource]) -> Sequence[BackupEntry]:
    """Save the sources, and read back what was written; raise Trouble if it differs."""
    with privileges.cache_owners(), writer:
        entries = writer.all(sources)
        disk.sync_tree(writer.partial.folder, writer.partial.fresh)
        # Whole copies made through SQLite were already read back and checked.
        wrong = writer.read_back()
    if wrong:
        raise Trouble("The new backup is damaged: {reason}. Nothing was changed.", reason=wrong[0])
    return entries


def _marks(copy: Path, entry: BackupEntry) -> bytes:
    """A key that is equal only for hard links to one copy with the same kind of digest.

    An inode number may be reused and an mtime set, but not a ctime. The key is a short hash,
    because many are kept in memory.
    """
    import hashlib

    parts = (copy / BASE, copy / CHANGED) if entry.blocks else (copy,)
    states = [os.lstat(part) for part in parts]
    by_pieces = (entry.sha256 or "").startswith(digests.PREFIX)
    marks = (
        by_pieces,
        *((st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns) for st in states),
    )
    return hashlib.blake2b(repr(marks).encode(), digest_size=16).digest()
