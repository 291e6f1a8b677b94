"""The transaction: lock, back up, stage, commit, verify, receipt; and back on any failure.

New content is first written beside its target and flushed (a full disk is noticed there,
before anything has changed). Committing then only renames, and keeps the old file under a
second name, so that going back needs no space and no copying.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from hermes_doctor import durable, journal as journals
from hermes_doctor.files import Snapshot, snapshot
from hermes_doctor.home import DATABASES, SIDECARS, Home
from hermes_doctor.journal import ItemRecord, Journal, Journals, PathRecord, State
from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.sqlite.guard import alone
from hermes_doctor.steps import Change, GatewayStep, Step, sidecars
from hermes_doctor.vault import Backup, Entry, Source, Vault, check_room, new_id

GATEWAY_LIMIT = 120.0


@dataclass()
class Item:
    """One thing that the run is to do: the steps of one fix for one finding."""

    record: ItemRecord
    steps: Sequence[Step]


@dataclass()
class Target:
    """One path with everything that the items together want of it."""

    change: Change
    items: list[int]
    before: State | None = None
    after: State | None = None
    taken: Snapshot | None = None
    """The path as it was backed up; committing insists on it."""

    @property
    def path(self) -> Path:
        """The path."""
        return self.change.path

    @property
    def replaces(self) -> bool:
        """Whether the file itself goes, not only its mode or owner."""
        return self.change.absent or self.change.make is not None


Verify = Callable[[Sequence[ItemRecord]], Sequence[str | None]]
"""Says for each item what is still wrong, or None when it is cured."""


@dataclass()
class Run:
    """One application of a plan."""

    home: Home
    vault: Vault
    kind: str
    reason: str
    hermes: str | None = None
    of: str | None = None
    progress: Callable[[int], None] | None = None
    id: str = field(default_factory=new_id)

    def apply(self, items: Sequence[Item], verify: Verify) -> Journal:
        """Do it. The home's lock must be held; the journal that comes back is the receipt."""
        book = Journals(self.home)
        log = Journal(
            id=self.id,
            kind=self.kind,
            home=str(self.home.path),
            vault=str(self.vault.root),
            started_at=datetime.now(UTC).isoformat(),
            of=self.of,
            items=[item.record for item in items],
        )
        targets = self._targets(items)
        services = [s for item in items for s in item.steps if isinstance(s, GatewayStep)]
        if not targets and not services:
            log.finish(journals.ABANDONED, "there was nothing to do")
            return log
        self._preflight(targets, services)
        with interruptible(), contextlib.ExitStack() as guards:
            try:
                book.save(log)
                self._stop(services, log, book)
                backup = self._back_up(targets, log, book)
                self._stage(targets, log, book)
                for target in targets:  # as late as possible: a gateway that starts must not wait
                    if target.replaces and target.path.suffix == ".db":
                        guards.enter_context(alone(target.path))
                self._refuse_holders(targets)
            except BaseException as error:
                with uninterrupted():
                    self._clean(log)
                    log.finish(journals.ABANDONED, f"nothing was changed: {_why(error)}")
                    guards.close()
                    self._start_again(services, log, book)
                    self._close(log, book)
                if isinstance(error, Refused):
                    return _refused(log, error)
                raise _explained(error) from error
            try:
                with uninterrupted():
                    log.state = journals.COMMITTING
                    book.save(log)
                    for target in targets:
                        _commit(target, self.id)
                    for folder in sorted({target.path.parent for target in targets}):
                        durable.sync_folder(folder)
                    self._refuse_late_holders(targets)
                    log.state = journals.VERIFYING
                    book.save(log)
                guards.close()
                self._start(services, log, book)
                self._settle(log, book, backup, verify)
            except BaseException as error:
                with uninterrupted():
                    left = roll_back(self.home, log, backup, log.paths)
                    self._clean(log)
                    state = journals.PARTLY if left else journals.ROLLED_BACK
                    for item in log.items:
                        item.outcome, item.reason = "rolled-back", _why(error)
                    log.finish(state, f"rolled back: {_why(error)}" + _left(left))
                    self._start_again(services, log, book)
                    self._close(log, book)
                if isinstance(error, CannotFix | Trouble):
                    return log
                raise _explained(error) from error
        return log

    # -- before ----------------------------------------------------------------------------

    def _targets(self, items: Sequence[Item]) -> list[Target]:
        """One target a path; an item that cannot be combined with an earlier one is left."""
        found: dict[Path, Target] = {}
        for number, item in enumerate(items):
            changes = [change for step in item.steps for change in step.changes()]
            merged = []
            for change in changes:
                present = found.get(change.path)
                both = _merge(present.change, change) if present else change
                if both is None:
                    item.record.outcome = "left"
                    item.record.reason = f"{change.path.name} is changed by another fix first"
                    break
                merged.append(both)
            else:
                for both in merged:
                    target = found.setdefault(both.path, Target(both, []))
                    target.change = both
                    target.items.append(number)
        return list(found.values())

    def _preflight(self, targets: Sequence[Target], services: Sequence[GatewayStep]) -> None:
        """Everything that can be known to fail is known here, before the first write."""
        uid = os.stat(self.home.path).st_uid
        if os.geteuid() not in (0, uid):
            raise Trouble(
                f"{self.home.path} belongs to another user (uid {uid}). Nothing was changed. "
                f"Run it as that user, or with sudo."
            )
        if services and os.environ.get("_HERMES_GATEWAY"):
            raise Trouble(
                "This runs inside the gateway that would be restarted, which would cut off the "
                "answer in the middle. Run it from a shell of your own."
            )
        for target in targets:
            path = target.path
            if snapshot(path) != target.change.expect:
                raise Trouble(f"{path.name} was changed meanwhile. Nothing was changed; try again.")
            owner = target.change.expect.uid
            outside = not path.resolve().is_relative_to(self.home.path)
            if os.geteuid() == 0 and uid != 0 and outside and owner != uid:
                raise Trouble(
                    f"{path} lies outside the home and belongs to uid {owner}, not to the home's "
                    f"owner. Nothing was changed."
                )
            if target.replaces and _is_mount(path):
                raise Trouble(
                    f"{path} is a mount of its own and cannot be replaced. Nothing was changed. "
                    f"Change it where it is mounted from."
                )
            if not os.access(path.parent, os.W_OK | os.X_OK):
                raise Trouble(
                    f"{path.parent} cannot be written to (read-only disk or missing rights). "
                    f"Nothing was changed."
                )
        self._refuse_holders(targets)

    def _refuse_holders(self, targets: Sequence[Target]) -> None:
        """A database that somebody has open, or may open any moment, must not be swapped."""
        from hermes_doctor.probes import processes

        paths = [t.path for t in targets if t.replaces and is_database(t.path)]
        if not paths:
            return
        files = [p for path in paths for p in (path, *sidecars(path))]
        held = processes.holders(files)
        pids = sorted({pid for found in held.values() for pid in found})
        name = next(iter(held)).name if held else paths[0].name
        try:
            running = [gateway.pid for gateway in processes.gateways_of(self.home)]
        except CouldNotLook:
            running = []
        if pids or running:
            who = ", ".join(str(p) if p else "of another container" for p in pids or running)
            raise Trouble(
                f"{name} is in use by process {who}. Nothing was changed. Stop the gateway "
                f"(and any other Hermes on this home) first, then try again."
            )

    def _refuse_late_holders(self, targets: Sequence[Target]) -> None:
        """Somebody who opened a database in the last instant would write into the old file."""
        from hermes_doctor.probes import processes

        old = [kept(t.path, self.id) for t in targets if t.replaces and is_database(t.path)]
        for path, pids in processes.holders(old).items() if old else ():
            raise Trouble(f"process {pids[0]} opened {path.name} at the last moment")

    def _back_up(self, targets: Sequence[Target], log: Journal, book: Journals) -> Backup:
        sources = [
            Source(target.path, target.change.expect, content=target.replaces) for target in targets
        ]
        backup = self.vault.create(
            sources, reason=self.reason, hermes=self.hermes, id=self.id, progress=self.progress
        )
        for target, entry in zip(targets, backup.entries, strict=True):
            target.taken = target.change.expect
            target.before = state_of(entry)
        log.state = journals.STAGING
        log.paths = [
            PathRecord(
                self.home.name_of(target.path),
                before=target.before or State("absent"),
                after=State("unknown"),
                items=target.items,
            )
            for target in targets
        ]
        book.save(log)
        return backup

    def _stage(self, targets: Sequence[Target], log: Journal, book: Journals) -> None:
        """Write everything new beside its target, and know what it will be."""
        for folder in sorted({t.path.parent for t in targets if t.change.make}):
            inside = [t for t in targets if t.change.make and t.path.parent == folder]
            check_room(folder, sum(t.change.expect.size for t in inside))
        for target, record in zip(targets, log.paths, strict=True):
            change, old = target.change, target.change.expect
            before = target.before or State("absent")
            if change.absent:
                target.after = State("absent")
            else:
                mode = old.mode if change.mode is None else change.mode
                uid, gid = change.owner or (old.uid, old.gid)
                target.after = replace(before, mode=mode, uid=uid, gid=gid)
            if change.make is not None:
                new = staged(target.path, self.id)
                try:
                    change.make(new)
                except CannotFix as why:
                    raise Refused(str(why), target.items) from why
                if not change.restored:
                    self._dress(new, target)
                target.after = look(new)
                if target.after.kind == "file":
                    durable.sync_file(new)
            record.after = target.after or State("absent")
        book.save(log)

    def _dress(self, new: Path, target: Target) -> None:
        """Give the new file what the old one had: owner, mode, attributes."""
        change, old = target.change, target.change.expect
        if old.kind == "absent":
            durable.give(new, change.owner or self.vault.owner)
            durable.set_mode(new, change.mode if change.mode is not None else durable.FILE_MODE)
            return
        now = snapshot(new)
        uid, gid = change.owner or (old.uid, old.gid)
        if (now.uid, now.gid) != (uid, gid):
            durable.set_owner(new, uid, gid)
        durable.set_extended(new, durable.extended(target.path))
        durable.set_mode(new, old.mode if change.mode is None else change.mode)

    # -- after -----------------------------------------------------------------------------

    def _settle(self, log: Journal, book: Journals, backup: Backup, verify: Verify) -> None:
        """Keep what is cured, take back what is not, and close the run."""
        pending = [n for n, item in enumerate(log.items) if item.outcome == "planned"]
        wrong = dict(zip(pending, verify([log.items[n] for n in pending]), strict=True))
        failed = {n for n, why in wrong.items() if why is not None}
        with uninterrupted():
            for _ in log.paths:  # a file that a failed item shares takes the others with it
                for record in log.paths:
                    if failed & set(record.items):
                        failed |= set(record.items)
            for n in failed:
                wrong[n] = wrong.get(n) or "shares a file with a fix that did not hold"
            back = [record for record in log.paths if failed & set(record.items)]
            left = roll_back(self.home, log, backup, back)
            for n in pending:
                log.items[n].outcome = "rolled-back" if n in failed else "verified"
                log.items[n].reason = wrong[n]
            self._clean(log)
            kept = any(item.outcome == "verified" for item in log.items)
            if not failed:
                log.finish(journals.DONE)
            elif kept or left:
                log.finish(journals.PARTLY, "some fixes did not hold" + _left(left))
            else:
                log.finish(journals.ROLLED_BACK, "the fix did not hold and was taken back")
            book.save(log)

    def _clean(self, log: Journal) -> None:
        clean(self.home, log)

    def _close(self, log: Journal, book: Journals) -> None:
        """The last word of a failed run; on a full disk even that may not fit."""
        with contextlib.suppress(OSError):
            book.save(log)

    def _stop(self, steps: Sequence[GatewayStep], log: Journal, book: Journals) -> None:
        for step in steps:
            if step.restart and step.service.running() is not None:
                log.gateway = "stopped"
                book.save(log)
                step.service.stop(GATEWAY_LIMIT)

    def _start(self, steps: Sequence[GatewayStep], log: Journal, book: Journals) -> None:
        for step in steps:
            if step.service.running() is None:
                step.service.start(GATEWAY_LIMIT)
                log.gateway = "started"
                book.save(log)

    def _start_again(self, steps: Sequence[GatewayStep], log: Journal, book: Journals) -> None:
        """After a failure: the gateway must not stay down because of us, at least not silently."""
        try:
            self._start([step for step in steps if step.restart], log, book)
        except (CannotFix, OSError) as error:
            log.note = f"{log.note}; the gateway could not be started again ({_why(error)})"


