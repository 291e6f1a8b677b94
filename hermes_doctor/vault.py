"""Where backups lie: a folder each, with a sealed manifest, verified before they count."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hermes_doctor import __version__, durable
from hermes_doctor.files import MEGABYTE, Snapshot, listing, read, read_head, size, snapshot
from hermes_doctor.home import SIDECARS, Home, is_database, main_of
from hermes_doctor.interrupts import uninterrupted
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.sqlite.guard import in_use

SCHEMA = "hermes-doctor/backup/1"
MANIFEST = "manifest.json"
PARTIAL = ".partial"
BEGUN = "home"
"""A file in a backup that names the home it is of, before there is a manifest."""
MARGIN = 4 * MEGABYTE
"""Room that must be left on a disk beside what is copied."""

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Entry:
    """One path as it was: enough to give it back exactly."""

    path: str
    """Relative to the home, or absolute for a file that a symlink of the home leads to."""
    kind: str
    """file, symlink, absent, or mode (only mode and owner matter; no copy is kept)."""
    size: int = 0
    mode: int = 0
    uid: int = -1
    gid: int = -1
    mtime_ns: int = 0
    sha256: str | None = None
    target: str | None = None
    xattrs: Mapping[str, str] = field(default_factory=dict)
    method: str = "bytes"
    """bytes (as it lay there) or sqlite (through SQLite, from a database in use)."""
    integrity: str | None = None
    """For a database that was in use: what SQLite says of the copy."""


@dataclass(frozen=True)
class Backup:
    """One backup of the vault."""

    folder: Path
    id: str
    created_at: datetime
    home: str
    reason: str
    hermes: str | None
    tool: str
    entries: tuple[Entry, ...]
    whole: bool = False
    """Of everything in the home, not only of what one run was about to change."""

    @property
    def size(self) -> int:
        """Bytes of all copies."""
        return sum(entry.size for entry in self.entries if entry.kind == "file")

    def entry(self, path: str) -> Entry | None:
        """The entry of one path."""
        return next((one for one in self.entries if one.path == path), None)

    @property
    def sound(self) -> bool:
        """Whether every database that was in use was sound when it was copied."""
        return all(entry.integrity in (None, "ok") for entry in self.entries)

    def copy_of(self, entry: Entry) -> Path:
        """Where the copy of an entry lies."""
        if entry.path.startswith("/"):
            return self.folder / "outside" / entry.path.lstrip("/")
        return self.folder / "files" / entry.path


@dataclass(frozen=True)
class Source:
    """One path to back up."""

    path: Path
    expect: Snapshot
    content: bool = True
    """False when only mode and owner will change: no second copy of a secret is made."""
    live: bool = False
    """A database that some process has open: copied through SQLite."""
    patient: bool = False
    """Copy it as it is by now, and again if it is written meanwhile; a run never does that."""


_ID = re.compile(r"(\d{8}-\d{6}-\d{3})[0-9a-f]{2}")


def new_id(known: Iterable[str] = ()) -> str:
    """A name that sorts by time, is never used twice, and comes after all that are known.

    The newest must be the newest also where somebody has set the clock back.
    """
    now = datetime.now(UTC)
    stamps = [found[1] for name in known if (found := _ID.match(name))]
    with contextlib.suppress(ValueError, OverflowError):  # a name that is no time
        day, clock, thousandths = max(stamps, default="").split("-")
        last = datetime.fromisoformat(f"{day}T{clock}.{thousandths}+00:00")
        now = max(now, last + timedelta(milliseconds=1))
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03d}{secrets.token_hex(1)}"


class Vault:
    """The backups of one home in one place."""

    def __init__(self, home: Home, root: Path | None = None) -> None:
        self.home = home
        self.root = root.expanduser().absolute() if root else home.vault
        self.owner = os.stat(home.path).st_uid

    # -- looking ---------------------------------------------------------------------------

    def ids(self) -> list[str]:
        """The backups that are complete, oldest first."""
        names = [name for name in listing(self.root) if not name.endswith(PARTIAL)]
        return [n for n in names if self._is_trusted(n)]

    def _is_trusted(self, id: str) -> bool:
        """A whole backup that was made by the home's owner, by root, or by us."""
        try:
            folder = os.lstat(self.root / id)
            os.lstat(self.root / id / MANIFEST)
        except OSError:
            return False
        return folder.st_uid in (0, os.geteuid(), self.owner)

    def next_id(self) -> str:
        """A name for a new backup or run."""
        known: list[str] = []
        for place in (self.root, self.home.runs):
            with contextlib.suppress(CouldNotLook):
                known += listing(place)
        return new_id(known)

    def load(self, id: str) -> Backup:
        """One backup, its manifest checked against its seal."""
        named = id == Path(id).name and not id.endswith(PARTIAL)
        if not named or not self._is_trusted(id):
            raise Trouble(
                f"There is no backup {id!r} in {self.root}. See: hermes-doctor backup list"
            )
        folder = self.root / id
        try:
            data, _ = read(folder / MANIFEST, 256 * MEGABYTE)
        except (CouldNotLook, OSError):
            raise Trouble(f"The manifest of backup {id} cannot be read ({folder}).") from None
        backup = parse(folder, data)
        stranger = os.geteuid() == 0 and self.owner != 0 and backup.home != str(self.home.path)
        if stranger and not self.root.resolve().is_relative_to(self.home.path):
            raise Trouble(f"Backup {id} in {self.root} is one of {backup.home}, another home.")
        return backup

    def is_ours(self, id: str) -> bool:
        """Whether a backup is this home's; a vault elsewhere may serve several homes."""
        if self.root == self.home.vault:
            return True
        try:
            return self.load(id).home == str(self.home.path)
        except Trouble:
            return False

    def verify(self, backup: Backup, progress: Progress | None = None) -> list[str]:
        """Everything that is no longer as it was written; empty when the backup is whole."""
        wrong = []
        for entry in backup.entries:
            if entry.kind != "file":
                continue
            copy = backup.copy_of(entry)
            try:
                found = durable.digest(copy, progress)
            except (FileNotFoundError, NotADirectoryError):
                wrong.append(f"{entry.path}: the copy is missing")
            except (CouldNotLook, OSError) as error:
                wrong.append(f"{entry.path}: the copy cannot be read ({type(error).__name__})")
            else:
                if found != entry.sha256:
                    wrong.append(f"{entry.path}: the copy is not what was saved")
        return wrong

    # -- writing ---------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the vault's folder, private."""
        try:
            durable.make_folder(self.root)
            st = os.stat(self.root)
        except OSError as error:
            raise Trouble(
                f"The vault {self.root} cannot be made ({os.strerror(error.errno or 0).lower()}). "
                f"Nothing was changed. Another place: --vault DIR"
            ) from None
        if st.st_uid not in (0, os.geteuid(), self.owner):
            raise Trouble(
                f"The vault {self.root} belongs to another user (uid {st.st_uid}). "
                f"Nothing was changed. Another place: --vault DIR"
            )

    def room(self, wanted: int) -> None:
        """Refuse early when the disk cannot hold it."""
        place = self.root
        while not place.exists():
            place = place.parent
        check_room(place, wanted)

    def create(
        self,
        sources: Sequence[Source],
        *,
        reason: str,
        hermes: str | None,
        id: str | None = None,
        whole: bool = False,
        progress: Progress | None = None,
    ) -> Backup:
        """Copy, verify by hash, seal. Until the last rename it is no backup, only a .partial."""
        id = id or self.next_id()
        self.prepare()
        self.room(total(sources))
        partial, folder = self.root / (id + PARTIAL), self.root / id
        try:
            durable.make_folder(partial)
            durable.save(partial / BEGUN, str(self.home.path).encode("utf-8", "surrogateescape"))
            saved = {
                entry.path: entry
                for group in _groups(sources)
                for entry in self._group(partial, group, progress)
            }
            names = [self.home.name_of(source.path) for source in sources]
            entries = tuple(saved[name] for name in names if name in saved)
            backup = Backup(
                folder=partial,
                id=id,
                created_at=datetime.now(UTC),
                home=str(self.home.path),
                reason=reason,
                hermes=hermes,
                tool=__version__,
                entries=entries,
                whole=whole,
            )
            # What went through SQLite was read back, and examined by it, as it was written.
            unread = tuple(entry for entry in entries if entry.method != "sqlite")
            wrong = self.verify(replace(backup, entries=unread))
            if wrong:
                raise Trouble(f"The backup could not be verified: {wrong[0]}. Nothing was changed.")
            durable.save(partial / MANIFEST, seal(backup))
            durable.rename(partial, folder)
            durable.sync_folder(self.root)
        except BaseException as error:
            with uninterrupted(), contextlib.suppress(OSError):
                self.discard(id + PARTIAL)
            if isinstance(error, OSError):
                why = os.strerror(error.errno or 0).lower()
                raise Trouble(
                    f"The backup could not be written to {self.root} ({why}). Nothing was changed. "
                    f"Make room, or put it elsewhere: --vault DIR"
                ) from None
            raise
        return Backup(**{f: getattr(backup, f) for f in _FIELDS} | {"folder": folder})

    def began(self, name: str) -> bool:
        """Whether a backup that was not finished is this home's; several may share a vault."""
        if self.root == self.home.vault:
            return True
        try:
            data, _ = read(self.root / name / BEGUN, 4 * 4096)
        except (CouldNotLook, OSError):
            return False
        return data.decode("utf-8", "surrogateescape") == str(self.home.path)

    def discard(self, name: str) -> None:
        """Remove a backup's folder, the manifest first: half a backup must not look whole."""
        folder = self.root / name
        if not name.endswith(PARTIAL):
            folder = self.root / (name + PARTIAL)
            durable.rename(self.root / name, folder)
            durable.sync_folder(self.root)
        if folder.is_symlink():  # never anything behind it
            durable.remove(folder)
            return
        durable.remove(folder / MANIFEST)
        for base, folders, files in os.walk(folder, topdown=False):
            for file in files:
                durable.remove(Path(base) / file)
            for sub in folders:
                path = Path(base) / sub
                durable.remove(path) if path.is_symlink() else durable.remove_folder(path)
        durable.remove_folder(folder)

    def _group(
        self, partial: Path, group: Sequence[Source], progress: Progress | None
    ) -> list[Entry]:
        """A database with its sidecars, or a single file: all of one moment.

        A run compares them with what it planned for; a patient copy is repeated until nothing
        was written meanwhile, and goes through SQLite when somebody keeps writing.
        """
        database = main_of(group[0].path)
        if not group[0].patient or not is_database(database):
            found = [self._save(partial, source, progress) for source in group]
            return [entry for entry in found if entry is not None]
        live = any(source.live for source in group) and _keeps_log(database)
        for _ in range(0 if live else 5):
            before = _moment(database)
            still = [replace(source, live=False) for source in group]
            found = [self._save(partial, source, progress) for source in still]
            if before == _moment(database) and not in_use(database):
                return [entry for entry in found if entry is not None]
            for source in group:
                durable.remove(self._copy_path(partial, source.path))
            live = in_use(database) and _keeps_log(database)
            if live:
                break
        main = next((source for source in group if source.path == database), None)
        if main is None or not _keeps_log(database):
            raise Trouble(f"{database.name} is being written to. Nothing was changed; try again.")
        entry = self._save(partial, replace(main, live=True), progress)
        return [entry] if entry else []

    def _copy_path(self, partial: Path, path: Path) -> Path:
        name = self.home.name_of(path)
        return partial / (f"outside{path}" if name.startswith("/") else f"files/{name}")

    def _save(self, partial: Path, source: Source, progress: Progress | None) -> Entry | None:
        """One path into the partial backup; None for what was gone before it could be saved."""
        path, taken = source.path, snapshot(source.path)
        if taken != source.expect and not source.patient:
            raise Trouble(
                f"{path.name} was changed meanwhile. Nothing was changed by us; try again."
            )
        name = self.home.name_of(path)
        if taken.kind == "absent":
            return None if source.patient else Entry(name, "absent")
        if taken.kind == "symlink":
            return Entry(name, "symlink", uid=taken.uid, gid=taken.gid, target=os.readlink(path))
        entry = Entry(
            name,
            "file" if source.content else "mode",
            size=taken.size,
            mode=taken.mode & 0o777,
            uid=taken.uid,
            gid=taken.gid,
            mtime_ns=taken.mtime_ns,
            xattrs=durable.extended(path),
        )
        if not source.content:
            return entry
        copy = self._copy_path(partial, path)
        durable.make_folder(copy.parent)
        if source.live:
            from hermes_doctor.sqlite import live

            made = live.copy(path, copy, progress)
            values: dict[str, Any] = {
                "method": "sqlite",
                "integrity": made.verdict,
                "size": copy.stat().st_size,
            }
            digest = made.sha256
        else:
            digest, taken = self._copy(path, copy, taken, source.patient, progress)
            values = {"size": taken.size, "mtime_ns": taken.mtime_ns}
        durable.sync_folder(copy.parent)
        return Entry(**asdict(entry) | values | {"sha256": digest})

    def _copy(
        self, path: Path, copy: Path, taken: Snapshot, patient: bool, progress: Progress | None
    ) -> tuple[str, Snapshot]:
        """The bytes of a file that stood still while they were read."""
        for _ in range(10 if patient else 1):
            with durable.fresh(copy) as fd:
                digest, count = durable.copy(path, fd, progress)
            now = snapshot(path)
            if now == taken and count == taken.size:
                return digest, taken
            durable.remove(copy)
            taken = now
        raise Trouble(f"{path.name} is being written to. Nothing was changed; try again.")


