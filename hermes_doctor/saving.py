"""How the files of a home come into a backup: whole, in blocks, or shared with the one before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor import beside, blocks, child, durable, growing, rights, sharing
from hermes_doctor.files import Snapshot, StrPath, read_head, snapshot
from hermes_doctor.home import SIDECARS, Home, is_database, main_of
from hermes_doctor.manifest import BASE, CHANGED, Entry, Source, place_of, within
from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.sharing import Earlier
from hermes_doctor.sqlite.guard import in_use

if TYPE_CHECKING:
    from typing import Self

Progress = Callable[[int], None]
SHARES = 3
"""Processes that save many files side by side: a disk is idle while it is waited for."""
MANY = 64
"""From so many files on."""
OVERHEAD = 256 * 1024
"""Bytes that can be saved in the time that any file takes at least."""
TRIES = 10
"""How often a file that somebody writes to is copied anew."""
WAIT = 0.1
"""Seconds after which a database that somebody writes to is looked at again; then ever longer."""


class Saving:
    """One backup while it is made."""

    def __init__(
        self, home: Home, partial: Path, earlier: Earlier, progress: Progress | None
    ) -> None:
        self.home = home
        self.partial = partial
        self.earlier = earlier
        self.progress = progress
        self.unread: dict[str, str] = {}
        """What was written and not read back so far, each with its hash."""
        self.fresh: set[str] = set()
        """What was written and has to be brought onto the disk."""
        self.alone = False
        """Whether this process does nothing else, and may end by what it meets."""
        self._folders: set[str] = set()
        self._processes = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Its processes end with it; one that was heard, whenever it likes until then."""
        self._processes.close()

    def all(self, sources: Sequence[Source]) -> tuple[Entry, ...]:
        """The entries of all sources, in their order; then what else belongs to them."""
        saved = {entry.path: entry for found in self._found(sources) for entry in found}
        names = dict.fromkeys((*(source.name for source in sources), *saved))
        return tuple(saved[name] for name in names if name in saved)

    def _found(self, sources: Sequence[Source]) -> Iterator[list[Entry]]:
        """Databases one by one, then what can be shared; of many others several at once."""
        own = self._own_rights(sources)
        kinds: tuple[list[Source], list[Source]] = ([], [])
        for source in sources:
            kinds[is_database(source.place)].append(source)
        files, databases = kinds[0], _groups(kinds[1])
        large = [group for group in databases if own and self._is_large(group)]
        slow = self._processes.enter_context(beside.saved(self, large))
        yield from (self.group(group) for group in databases if group not in large)
        due = self.earlier.due
        with self.earlier.reading_again(beside=own) as read:
            shared = {s.name: self._unchanged(s) for s in files if s.name not in due}
            read()
            shared |= {s.name: self._unchanged(s) for s in files if s.name in due}
        yield [entry for entry in shared.values() if entry]
        mine, *theirs = _shares([s for s in files if not shared[s.name]], SHARES if own else 1)
        others = [self._processes.enter_context(beside.saved(self, share)) for share in theirs]
        for group in mine:
            yield self.group(group)
            for other in (slow, *others):
                other.listen()
        yield from (other.finished() for other in (*others, slow))

    def _is_large(self, group: Sequence[Source]) -> bool:
        return any(source.content and source.expect.size >= blocks.LEAST for source in group)

    def _own_rights(self, sources: Sequence[Source]) -> bool:
        """Whether all is read and written with our own rights: others are the whole process's."""
        folders = {source.place.rpartition("/")[0] for source in sources}
        return all(rights.of(f"{folder}/any") is None for folder in (*folders, self.partial))

    def wanted(self, sources: Sequence[Source]) -> int:
        """Bytes for which there must be room; a live database's log is merged into its copy."""
        size = 0
        for source in sources:
            taken = source.expect
            log = sharing.log_of(source.path) if source.live else ()
            if self.earlier.unchanged(source.name, sharing.marks(taken, log)):
                continue
            whole = taken.size + (log[2] if log else 0) if source.content else 0
            base = self.earlier.base(source.name, whole)
            size += int(whole * blocks.MOST) if base else whole
        return size

    def read_back(self) -> list[str]:
        """What of all that was written does not read as it was meant."""
        written = list(self.unread.items())
        count = SHARES if self._own_rights([]) and len(written) > MANY else 1
        shares = [written[number::count] for number in range(count)]
        try:
            answers = child.spread(shares, lambda share: "".join("01"[_reads(o)] for o in share))
        except CannotFix as why:
            raise Trouble(
                f"The backup could not be read back ({why}). Nothing was changed."
            ) from None
        wrong = [
            copy.removeprefix(f"{self.partial}/")
            for share, answer in zip(shares, answers, strict=True)
            for (copy, _), right in zip(share, answer, strict=True)
            if right != "1"
        ]
        return [f"{name}: the copy is not what was saved" for name in wrong]

    # -- one database with its sidecars, or one file -----------------------------------------

    def group(self, group: Sequence[Source]) -> list[Entry]:
        """A database with its sidecars, or a single file: all of one moment.

        A run compares them with what it planned for; a patient copy is repeated until nothing
        was written meanwhile, and goes through SQLite when somebody keeps writing.
        """
        database = main_of(group[0].path)
        if not group[0].patient or not is_database(database):
            found = [self._save(source) for source in group]
            return [entry for entry in found if entry is not None]
        live = any(source.live for source in group) and _keeps_log(database)
        for attempt in range(0 if live else 5):
            time.sleep(WAIT * (2**attempt - 1))
            before = _moment(database)
            group = self._with_sidecars(group, database)
            found = [self._save(source._replace(live=False)) for source in group]
            if before == _moment(database) and not in_use(database):
                return self._judged(database, [entry for entry in found if entry], before)
            for source in group:
                self.drop(source.name)
            live = in_use(database) and _keeps_log(database)
            if live:
                break
        main = next((source for source in group if source.path == database), None)
        if main is None or not _keeps_log(database):
            raise _written_to(str(database))
        entry = self._save(main._replace(live=True))
        return [entry] if entry else []

    def _judged(self, database: Path, entries: list[Entry], before: list[Snapshot]) -> list[Entry]:
        """With SQLite's verdict on one of Hermes' own at rest, unless it was given before.

        What others call a database need not be one; and one with something in its log is judged
        only together with that.
        """
        main = next(
            (e for e in entries if e.kind == "file" and not e.path.endswith(SIDECARS)), None
        )
        logged = any(e.size for e in entries if e.path.endswith(("-wal", "-journal")))
        if main is None or main.integrity or logged or database not in self._hermes_own:
            return entries
        from hermes_doctor.sqlite.soundness import DAMAGED, OK, judged

        with suppress(CannotFix, OSError), judged(database) as verdict:
            said, now = verdict(), time.time_ns()
            is_one = said in (OK, DAMAGED) or said.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))
            if is_one and before == _moment(database):  # else it is somebody's work that was seen
                entries[entries.index(main)] = main._replace(integrity=said, examined_at=now)
        return entries

    @cached_property
    def _hermes_own(self) -> set[Path]:
        homes = (self.home, *map(Home, self.home.profiles()))
        return {database for home in homes for database in home.databases()}

    def _with_sidecars(self, group: Sequence[Source], database: Path) -> list[Source]:
        """The group with what lies beside its database by now.

        A writer that was killed has left a log or a journal there. Without it, what he had begun
        would count, or what he had committed would not.
        """
        known = {source.place for source in group}
        beside = [database.with_name(database.name + suffix) for suffix in SIDECARS]
        return [
            *group,
            *(
                Source(self.home.name_of(path), str(path), taken, patient=True)
                for path in beside
                if str(path) not in known and (taken := snapshot(path)).kind == "file"
            ),
        ]

    def _save(self, source: Source) -> Entry | None:
        """One path into the partial backup; None for what was gone before it could be saved.

        What becomes something else, or vanishes, while it is saved is looked at again.
        """
        for _ in range(TRIES):
            taken = snapshot(source.place)
            try:
                return self._saved(source, taken)
            except (CouldNotLook, FileNotFoundError):
                if not source.patient or snapshot(source.place) == taken:
                    raise
            except Trouble:
                if not source.live or snapshot(source.place).ino == taken.ino:
                    raise
            self.drop(source.name)
        raise _written_to(source.place)

    def _saved(self, source: Source, taken: Snapshot) -> Entry | None:
        """The same of a path that is now as it was taken."""
        place = source.place
        if taken != source.expect and not source.patient:
            name = source.path.name
            raise Trouble(f"{name} was changed meanwhile. Nothing was changed by us; try again.")
        name = source.name
        if source.patient and taken.kind not in ("file", "symlink"):
            return None
        if taken.kind == "absent":
            return Entry(name, "absent")
        if taken.kind == "symlink":
            return Entry(name, "symlink", uid=taken.uid, gid=taken.gid, target=os.readlink(place))
        entry = Entry(
            name,
            "file" if source.content else "mode",
            size=taken.size,
            mode=taken.mode & 0o777,
            uid=taken.uid,
            gid=taken.gid,
            mtime_ns=taken.mtime_ns,
            xattrs=durable.extended(place),
        )
        if not source.content:
            return entry
        if source.live:
            return self._live(entry, source.path, taken)
        if shared := self._unchanged(source._replace(expect=taken)):
            return shared
        return self._still(entry, place, taken, patient=source.patient)

    # -- a database in use -------------------------------------------------------------------

    def _live(self, entry: Entry, path: Path, taken: Snapshot) -> Entry:
        now, marks = time.time_ns(), sharing.marks(taken, sharing.log_of(path))
        if shared := self._shared(self.earlier.unchanged(entry.path, marks), taken):
            return shared
        made = self._live_blocks(entry, path) or self._live_whole(entry, path)
        still = sharing.marks(snapshot(path), sharing.log_of(path)) == marks
        return made._replace(seen=(now, *marks) if still else (), read_at=time.time_ns())

    def _live_blocks(self, entry: Entry, path: Path) -> Entry | None:
        """Only what is different from the copy before, where that is little."""
        from hermes_doctor.sqlite import live

        like = self.earlier.like(entry.path)
        base = self.earlier.base(entry.path, entry.size)
        changed = self._begin_blocks(entry.path, base)
        if base is None or changed is None:
            return None
        examine = not sharing.examined_lately(like)
        done = live.changes(
            path,
            base,
            changed,
            known=self.earlier.known(entry.path),
            examine=examine,
            in_place=self.alone,
            progress=self.progress,
        )
        if done is None:
            self.drop(entry.path)
            return None
        verdict, made = done
        self._written(changed, made.changes)
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

    def _live_whole(self, entry: Entry, path: Path) -> Entry:
        from hermes_doctor.sqlite import live

        copy = Path(self._place(entry.path))
        made = live.copy(path, copy, self.progress)
        return entry._replace(
            method="sqlite",
            integrity=made.verdict,
            size=copy.stat().st_size,
            sha256=made.sha256,
            pieces=made.pieces,
            examined_at=time.time_ns(),
        )

    # -- a file that nobody has open to write --------------------------------------------------

    def _still(self, entry: Entry, place: str, taken: Snapshot, *, patient: bool) -> Entry:
        """The bytes of a file that stood still while they were read."""
        shares = patient
        for attempt in range(TRIES if patient else 1):
            seen = (time.time_ns(), *sharing.marks(taken))
            in_blocks = self._still_blocks(entry, place) if shares else None
            made = in_blocks or self._still_whole(entry, place)
            now = snapshot(place)
            if now == taken and made.size == taken.size:
                like = self.earlier.like(entry.path) if shares else None
                same = like if like is not None and like.sha256 == made.sha256 else None
                right = same is not None and self.earlier.reads_right(same)
                if same is None or not (right or in_blocks):
                    return made._replace(
                        seen=seen,
                        mode=taken.mode & 0o777,
                        uid=taken.uid,
                        gid=taken.gid,
                        mtime_ns=taken.mtime_ns,
                        read_at=time.time_ns(),
                    )
                self.drop(entry.path)
                if right and (shared := self._shared(same, taken)):
                    return shared._replace(seen=seen, mtime_ns=taken.mtime_ns, xattrs=entry.xattrs)
                shares = False  # neither the copy before nor a part of it is of use
                continue
            self.drop(entry.path)
            if patient and attempt and (grown := self._grown(entry, Path(place))):
                return grown
            if patient and now.kind != "file":
                raise CouldNotLook(f"{os.path.basename(place)}: is no longer a file")
            taken = now
        raise _written_to(place)

    def _grown(self, entry: Entry, path: Path) -> Entry | None:
        """What a file holds that somebody keeps adding to; None where that is not all he does."""
        copy, taken = self._place(entry.path), snapshot(path)
        with durable.fresh(copy, lasting=False) as fd:
            made = growing.copy(path, fd, self.progress) if taken.kind == "file" else None
        if made is None:
            self.drop(entry.path)
            return None
        self._written(copy, made[0])
        return entry._replace(sha256=made[0], size=made[1], mtime_ns=taken.mtime_ns)

    def _still_blocks(self, entry: Entry, place: str) -> Entry | None:
        like = self.earlier.like(entry.path)
        base = self.earlier.base(entry.path, entry.size)
        changed = self._begin_blocks(entry.path, base)
        if like is None or base is None or changed is None:
            return None
        with (
            blocks.opened(Path(place)) as fd,
            blocks.opened(base) as earlier,
            durable.fresh(changed, lasting=False) as target,
        ):
            most = int(os.fstat(earlier).st_size * blocks.MOST)
            known = self.earlier.known(entry.path)
            made = blocks.write(blocks.chunks(fd), earlier, target, most, known)
        if made is None:
            self.drop(entry.path)
            return None
        self._written(changed, made.changes)
        return entry._replace(
            blocks=True,
            size=made.size,
            sha256=like.sha256 if made.same and not like.blocks else made.sha256,
            pieces=made.pieces,
        )

    def _still_whole(self, entry: Entry, place: str) -> Entry:
        copy = self._place(entry.path)
        with durable.fresh(copy, lasting=False) as fd:
            digest, count, read_back = durable.copy_read_back(place, fd, self.progress)
        self._written(copy, digest, read_back=read_back)
        return entry._replace(size=count, sha256=digest)

    # -- places --------------------------------------------------------------------------------

    def _unchanged(self, source: Source) -> Entry | None:
        """The entry of a file at rest that is still what the backup before has a copy of."""
        if not source.patient or source.live or source.expect.kind != "file":
            return None
        found = self.earlier.unchanged(source.name, sharing.marks(source.expect))
        return self._shared(found, source.expect)

    def _shared(self, earlier: Entry | None, taken: Snapshot) -> Entry | None:
        """The copy that is there already, with the mode and the owner of today."""
        given = self.earlier.give(earlier, self.partial) if earlier is not None else None
        if given is None:
            return None
        owner = (given.mode, given.uid, given.gid)
        if owner == (taken.mode & 0o777, taken.uid, taken.gid):
            return given
        return given._replace(mode=taken.mode & 0o777, uid=taken.uid, gid=taken.gid)

    def _begin_blocks(self, name: str, base: Path | None) -> Path | None:
        """Where the changes of a file go, beside a name for what they are against."""
        if base is None:
            return None
        folder = place_of(self.partial, name, blocks=True)
        return folder / CHANGED if self.earlier.link(base, folder / BASE) else None

    def _place(self, name: str) -> str:
        copy = f"{self.partial}/{within(name)}"
        folder = copy.rpartition("/")[0]
        if folder not in self._folders:
            durable.make_folder(Path(folder), lasting=False)
            self._folders.add(folder)
        return copy

    def _written(self, copy: StrPath, sha256: str, *, read_back: bool = False) -> None:
        self.fresh.add(os.fspath(copy))
        if not read_back:
            self.unread[os.fspath(copy)] = sha256

    def drop(self, name: str) -> None:
        """Take away what was saved of a path."""
        folder = place_of(self.partial, name, blocks=True)
        for path in (place_of(self.partial, name), folder / BASE, folder / CHANGED):
            durable.remove(path)
            self.unread.pop(str(path), None)
            self.fresh.discard(str(path))
        durable.remove_folder(folder)
        self.earlier.gone(folder)