# -- one path ------------------------------------------------------------------------------


def staged(path: Path, run: str) -> Path:
    """Where the new content of a path waits."""
    return path.with_name(f".{path.name}.hermes-doctor-{run}.new")


def kept(path: Path, run: str) -> Path:
    """The second name that the old file keeps until the run has ended."""
    return path.with_name(f".{path.name}.hermes-doctor-{run}.old")


def _commit(target: Target, run: str) -> None:
    """Compare and swap one path."""
    path, change = target.path, target.change
    for other, taken in ((path, target.taken), *change.beside):
        if snapshot(other) != taken:
            raise Trouble(f"{other.name} was changed meanwhile")
    if change.absent:
        durable.rename(path, kept(path, run))
    elif change.make is not None:
        if change.expect.kind != "absent":
            with contextlib.suppress(OSError):  # a drive without hard links: the vault has it
                durable.link(path, kept(path, run))
        durable.rename(staged(path, run), path)
    else:
        if change.owner is not None:
            durable.set_owner(path, *change.owner)
        if change.mode is not None:
            durable.set_mode(path, change.mode)


def roll_back(home: Home, log: Journal, backup: Backup, records: Sequence[PathRecord]) -> list[str]:
    """Give back what the paths were; names those that somebody else has changed since."""
    left = []
    for record in reversed(records):
        if record.reverted:
            continue
        path = home.path / record.path
        now = look(path, content=record.before.kind != "file" or record.before.sha256 is not None)
        same = matches(now, record.before)
        if not same and not matches(now, record.after):
            left.append(record.path)
            continue
        if os.path.lexists(kept(path, log.id)):  # the very file, which somebody may have open
            durable.rename(kept(path, log.id), path)
        elif not same:
            restore(backup, backup.entry(record.path), path, log.id)
        record.reverted = True
    for folder in sorted({(home.path / record.path).parent for record in records}):
        durable.sync_folder(folder)
    return left


