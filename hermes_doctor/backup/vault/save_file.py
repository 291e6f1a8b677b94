"""Save one file into a backup: whole, in blocks, or shared with the previous backup."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.backup.vault import blocks, unchanged as backup_unchanged
from hermes_doctor.backup.vault.blocks import open_as_owner
from hermes_doctor.backup.vault.manifest import BackupEntry, BackupSource
from hermes_doctor.backup.vault.unchanged import Partial
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system import disk, sparse_files
from hermes_doctor.core.system.digests import CHUNK
from hermes_doctor.core.system.files import Snapshot, snapshot
from hermes_doctor.core.system.workers import Worker

TRIES = 10
"""How often the copy of a file that is being written is tried."""


class FileSaver:
    """Saves single files."""

    def __init__(self, partial: Partial) -> None:
        self.partial = partial
        self.earlier = partial.earlier

    def save(self, source: BackupSource) -> BackupEntry | None:
        """Save one path; None if it is gone. A file that changes during that is tried again."""
        for _ in range(TRIES):
            state = snapshot(source.path_str)
            try:
                return self._saved(source, state)
            except (CouldNotLook, FileNotFoundError):
                if not source.patient or snapshot(source.path_str) == state:
                    raise
            except Trouble:
                if not source.live or snapshot(source.path_str).ino == state.ino:
                    raise
            self.partial.drop(source.name)
        raise busy_file_error(source.path_str)

    def _saved(self, source: BackupSource, state: Snapshot) -> BackupEntry | None:
        """Save a path that has this snapshot now."""
        place = source.path_str
        if state != source.expect and not source.patient:
            what = "Another program changed {name} just now. Nothing was changed. Try again."
            raise Trouble(what, name=source.path.name)
        name = source.name
        if source.patient and state.kind not in ("file", "symlink"):
            return None
        if state.kind == "absent":
            return BackupEntry(name, "absent")
        if state.kind == "symlink":
            target = os.readlink(place)
            return BackupEntry(name, "symlink", uid=state.uid, gid=state.gid, target=target)
        kind, xattrs = "file" if source.content else "mode", disk.extended_attributes(place)
        entry = BackupEntry(name, kind, state.size, mtime_ns=state.mtime_ns, xattrs=xattrs)
        entry = _with_mode_and_owner(entry, state)
        if not source.content:
            return entry
        if source.live:
            return self._live(entry, source.path, state)
        if shared := self.unchanged(source._replace(expect=state)):
            return shared
        return self._still(entry, place, state, patient=source.patient)

    # -- a database in use -------------------------------------------------------------------

    def _live(self, entry: BackupEntry, path: Path, state: Snapshot) -> BackupEntry:
        now, marks = time.time_ns(), backup_unchanged.marks(state, backup_unchanged.log_marks(path))
        if shared := self._shared(self.earlier.unchanged(entry.path, marks), state):
            return shared
        saved = self._live_blocks(entry, path) or self._live_whole(entry, path)
        still = backup_unchanged.marks(snapshot(path), backup_unchanged.log_marks(path)) == marks
        return saved._replace(seen=(now, *marks) if still else (), read_at=time.time_ns())

    def _live_blocks(self, entry: BackupEntry, path: Path) -> BackupEntry | None:
        """Save only the blocks that differ from the previous copy, if they are few."""
        like = self.earlier.like(entry.path)
        base = self.earlier.base(entry.path, entry.size)
        changed = self.partial.begin_blocks(entry.path, base)
        if base is None or changed is None:
            return None
        examine = not backup_unchanged.was_checked_recently(like)
        verdict, changes = self._write_changes(entry, path, base, changed, examine=examine)
        if changes is None:
            self.partial.drop(entry.path)
            return None
        self.partial.note_written(changed, changes.changes)
        examined_at = time.time_ns() if examine or like is None else like.examined_at
        return entry._replace(
            method="sqlite",
            blocks=True,
            size=changes.size,
            sha256=changes.sha256,
            pieces=changes.pieces,
            integrity=verdict if examine else "ok",
            examined_at=examined_at,
        )

    def _write_changes(
        self, entry: BackupEntry, path: Path, base: Path, changed: Path, *, examine: bool
    ) -> tuple[str | None, blocks.BlocksResult | None]:
        """Write the blocks in which a database in use differs from an earlier copy, its base.

        No result means that there are too many. The new version is never one file, so SQLite's
        verdict comes from the reader that holds the database still, if `examine` is set.
        """
        from hermes_doctor.sqlite.live_copy import _held_still, read_chunks

        held = snapshot(path)
        try:
            with (
                disk.new_file(changed, durable=False) as fd,
                blocks.open_as_owner(base) as earlier,
                _held_still(path, examine=examine) as reader,
            ):
                most = int(os.fstat(earlier).st_size * blocks.MAX_CHANGED_SHARE)
                mapped = None
                with contextlib.suppress(OSError, ValueError):  # no memory, or an empty file
                    mapped = blocks.MappedBase(earlier) if self.partial.alone else None
                content = read_chunks(path, held, mapped)
                watched = _while_held(content, reader, self.partial.progress)
                known = self.earlier.chunk_digests(entry.path)
                changes = blocks.write(watched, earlier, fd, most, known, mapped)
                return (reader.receive()[1] if changes and examine else None), changes
        except (CannotFix, CouldNotLook) as why:
            raise Trouble(
                "{file} is in use and could not be copied ({reason}). Stop the gateway and try "
                "again.",
                file=path.name,
                reason=why,
            ) from None

    def _live_whole(self, entry: BackupEntry, path: Path) -> BackupEntry:
        from hermes_doctor.sqlite import live_copy

        copy = Path(self.partial.place(entry.path))
        result = live_copy.copy(path, copy, self.partial.progress)
        return entry._replace(
            method="sqlite",
            integrity=result.verdict,
            size=copy.stat().st_size,
            sha256=result.sha256,
            pieces=result.pieces,
            examined_at=time.time_ns(),
        )

    # -- a file that is not in use -------------------------------------------------------------

    def _still(
        self, entry: BackupEntry, place: str, state: Snapshot, *, patient: bool
    ) -> BackupEntry:
        """Copy a file that does not change while it is read."""
        shares = patient
        for attempt in range(TRIES if patient else 1):
            seen = (time.time_ns(), *backup_unchanged.marks(state))
            in_blocks = self._still_blocks(entry, place) if shares else None
            saved = in_blocks or self._still_whole(entry, place)
            now = snapshot(place)
            if now == state and saved.size == state.size:
                like = self.earlier.like(entry.path) if shares else None
                same = like if like is not None and like.sha256 == saved.sha256 else None
                right = same is not None and self.earlier.is_copy_intact(same)
                if same is None or not (right or in_blocks):
                    saved = _with_mode_and_owner(saved, state)
                    now_ns = time.time_ns()
                    return saved._replace(seen=seen, mtime_ns=state.mtime_ns, read_at=now_ns)
                self.partial.drop(entry.path)
                if right and (shared := self._shared(same, state)):
                    return shared._replace(seen=seen, mtime_ns=state.mtime_ns, xattrs=entry.xattrs)
                shares = False  # the previous copy is damaged, so make a whole one
                continue
            self.partial.drop(entry.path)
            if patient and attempt and (grown := self._grown(entry, Path(place))):
                return grown
            if patient and now.kind != "file":
                raise CouldNotLook("{file} is no longer a file", file=os.path.basename(place))
            state = now
        raise busy_file_error(place)

    def _grown(self, entry: BackupEntry, path: Path) -> BackupEntry | None:
        """Copy a file that is being appended to; return None if it changes in another way."""
        copy, state = self.partial.place(entry.path), snapshot(path)
        with disk.new_file(copy, durable=False) as fd:
            grown = copy_growing(path, fd, self.partial.progress) if state.kind == "file" else None
        if grown is None:
            self.partial.drop(entry.path)
            return None
        self.partial.note_written(copy, grown[0])
        return entry._replace(sha256=grown[0], size=grown[1], mtime_ns=state.mtime_ns)

    def _still_blocks(self, entry: BackupEntry, place: str) -> BackupEntry | None:
        like = self.earlier.like(entry.path)
        base = self.earlier.base(entry.path, entry.size)
        changed = self.partial.begin_blocks(entry.path, base)
        if like is None or base is None or changed is None:
            return None
        with (
            blocks.open_as_owner(Path(place)) as fd,
            blocks.open_as_owner(base) as earlier,
            disk.new_file(changed, durable=False) as target,
        ):
            most = int(os.fstat(earlier).st_size * blocks.MAX_CHANGED_SHARE)
            known = self.earlier.chunk_digests(entry.path)
            changes = blocks.write(blocks.chunks(fd), earlier, target, most, known)
        if changes is None:
            self.partial.drop(entry.path)
            return None
        self.partial.note_written(changed, changes.changes)
        return entry._replace(
            blocks=True,
            size=changes.size,
            sha256=like.sha256 if changes.same and not like.blocks else changes.sha256,
            pieces=changes.pieces,
        )

    def _still_whole(self, entry: BackupEntry, place: str) -> BackupEntry:
        copy = self.partial.place(entry.path)
        with disk.new_file(copy, durable=False) as fd:
            digest, count, read_back = disk.copy_read_back(place, fd, self.partial.progress)
        self.partial.note_written(copy, digest, read_back=read_back)
        return entry._replace(size=count, sha256=digest)

    # -- sharing with the previous backup ---------------------------------------------------------

    def unchanged(self, source: BackupSource) -> BackupEntry | None:
        """Share the previous backup's copy of a file that did not change; None if not possible."""
        if not source.patient or source.live or source.expect.kind != "file":
            return None
        same = self.earlier.unchanged(source.name, backup_unchanged.marks(source.expect))
        return self._shared(same, source.expect)

    def _shared(self, earlier: BackupEntry | None, state: Snapshot) -> BackupEntry | None:
        """Share an earlier copy; the entry gets the current mode and owner."""
        given = self.earlier.share_copy(earlier, self.partial.folder) if earlier else None
        return _with_mode_and_owner(given, state) if given else None


