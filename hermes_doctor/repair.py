"""The transaction: lock, back up, stage, commit, verify, receipt; and back on any failure.

New content is first written beside its target and flushed (a full disk is noticed there,
before anything has changed). Committing then only renames, and keeps the old file under a
second name, so that going back needs no space and no copying.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor import acting, durable, journal as journals, paths, rights, working
from hermes_doctor.files import snapshot
from hermes_doctor.handover import ASKED, Handover, forget, will_end
from hermes_doctor.home import Home, is_database, main_of
from hermes_doctor.interrupts import interruptible, uninterrupted
from hermes_doctor.journal import ItemRecord, Journal, Journals, PathRecord, State
from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.sqlite.guard import alone
from hermes_doctor.steps import Change, GatewayStep, Service, Step, sidecars
from hermes_doctor.vault import PARTIAL, Backup, Source, Vault, check_room

Verify = Callable[[Sequence[ItemRecord]], Sequence[str | None]]
"""Says for each item what is still wrong, or None when it is cured."""


@dataclass
class Item:
    """One thing that the run is to do: the steps of one fix for one finding."""

    record: ItemRecord
    steps: Sequence[Step]


@dataclass
class Target:
    """One path with everything that the items together want of it."""

    change: Change
    items: list[int]
    before: State = field(default_factory=lambda: State("absent"))

    @property
    def path(self) -> Path:
        """The path."""
        return self.change.path

    @property
    def replaces(self) -> bool:
        """Whether the file itself goes, not only its mode or owner."""
        return self.change.absent or self.change.make is not None

    @property
    def is_database(self) -> bool:
        """Whether a database, or a sidecar of one, is replaced."""
        return self.replaces and is_database(self.path)


class Refused(CannotFix):
    """Some items cannot be done; nothing has been changed yet."""

    def __init__(self, why: str, items: Sequence[int], *, tried: bool = False) -> None:
        super().__init__(why)
        self.items = items
        self.tried = tried
        """The repair was made, on a copy, and was not enough."""


@dataclass
class Run:
    """One application of a plan."""

    home: Home
    vault: Vault
    kind: str
    reason: str
    hermes: str | None = None
    of: str | None = None
    progress: Callable[[int], None] | None = None
    id: str = ""

    def __post_init__(self) -> None:
        self.id = self.id or self.vault.next_id()

    def apply(self, items: Sequence[Item], verify: Verify) -> Journal:
        """Do it. The home's lock must be held; the journal that comes back is the receipt."""
        book = Journals(self.home)
        log = Journal(
            id=self.id,
            kind=self.kind,
            home=str(self.home.path),
            vault="" if self.vault.root == self.home.vault else str(self.vault.root),
            started_at=datetime.now(UTC).isoformat(),
            of=self.of,
            items=[item.record for item in items],
        )
        _one_owner(items)
        targets = self._targets(items)
        gateway = Handover(_gateway_steps(items), log, book)
        acts = acting.Acts(items, log, book)
        if not targets and not gateway and not acts:
            log.finish(journals.ABANDONED, "there was nothing to do")
            log.close()
            return log
        try:
            self._preflight(targets, gateway, acts)
        except Refused as error:
            log.finish(journals.ABANDONED, f"nothing was changed: {error}")
            log.close()
            return _refused(log, error)
        with interruptible(), contextlib.ExitStack() as guards:
            try:
                book.save(log)
                for step in [step for item in items for step in item.steps]:
                    guards.callback(step.release)
                    step.prepare()
                if gateway.stop():
                    targets = self._targets(items, settled=True)
                backup = self._back_up(targets, log, book)
                self._stage(targets, log, book)
                _note(items)
                for database in sorted({main_of(t.path) for t in targets if t.is_database}):
                    if snapshot(database).kind == "file":  # late: a gateway that starts must wait
                        guards.enter_context(alone(database))
                self._refuse_holders(targets, excused=[])
            except BaseException as error:
                with uninterrupted():
                    self._abandon(log, book, gateway, guards, error)
                if isinstance(error, Refused):
                    return _refused(log, error)
                raise _explained(error, log) from error
            try:
                with uninterrupted():
                    self._commit(targets, log, book)
                if self.kind != "fix":  # a gateway that is up writes to what came back
                    verify = _beforehand(log, verify)
                guards.close()
                acts.do()
                gateway.start()
                _note(items)
                self._settle(log, book, backup, verify, gateway, acts)
            except BaseException as error:
                with uninterrupted():
                    guards.close()
                    self._give_back(log, book, backup, gateway, acts, error)
                _note(items)
                if isinstance(error, CannotFix | Trouble):
                    return log
                raise _explained(error, log) from error
        return log

    # -- before anything changes -----------------------------------------------------------

    def _targets(self, items: Sequence[Item], *, settled: bool = False) -> list[Target]:
        """One target a path; an item that cannot be combined with an earlier one is left.

        `settled` is for after the gateway was stopped: closing its databases changed them, and it
        may have saved what a restore replaces anyway. What they are now is what counts.
        """
        found: dict[Path, Target] = {}
        for number, item in enumerate(items):
            mine: dict[Path, Change] = {}
            if item.record.outcome == "left":
                continue
            for change in (change for step in item.steps for change in step.changes()):
                if settled and (is_database(change.path) or change.restored):
                    change = replace(change, expect=snapshot(change.path))
                other = found.get(change.path)
                present = mine.get(change.path) or (other.change if other else None)
                both = _merge(present, change) if present else change
                if both is None:
                    item.record.outcome = "left"
                    item.record.reason = f"{change.path.name} is changed by another fix first"
                    break
                mine[change.path] = both
            else:
                for path, change in mine.items():
                    target = found.setdefault(path, Target(change, []))
                    target.change = change
                    target.items.append(number)
        return list(found.values())

    def _preflight(self, targets: Sequence[Target], gateway: Handover, acts: acting.Acts) -> None:
        """Everything that can be known to fail is known here, before the first write."""
        st = os.stat(self.home.path)
        uid = st.st_uid
        if os.geteuid() == uid == 0 and rights.shared(st):
            raise Trouble(
                f"Others may write to {self.home.path}, so it is not root's alone. Nothing was "
                f"changed. Close it first: chmod go-w {self.home.path}"
            )
        if os.geteuid() not in (0, uid):
            raise Trouble(
                f"{self.home.path} belongs to another user (uid {uid}). Nothing was changed. "
                f"Run it as that user, or with sudo."
            )
        if gateway and os.environ.get("_HERMES_GATEWAY"):
            raise Trouble(
                "This runs inside the gateway that would be restarted, which would cut off the "
                "answer in the middle. Run it from a shell of your own."
            )
        try:
            excused = gateway.excused()
        except CannotFix as why:
            raise Trouble(f"{why}. Nothing was changed.") from why
        for target in targets:
            try:
                self._preflight_path(target, uid, at_work=bool(excused))
            except Trouble as why:
                self._refuse(targets, target.items, str(why))
        for reason, items in acts.refused():
            self._refuse(targets, items, f"{reason}. Nothing was changed.", acts.items())
        self._refuse_holders(targets, excused)
        self._check_room(targets)

    def _check_room(self, targets: Sequence[Target]) -> None:
        """What is made beside its target must fit there, the backup with it on the same disk."""
        disks: dict[int, tuple[Path, list[Target]]] = {}
        for target in targets:
            if target.change.make is not None:
                place = next(one for one in target.path.parents if one.exists())
                disks.setdefault(os.stat(place).st_dev, (place, []))[1].append(target)
        vault = next(one for one in (self.vault.root, *self.vault.root.parents) if one.exists())
        backup = sum(target.change.expect.size for target in targets if target.replaces)
        for disk, (place, made) in disks.items():
            wanted = sum(max(one.change.room, one.change.expect.size) for one in made)
            check_room(place, wanted + (backup if os.stat(vault).st_dev == disk else 0))

    def _preflight_path(self, target: Target, uid: int, *, at_work: bool) -> None:
        """One path: still as planned, ours to change, and in a place where that can be done.

        What the gateway writes until it is stopped is compared once it is.
        """
        path, owner = target.path, target.change.expect.uid
        moves = at_work and (target.is_database or target.change.growing)
        if snapshot(path) != target.change.expect and not moves:
            raise Trouble(f"{path.name} was changed meanwhile. Nothing was changed; try again.")
        euid = os.geteuid()
        if euid not in (0, owner) and target.change.expect.kind == "file":
            raise Trouble(
                f"{path.name} belongs to uid {owner}, so you may not change it. Nothing was "
                f"changed. Run it with sudo."
            )
        paths.distrust(self.home, [self.home.name_of(path)], "The plan")
        handed = target.change.owner is not None and not target.replaces
        foreign = target.change.expect.kind == "file" and owner != uid
        if euid == 0 and uid != 0 and foreign and not handed:
            raise Trouble(
                f"{path.name} belongs to uid {owner}, not to the home's owner, for whom this "
                f"works. Nothing was changed. Give it back first: chown {uid} {path}"
            )
        if paths.is_immutable(path):
            raise Trouble(
                f"{path.name} is marked unchangeable (lsattr shows i or a). Nothing was changed. "
                f"Take the mark away first: chattr -ia {path}"
            )
        if target.replaces and paths.is_mount(path):
            raise Trouble(
                f"{path} is a mount of its own and cannot be replaced. Nothing was changed. "
                f"Change it where it is mounted from."
            )
        folder = next(place for place in path.parents if place.exists())
        if not folder.is_dir():
            raise Trouble(
                f"{folder} is no folder, and {path.name} belongs into one of that name. Nothing "
                f"was changed. Move it away first."
            )
        if path.is_dir() and not path.is_symlink():
            raise Trouble(
                f"{path} is a folder by now. Nothing was changed. Move it away first, or leave it "
                f"out."
            )
        if not os.access(folder, os.W_OK | os.X_OK):
            raise Trouble(
                f"{folder} cannot be written to (read-only disk or missing rights). "
                f"Nothing was changed."
            )

    def _refuse_holders(self, targets: Sequence[Target], excused: Sequence[int]) -> None:
        """A database that somebody has open, or may open any moment, must not be swapped."""
        from hermes_doctor.probes import processes

        wanted = [target for target in targets if target.is_database]
        if not wanted:
            return
        held = processes.holders(p for t in wanted for p in (t.path, *sidecars(t.path)))
        try:
            running = [gateway.pid for gateway in processes.gateways_of(self.home)]
        except CouldNotLook:
            running = []
        for target in wanted:
            mine = {p for path in (target.path, *sidecars(target.path)) for p in held.get(path, [])}
            pids = sorted((mine or set(running)) - set(excused))
            if not pids:
                continue
            who = ", ".join(str(pid) if pid else "of another container" for pid in pids)
            why = (
                f"{target.path.name} is in use by process {who}. Nothing was changed. Stop the "
                f"gateway (and any other Hermes on this home) first, then try again."
            )
            self._refuse(targets, [n for one in wanted for n in one.items], why)

    def _refuse(
        self,
        targets: Sequence[Target],
        items: Sequence[int],
        why: str,
        others: Sequence[int] = (),
    ) -> None:
        """Leave these items out, or give up where they are all there is."""
        every = {n for target in targets for n in target.items} | set(others)
        if self.kind != "fix" or set(items) >= every:
            raise Trouble(why)
        raise Refused(why, items)

    def _back_up(self, targets: Sequence[Target], log: Journal, book: Journals) -> Backup:
        sources = [
            Source(
                self.home.name_of(target.path),
                str(target.path),
                target.change.expect,
                content=target.replaces,
            )
            for target in targets
        ]
        backup = self.vault.create(
            sources, reason=self.reason, hermes=self.hermes, id=self.id, progress=self.progress
        )
        for target, entry in zip(targets, backup.entries, strict=True):
            target.before = paths.state_of(entry)
        log.state = journals.STAGING
        log.paths = [
            PathRecord(
                self.home.name_of(target.path),
                before=target.before,
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
            self._make_folder(folder, log, book)  # a restored file's may be gone
            inside = [t for t in targets if t.change.make and t.path.parent == folder]
            check_room(folder, sum(max(t.change.room, t.change.expect.size) for t in inside))
        for target, record in zip(targets, log.paths, strict=True):
            change, old = target.change, target.change.expect
            if change.absent:
                record.after = State("absent")
            elif change.make is not None:
                record.after = self._make(target, change.make)
            else:
                mode = old.mode if change.mode is None else change.mode
                uid, gid = change.owner or (old.uid, old.gid)
                record.after = replace(target.before, mode=mode, uid=uid, gid=gid)
        book.save(log)

    def _make_folder(self, folder: Path, log: Journal, book: Journals) -> None:
        """A folder that is not there; one outside the home is remembered, to go again."""
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        outside = [str(one) for one in missing if not one.is_relative_to(self.home.path)]
        if outside:
            log.folders += outside  # the deepest first
            book.save(log)
        durable.make_folder(folder)

    def _make(self, target: Target, make: Callable[[Path], None]) -> State:
        """The new file of one target, complete and on the disk."""
        new = paths.staged(target.path, self.id)
        try:
            make(new)
        except CannotFix as why:
            raise Refused(str(why), target.items, tried=True) from why
        if not target.change.restored:
            self._dress(new, target)
        after = paths.look(new)
        if after.kind == "file":
            with contextlib.suppress(PermissionError):  # synced before it was closed to us
                durable.sync_file(new)
        return after

    def _dress(self, new: Path, target: Target) -> None:
        """Give the new file what the old one had: owner, mode, attributes."""
        change, old = target.change, target.change.expect
        if old.kind == "absent":
            durable.set_mode(new, change.mode if change.mode is not None else durable.FILE_MODE)
            return
        now = snapshot(new)
        uid, gid = change.owner or (old.uid, old.gid)
        if (now.uid, now.gid) != (uid, gid):
            durable.set_owner(new, uid, gid)
        durable.set_extended(new, durable.extended(target.path))
        durable.set_mode(new, old.mode if change.mode is None else change.mode)

    def _abandon(
        self,
        log: Journal,
        book: Journals,
        gateway: Handover,
        guards: contextlib.ExitStack,
        error: BaseException,
    ) -> None:
        """Nothing was changed, and nothing is left lying about."""
        with contextlib.suppress(OSError):
            self.vault.discard(self.id + PARTIAL)
        log.finish(journals.ABANDONED, f"nothing was changed: {_why(error)}")
        guards.close()
        gateway.again(changed=True)
        if log.gateway == ASKED and log.note:
            log.note = log.note.replace("nothing was changed", "no file was changed", 1)
        self._end(log, book)

    # -- the change, and after -------------------------------------------------------------

    def _commit(self, targets: Sequence[Target], log: Journal, book: Journals) -> None:
        """Swap every path in; from here on a cut-off run is taken back."""
        from hermes_doctor.probes import processes

        log.state = journals.COMMITTING
        book.save(log)
        for target in targets:
            paths.commit(target.change, target.change.expect, self.id)
        for folder in sorted({target.path.parent for target in targets}):
            durable.sync_folder(folder)
        old = [paths.kept(target.path, self.id) for target in targets if target.is_database]
        for path, pids in processes.holders(old).items() if old else ():
            # Who opened it in the last instant would go on writing into the old file.
            raise Trouble(f"process {pids[0]} opened {path.name} at the last moment")
        log.state = journals.VERIFYING
        book.save(log)

    def _settle(
        self,
        log: Journal,
        book: Journals,
        backup: Backup,
        verify: Verify,
        gateway: Handover,
        acts: acting.Acts,
    ) -> None:
        """Keep what is cured, take back what is not, and close the run."""
        working.tell("verifying")
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
            left: list[str] = []
            back = [record for record in log.paths if failed & set(record.items)]
            if back or acts.of(failed):
                gateway.halt()
                left = paths.roll_back(self.home, log, backup, back)
                acts.take_back(failed)
                gateway.again(changed=True)
            changed = {n for record in back for n in record.items}
            changed |= {n for record in acts.of(failed) for n in record.items}
            for n in pending:
                lost = "rolled-back" if n in changed else "failed"
                log.items[n].outcome = lost if n in failed else "verified"
                log.items[n].reason = wrong[n]
            tell_left(log, left, backup)
            held = any(item.outcome == "verified" for item in log.items)
            if not failed:
                log.finish(journals.DONE)
            elif held or left:
                log.finish(journals.PARTLY, "some fixes did not hold" + _left(left))
            elif changed:
                log.finish(journals.ROLLED_BACK, "the fix did not hold and was taken back")
            else:
                log.finish(journals.ABANDONED, "it was done, but did not help")
            book.save(log)
            self._end(log, book)

    def _give_back(
        self,
        log: Journal,
        book: Journals,
        backup: Backup,
        gateway: Handover,
        acts: acting.Acts,
        error: BaseException,
    ) -> None:
        """Take everything back after a failure, and say how that went."""
        changed = bool(log.paths or acts.begun())
        if changed:
            with contextlib.suppress(CannotFix, CouldNotLook, OSError):
                gateway.halt()
        left = paths.roll_back(self.home, log, backup, log.paths)
        acts.take_back()
        state = journals.PARTLY if left else journals.ROLLED_BACK
        for item in log.items:
            if item.outcome != "left":
                item.outcome = "rolled-back" if changed else "failed"
                item.reason = _why(error)
        tell_left(log, left, backup)
        told = "rolled back" if changed else "not done"
        log.finish(state, f"{told}: {_why(error)}" + _left(left))
        gateway.again(changed=changed)
        with contextlib.suppress(OSError):
            book.save(log)
        self._end(log, book)

    def _end(self, log: Journal, book: Journals) -> None:
        """Remove what lies about, and close; on a full disk the last word may have to wait."""
        with contextlib.suppress(OSError):
            paths.clean(self.home, log)
        if log.gateway != ASKED:  # else the next command has to bring it to its end
            forget(book, log)
            log.close()
        with contextlib.suppress(OSError):
            book.save(log)


def _beforehand(log: Journal, verify: Verify) -> Verify:
    """What verification says now, for when it is asked."""
    pending = [item for item in log.items if item.outcome == "planned"]
    said = dict(zip(map(id, pending), verify(pending), strict=True))
    return lambda records: [said[id(record)] for record in records]


def _gateway_steps(items: Sequence[Item]) -> list[GatewayStep]:
    """What the items that are not left for later want of the gateway."""
    planned = [item for item in items if item.record.outcome == "planned"]
    return [step for item in planned for step in item.steps if isinstance(step, GatewayStep)]


def _one_owner(items: Sequence[Item]) -> None:
    """A run has one gateway, with one owner: whoever wants another waits for the next run."""
    first: Service | None = None
    for item in items:
        for step in item.steps:
            if isinstance(step, GatewayStep):
                first = first or step.service
                if step.service != first:
                    item.record.outcome = "left"
                    item.record.reason = "the gateway gets another owner first"


def _note(items: Sequence[Item]) -> None:
    """Write down what came to light, each thing once: several items may restart one gateway."""
    told = False
    for item in items:
        item.record.notes = []
        for step in item.steps:
            if not (isinstance(step, GatewayStep) and told):
                item.record.notes += step.notes()
            told = told or isinstance(step, GatewayStep)


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
        from_root=one.from_root or two.from_root,
        beside=one.beside + two.beside,
        restored=one.restored or two.restored,
        room=max(one.room, two.room),
    )


def _refused(log: Journal, error: Refused) -> Journal:
    """Nothing was changed: some items cannot be done, the others have to be tried without them."""
    for number, item in enumerate(log.items):
        if number not in error.items:
            item.outcome, item.reason = "left", "tried again without the one that was refused"
        elif error.tried and item.then:
            item.outcome = "not-enough"
            item.reason = f"{error}. It goes on with {item.then}."
        else:
            item.outcome, item.reason = "refused", str(error)
    return log


def tell_left(log: Journal, left: Sequence[str], backup: Backup) -> None:
    """Say of every item with a path that was left that it is taken back only in part."""
    for number, item in enumerate(log.items):
        mine = [one.path for one in log.paths if number in one.items]
        stays = [name for name in mine if name in left]
        if not stays:
            continue
        item.outcome = "failed"
        item.reason = (
            f"{item.reason}; only partly taken back: {', '.join(stays)} is left as it is, because "
            f"somebody changed it since"
        )
        kept = paths.given_back(backup)
        if len(stays) < len(mine) and kept.exists():
            item.reason += f"; what the run had written to its other files is kept in {kept}"


def _left(names: Sequence[str]) -> str:
    if not names:
        return ""
    return f"; left alone because somebody changed it since: {', '.join(names)}"


def _why(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError):
        return os.strerror(error.errno or 0).lower()
    if isinstance(error, Trouble | CannotFix | CouldNotLook):
        return str(error)
    return type(error).__name__


def _explained(error: BaseException, log: Journal) -> BaseException:
    """An error of the disk as one clear line; anything else as it is."""
    if log.gateway == ASKED and log.asked and isinstance(error, CouldNotLook | CannotFix):
        return Trouble(f"{error}. No file was changed; {will_end(log.asked)}.")
    if isinstance(error, OSError):
        name = f" ({Path(error.filename).name})" if isinstance(error.filename, str) else ""
        return Trouble(f"{os.strerror(error.errno or 0)}{name}. Nothing was changed.")
    if isinstance(error, CouldNotLook | CannotFix):
        return Trouble(f"{error}. Nothing was changed.")
    return error