def restore(backup: Backup, entry: Entry | None, path: Path, run: str) -> None:
    """Give one path back from the vault."""
    if entry is None:
        raise Trouble(f"backup {backup.id} holds nothing of {path.name}")
    if entry.kind == "absent":
        durable.remove(path)
    elif entry.kind == "mode":
        if snapshot(path).uid != entry.uid or snapshot(path).gid != entry.gid:
            durable.set_owner(path, entry.uid, entry.gid)
        durable.set_mode(path, entry.mode)
    else:
        new = staged(path, run)
        durable.remove(new)
        rebuild(backup, entry, new)
        durable.rename(new, path)


def rebuild(backup: Backup, entry: Entry, new: Path) -> None:
    """The file or symlink of an entry, complete with owner, mode, attributes and times."""
    if entry.kind == "symlink":
        os.symlink(entry.target or "", new)
    else:
        with durable.fresh(new) as fd:
            found, _ = durable.copy(backup.copy_of(entry), fd)
        if found != entry.sha256:
            durable.remove(new)
            raise Trouble(f"the copy of {entry.path} in backup {backup.id} is damaged")
    now = snapshot(new)
    if (now.uid, now.gid) != (entry.uid, entry.gid):
        durable.set_owner(new, entry.uid, entry.gid)
    if entry.kind == "file":
        durable.set_extended(new, entry.xattrs)
        durable.set_mode(new, entry.mode)
        os.utime(new, ns=(entry.mtime_ns, entry.mtime_ns))
        durable.sync_file(new)