def _with_mode_and_owner(entry: BackupEntry, state: Snapshot) -> BackupEntry:
    """The same entry if they are the same, so that its line in the manifest is used again."""
    mode = state.mode & 0o777
    if (entry.mode, entry.uid, entry.gid) == (mode, state.uid, state.gid):
        return entry
    return entry._replace(mode=mode, uid=state.uid, gid=state.gid)


def busy_file_error(path: str) -> Trouble:
    """Make the error for a file that is being written all the time."""
    name = os.path.basename(path)
    return Trouble(
        "Another program is writing to {name}. Nothing was changed. Try again.", name=name
    )


def copy_growing(
    path: Path, target: int, progress: disk.Progress | None = None
) -> tuple[str, int] | None:
    """Write the current content of a file that is appended to; return its SHA-256 and size.

    While data is only appended, the part that existed when the file was opened does not change. It
    is copied and read a second time, which shows whether anything else happened to it: then None.
    """
    import hashlib

    first, second = hashlib.sha256(), hashlib.sha256()
    with open_as_owner(path) as fd:
        begun = os.fstat(fd)
        is_sparse = sparse_files.is_sparse(begun)
        for chunk in _beginning(fd, begun.st_size):
            first.update(chunk)
            (disk.write_or_skip if is_sparse else disk.write)(target, chunk)
            if progress:
                progress(len(chunk))
        if is_sparse:
            disk.truncate_here(target)
        for chunk in _beginning(fd, begun.st_size):
            second.update(chunk)
        shorter = os.fstat(fd).st_size < begun.st_size
    if shorter or first.digest() != second.digest() or snapshot(path).ino != begun.st_ino:
        return None
    return first.hexdigest(), begun.st_size


def _beginning(fd: int, size: int) -> Iterator[bytes]:
    at = 0
    while at < size and (chunk := os.pread(fd, min(CHUNK, size - at), at)):
        yield chunk
        at += len(chunk)


def _while_held(
    pieces: Iterator[bytes | range], reader: Worker, progress: disk.Progress | None
) -> Iterator[bytes | range]:
    """Yield the chunks; CannotFix once the reader that holds the database still is gone."""
    from hermes_doctor.sqlite.live_copy import OFTEN

    unreported = 0

    def look() -> None:
        if not reader.alive:
            raise CannotFix("the helper process that kept it unchanged has stopped")
        if progress:
            progress(unreported)

    for piece in pieces:
        yield piece
        unreported += len(piece)
        if unreported >= OFTEN:
            look()
            unreported = 0
    look()