def _written_to(place: str) -> Trouble:
    name = os.path.basename(place)
    return Trouble(f"{name} is being written to. Nothing was changed; try again.")


def _reads(one: tuple[str, str]) -> bool:
    """Whether a file reads as it was written."""
    path, sha256 = one
    try:
        return durable.digest(path) == sha256
    except (CouldNotLook, OSError):
        return False


def _shares(files: Sequence[Source], count: int) -> list[list[list[Source]]]:
    """The files by themselves in so many shares, which take about as long each."""
    shares: list[list[list[Source]]] = [[] for _ in range(count if len(files) > MANY else 1)]
    taken = [0] * len(shares)
    for source in sorted(files, key=lambda source: -source.expect.size):
        least = taken.index(min(taken))
        shares[least].append([source])
        taken[least] += source.expect.size + OVERHEAD
    return shares


def _groups(sources: Iterable[Source]) -> list[list[Source]]:
    """Databases, each together with its sidecars."""
    groups: dict[str, list[Source]] = {}
    for source in sources:
        groups.setdefault(str(main_of(source.path)), []).append(source)
    return list(groups.values())


def _moment(database: Path) -> list[Snapshot]:
    return [snapshot(database.with_name(database.name + suffix)) for suffix in ("", *SIDECARS)]


def _keeps_log(database: Path) -> bool:
    """Whether it is in WAL mode, where a reader does not keep a writer waiting."""
    try:
        return read_head(database, 20)[0][18:20] == b"\x02\x02"
    except (CouldNotLook, OSError):
        return False