def clean(home: Home, log: Journal) -> None:
    """Remove what the run left beside its targets."""
    for record in log.paths:
        path = home.path / record.path
        for leftover in (staged(path, log.id), kept(path, log.id)):
            for name in (leftover, *sidecars(leftover)):
                durable.remove(name)


def look(path: Path, *, content: bool = True) -> State:
    """What a path is now, in the terms of a journal."""
    taken = snapshot(path)
    if taken.kind == "symlink":
        return State("symlink", uid=taken.uid, gid=taken.gid, target=os.readlink(path))
    if taken.kind != "file":
        return State(taken.kind)
    sha = durable.digest(path) if content else None
    return State("file", sha, taken.mode, taken.uid, taken.gid)


def matches(now: State, known: State) -> bool:
    """Whether a path is what was written down; a hash that was not taken is not compared."""
    if known.sha256 is None:
        now = replace(now, sha256=None)
    return now == known


def state_of(entry: Entry) -> State:
    """What a path was, in the terms of a journal."""
    if entry.kind == "absent":
        return State("absent")
    if entry.kind == "symlink":
        return State("symlink", uid=entry.uid, gid=entry.gid, target=entry.target)
    return State("file", entry.sha256, entry.mode, entry.uid, entry.gid)


def is_database(path: Path) -> bool:
    """Whether a path is one of Hermes' databases or a sidecar of one."""
    name = path.name
    for suffix in SIDECARS:
        name = name.removesuffix(suffix)
    return name in {Path(one).name for one in DATABASES} or name.endswith(".db")