_FIELDS = tuple(Backup.__dataclass_fields__)


def check_room(place: Path, wanted: int) -> None:
    """Refuse when less than `wanted` bytes (and a margin) are free where `place` lies."""
    disk = os.statvfs(place)
    free = disk.f_frsize * (disk.f_bfree if os.geteuid() == 0 else disk.f_bavail)
    if free < wanted + MARGIN:
        raise Trouble(
            f"The disk of {place} has {size(free)} free, and {size(wanted + MARGIN)} are needed. "
            f"Nothing was changed. Make room, or put the backup elsewhere: --vault DIR"
        )


def seal(backup: Backup) -> bytes:
    """The manifest as bytes, closed with the hash of all of it."""
    document = {
        "schema": SCHEMA,
        "id": backup.id,
        "created_at": backup.created_at.isoformat(),
        "home": backup.home,
        "reason": backup.reason,
        "tool": backup.tool,
        "hermes": backup.hermes,
        "whole": backup.whole,
        "entries": [asdict(entry) for entry in backup.entries],
    }
    body = _canonical(document)
    return _canonical(document | {"seal": hashlib.sha256(body).hexdigest()})


def parse(folder: Path, data: bytes) -> Backup:
    """A manifest read back; one flipped bit anywhere in it is noticed."""
    try:
        document: dict[str, Any] = json.loads(data)
        closing = document.pop("seal")
        whole = closing == hashlib.sha256(_canonical(document)).hexdigest()
        if not whole or _canonical(document | {"seal": closing}) != data:
            raise ValueError("seal")
        return Backup(
            folder=folder,
            id=document["id"],
            created_at=datetime.fromisoformat(document["created_at"]),
            home=document["home"],
            reason=document["reason"],
            hermes=document["hermes"],
            tool=document["tool"],
            entries=tuple(_entry(**entry) for entry in document["entries"]),
            whole=document.get("whole") is True,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Trouble(
            f"The manifest of backup {folder.name} is damaged ({folder / MANIFEST})."
        ) from None


def _entry(**fields: Any) -> Entry:
    """An entry whose every field is what this tool writes."""
    entry = Entry(**fields)
    texts = [entry.path, entry.kind, entry.method, *entry.xattrs, *entry.xattrs.values()]
    maybe = [entry.sha256, entry.target, entry.integrity]
    numbers = [entry.size, entry.mode, entry.uid, entry.gid, entry.mtime_ns]
    if (
        not all(isinstance(text, str) for text in texts)
        or not all(text is None or isinstance(text, str) for text in maybe)
        or not all(type(number) is int for number in numbers)
        or entry.kind not in ("file", "symlink", "absent", "mode")
        or entry.mode & ~0o777  # a forged manifest must not make root set a user id
        or any(name.startswith(("security.", "trusted.")) for name in entry.xattrs)
        or not entry.path
        or ".." in Path(entry.path).parts
    ):
        raise ValueError("not an entry")
    return entry


def _canonical(document: Mapping[str, object]) -> bytes:
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, indent=1)
    return text.encode("ascii") + b"\n"


def total(sources: Iterable[Source]) -> int:
    """Bytes that a backup of these will copy; a live database's log is merged into its copy."""
    size = sum(source.expect.size for source in sources if source.content)
    for source in sources:
        if source.live:
            size += snapshot(source.path.with_name(source.path.name + "-wal")).size
    return size


def _groups(sources: Sequence[Source]) -> list[list[Source]]:
    """The sources, each database together with its sidecars."""
    groups: dict[Path, list[Source]] = {}
    for source in sources:
        groups.setdefault(
            main_of(source.path) if is_database(source.path) else source.path, []
        ).append(source)
    return list(groups.values())


def _moment(database: Path) -> list[Snapshot]:
    return [snapshot(database.with_name(database.name + suffix)) for suffix in ("", *SIDECARS)]


def _keeps_log(database: Path) -> bool:
    """Whether it is in WAL mode, where a reader does not keep a writer waiting."""
    try:
        return read_head(database, 20)[0][18:20] == b"\x02\x02"
    except (CouldNotLook, OSError):
        return False
