"""Save one file into a backup: whole, in blocks, or shared with the previous backup."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hermes_doctor.backup import blocks, growing_file, unchanged as backup_unchanged
from hermes_doctor.backup.entry import BackupEntry
from hermes_doctor.backup.manifest import BackupSource
from hermes_doctor.backup.partial import Partial
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.system import disk
from hermes_doctor.system.files import Snapshot, snapshot

TRIES = 10
"""How often the copy of a file that is being written is tried."""


class FileSaver:
    """Saves single files."""

    def __init__(self, partial: Partial) -> None:
        self.partial = partial
        self.earlier = partial.earlier

    def save(self, source: BackupSource) -> BackupEntry | None:
        """Save one path into the unfinished backup; return None if it vanished before.

        A path that changes its kind or vanishes while it is saved is tried again.
        """
        for _ in range(TRIES):
            taken = snapshot(source.path_str)
            try:
                return self._saved(source, taken)
            except (CouldNotLook, FileNotFoundError):
                if not source.patient or snapshot(source.path_str) == taken:
                    raise
            except Trouble:
                if not source.live or snapshot(source.path_str).ino == taken.ino:
                    raise
            self.partial.drop(source.name)
        raise busy_file_error(source.path_str)

    def _saved(self, source: BackupSource, taken: Snapshot) -> BackupEntry | None:
        """Save a path that has this snapshot now."""
        place = source.path_str
        if taken != source.expect and not source.patient:
            name = source.path.name
            raise Trouble(
                text(
                    "Another program changed {name} just now. Nothing was changed. Try again.",
                    name=name,
                )
            )
        name = source.name
        if source.patient and taken.kind not in ("file", "symlink"):
            return None
        if taken.kind == "absent":
            return BackupEntry(name, "absent")
        if taken.kind == "symlink":
            return BackupEntry(
                name, "symlink", uid=taken.uid, gid=taken.gid, target=os.readlink(place)
            )
        entry = BackupEntry(
            name,
            "file" if source.content else "mode",
            size=taken.size,
            mode=taken.mode & 0o777,
            uid=taken.uid,
            gid=taken.gid,
            mtime_ns=taken.mtime_ns,
            xattrs=disk.extended_attributes(place),
        )
        if not source.content:
            return entry
        if source.live:
            return self._live(entry, source.path, taken)
        if shared := self.unchanged(source._replace(expect=taken)):
            return shared
        return self._still(entry, place, taken, patient=source.patient)

    # -- a database in use -------------------------------------------------------------------

    def _live(self, entry: BackupEntry, path: Path, taken: Snapshot) -> BackupEntry:
        now, marks = time.time_ns(), backup_unchanged.marks(taken, backup_unchanged.log_marks(path))
        if shared := self._shared(self.earlier.unchanged(entry.path, marks), taken):
            return shared
        made = self._live_blocks(entry, path) or self._live_whole(entry, path)
        still = backup_unchanged.marks(snapshot(path), backup_unchanged.log_marks(path)) == marks
        return made._replace(seen=(now, *marks) if still else (), read_at=time.time_ns())

    def _live_blocks(self, entry: BackupEntry, path: Path) -> BackupEntry | None:
        """Save only the blocks that differ from the previous copy, if they are few."""
        from hermes_doctor.backup import save_live

        like = self.earlier.like(entry.path)
        base = self.earlier.base(entry.path, entry.size)
        changed = self.partial.begin_blocks(entry.path, base)
        if base is None or changed is None:
            return None
        examine = not backup_unchanged.was_checked_recently(like)
        done = save_live.write_changes(
            path,
            base,
            changed,
            known=self.earlier.chunk_digests(entry.path),
            examine=examine,
            in_place=self.partial.alone,
            progress=self.partial.progress,
        )
        if done is None:
            self.partial.drop(entry.path)
            return None
        verdict, made = done
        self.partial.note_written(changed, made.changes)
        examined_at = time.time_ns() if examine or like is None else like.examined_at
        return entry._replace(
            method="sqlite",
            blocks=True,
            size=made.size,
            sha256=made.sha256,
            pieces=made.pieces,
            integrity=verdict if examine else "ok",
            examined_at=examined_at,
        )

    def _live_whole(self, entry: BackupEntry, path: Path) -> BackupEntry:
        from hermes_doctor.sqlite import live_copy

        copy = Path(self.partial.place(entry.path))
        made = live_copy.copy(path, copy, self.partial.progress)
        return entry._replace(
            method="sqlite",
            integrity=made.verdict,
            size=copy.stat().st_size,
            sha256=made.sha256,
            pieces=made.pieces,
            examined_at=time.time_ns(),
        )

    # -- a file that is not in use -------------------------------------------------------------

    def _still(
        self, entry: BackupEntry, place: str, taken: Snapshot, *, patient: bool
    ) -> BackupEntry:
        """Copy a file that does not change while it is read."""
        shares = patient
        for attempt in range(TRIES if patient else 1):
            seen = (time.time_ns(), *backup_unchanged.marks(taken))
            in_blocks = self._still_blocks(entry, place) if shares else None
            made = in_blocks or self._still_whole(entry, place)
            now = snapshot(place)
            if now == taken and made.size == taken.size:
                like = self.earlier.like(entry.path) if shares else None
                same = like if like is not None and like.sha256 == made.sha256 else None
                right = same is not None and self.earlier.is_copy_intact(same)
                if same is None or not (right or in_blocks):
                    return made._replace(
                        seen=seen,
                        mode=taken.mode & 0o777,
                        uid=taken.uid,
                        gid=taken.gid,
                        mtime_ns=taken.mtime_ns,
                        read_at=time.time_ns(),
                    )
                self.partial.drop(entry.path)
                if right and (shared := self._shared(same, taken)):
                    return shared._replace(seen=seen, mtime_ns=taken.mtime_ns, xattrs=entry.xattrs)
                shares = False  # the previous copy is damaged, so make a whole one
                continue
            self.partial.drop(entry.path)
            if patient and attempt and (grown := self._grown(entry, Path(place))):
                return grown
            if patient and now.kind != "file":
                raise CouldNotLook(text("{file} is no longer a file", file=os.path.basename(place)))
            taken = now
        raise busy_file_error(place)

    def _grown(self, entry: BackupEntry, path: Path) -> BackupEntry | None:
        """Copy a file that is being appended to; return None if it changes in another way."""
        copy, taken = self.partial.place(entry.path), snapshot(path)
        with disk.new_file(copy, durable=False) as fd:
            made = (
                growing_file.copy(path, fd, self.partial.progress) if taken.kind == "file" else None
            )
        if made is None:
            self.partial.drop(entry.path)
            return None
        self.partial.note_written(copy, made[0])
        return entry._replace(sha256=made[0], size=made[1], mtime_ns=taken.mtime_ns)

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
            made = blocks.write(blocks.chunks(fd), earlier, target, most, known)
        if made is None:
            self.partial.drop(entry.path)
            return None
        self.partial.note_written(changed, made.changes)
        return entry._replace(
            blocks=True,
            size=made.size,
            sha256=like.sha256 if made.same and not like.blocks else made.sha256,
            pieces=made.pieces,
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
        found = self.earlier.unchanged(source.name, backup_unchanged.marks(source.expect))
        return self._shared(found, source.expect)

    def _shared(self, earlier: BackupEntry | None, taken: Snapshot) -> BackupEntry | None:
        """Share an earlier copy; the entry gets the current mode and owner."""
        given = (
            self.earlier.share_copy(earlier, self.partial.folder) if earlier is not None else None
        )
        if given is None:
            return None
        owner = (given.mode, given.uid, given.gid)
        if owner == (taken.mode & 0o777, taken.uid, taken.gid):
            return given
        return given._replace(mode=taken.mode & 0o777, uid=taken.uid, gid=taken.gid)


def busy_file_error(path: str) -> Trouble:
    """Make the error for a file that is being written all the time."""
    name = os.path.basename(path)
    return Trouble(
        text("Another program is writing to {name}. Nothing was changed. Try again.", name=name)
    )