def _is_mount(path: Path) -> bool:
    """Whether a single file is mounted there, as containers do; it cannot be renamed over."""
    try:
        table = Path("/proc/self/mountinfo").read_text()
    except OSError:
        return False
    escaped = str(path).replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011")
    return any(line.split(" ")[4] == escaped for line in table.splitlines())


def _merge(one: Change, two: Change) -> Change | None:
    """Both changes at once; None when they contradict each other."""
    if one.expect != two.expect or (one.absent or two.absent):
        return one if one == two else None
    if one.make is not None and two.make is not None:
        return None
    for a, b in ((one.mode, two.mode), (one.owner, two.owner)):
        if a is not None and b is not None and a != b:
            return None
    return replace(
        one,
        make=one.make or two.make,
        mode=one.mode if two.mode is None else two.mode,
        owner=one.owner or two.owner,
        restored=one.restored or two.restored,
    )


def _left(paths: Sequence[str]) -> str:
    if not paths:
        return ""
    return f"; left alone because somebody changed it since: {', '.join(paths)}"


def _refused(log: Journal, error: Refused) -> Journal:
    """Nothing was changed: one item cannot be done, the others have to be tried without it."""
    for number, item in enumerate(log.items):
        mine = number in error.items
        item.outcome = "refused" if mine else "left"
        item.reason = str(error) if mine else "tried again without the one that was refused"
    return log


# -- failures and signals ------------------------------------------------------------------


class Refused(CannotFix):
    """A step could not make its new content; nothing has been changed yet."""

    def __init__(self, why: str, items: Sequence[int]) -> None:
        super().__init__(why)
        self.items = items


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, a closed terminal or a request to end."""


def _why(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError):
        return os.strerror(error.errno or 0).lower()
    if isinstance(error, Trouble | CannotFix | CouldNotLook):
        return str(error)
    return type(error).__name__


def _explained(error: BaseException) -> BaseException:
    """An error of the disk as one clear line; anything else as it is."""
    if isinstance(error, OSError):
        name = f" ({Path(error.filename).name})" if isinstance(error.filename, str) else ""
        return Trouble(f"{os.strerror(error.errno or 0)}{name}. Nothing was changed.")
    if isinstance(error, CouldNotLook):
        return Trouble(f"{error}. Nothing was changed.")
    return error


_held: list[int] = []
_depth = 0


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM and SIGHUP roll back as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _: FrameType | None) -> None:
        if _depth:
            _held.append(number)
        else:
            raise Interrupted

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold signals back while names change; the last one held is acted upon afterwards."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
    if not _depth and _held:
        _held.clear()
        raise Interrupted
