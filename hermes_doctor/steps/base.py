"""The steps that a fix can plan: each says beforehand what it will do and can be taken back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from hermes_doctor.model import CannotFix, Trouble
from hermes_doctor.sqlite.files import prove, real, sidecars
from hermes_doctor.system import disk, progress
from hermes_doctor.system.files import Snapshot, snapshot
from hermes_doctor.system.held_files import open_held
from hermes_doctor.system.workers import with_rights_of

if TYPE_CHECKING:
    from hermes_doctor.backup.vault import Vault
    from hermes_doctor.records.journal import Journal

Maker = Callable[[Path], None]
"""Writes the new content to the (not yet existing) path it is given."""

Rebuild = Callable[[Path], Sequence[str] | None]
"""Repairs the copy of a database in place, and may say in sentences what it did and found."""


@dataclass(frozen=True)
class Change:
    """What a step wants of one path. Fields left None stay as they are."""

    path: Path
    expect: Snapshot
    """Compare-and-swap: nothing happens unless the path is still this."""
    make: Maker | None = None
    absent: bool = False
    mode: int | None = None
    owner: tuple[int, int] | None = None
    beside: tuple[tuple[Path, Snapshot], ...] = ()
    """Other paths that must still be what they were, such as a log that must not appear."""
    from_root: bool = False
    """The owner is changed because a file of root's is to be given back."""
    growing: bool = False
    """The gateway writes it until it is stopped, so that it may change until then."""
    restored: bool = False
    """The maker brings mode, owner and times along; they are not taken from the old file."""
    room: int = 0
    """Bytes that the maker needs on the way, if more than what is there now."""


class Step:
    """One act: a `sentence` that says what it is, `texts` that show it, and its `changes`."""

    def sentence(self) -> str:
        """What the step does, for the plan."""
        raise NotImplementedError

    def texts(self) -> tuple[str, bytes, bytes] | None:
        """Label, bytes before and bytes after, when the change can be shown as a diff."""
        return None

    def lines(self) -> Sequence[str]:
        """The change entry by entry instead, in lines that may be shown as they are."""
        return ()

    def changes(self) -> Sequence[Change]:
        """What the step changes, in the order in which it must happen."""
        raise NotImplementedError

    def notes(self) -> Sequence[str]:
        """What is known only once the new content is made, for the receipt."""
        return ()

    def save_first(self, vault: Vault, receipt: Journal) -> None:
        """Save into the vault what must be safe before the gateway is stopped.

        Where that cannot be done it raises CannotFix, and nothing is stopped.
        """

    def prepare(self) -> None:
        """Take hold of what would be gone once the gateway is stopped."""

    def release(self) -> None:
        """Let go of it, whatever became of the run."""


def _other_names(path: Path) -> str:
    """What is to be said of a file with hard links: the others stay what they were."""
    try:
        more = os.stat(path).st_nlink - 1
    except OSError:
        return ""
    return f" ({more} other hard link of it keeps the old content)" if more > 0 else ""


def _writer(data: bytes) -> Maker:
    def make(path: Path) -> None:
        with disk.fresh(path) as fd:
            disk.write(fd, data)

    return make


@dataclass(frozen=True)
class ReplaceFile(Step):
    """Give a file new content. `expect` is the snapshot that the old content was read with."""

    path: Path
    data: bytes
    why: str
    expect: Snapshot
    before: bytes = b""
    entries: tuple[str, ...] = ()
    """What becomes of each thing in it, where that says more than its lines."""

    def lines(self) -> Sequence[str]:
        return self.entries

    def sentence(self) -> str:
        if self.expect.kind == "absent":
            return f"write {self.path.name}, which is not there: {self.why}"
        return f"replace {self.path.name}: {self.why}{_other_names(self.path)}"

    def texts(self) -> tuple[str, bytes, bytes] | None:
        return self.path.name, self.before, self.data

    def changes(self) -> Sequence[Change]:
        return [Change(real(self.path), self.expect, make=_writer(self.data))]


@dataclass(frozen=True)
class ReplaceSpan(Step):
    """Replace the bytes from `start` to `end` of a file and not one byte more."""

    path: Path
    before: bytes
    start: int
    end: int
    new: bytes
    why: str
    expect: Snapshot

    @property
    def after(self) -> bytes:
        """The whole file with the span replaced."""
        return self.before[: self.start] + self.new + self.before[self.end :]

    def sentence(self) -> str:
        line = self.before.count(b"\n", 0, self.start) + 1
        return f"change line {line} of {self.path.name}: {self.why}{_other_names(self.path)}"

    def texts(self) -> tuple[str, bytes, bytes] | None:
        return self.path.name, self.before, self.after

    def changes(self) -> Sequence[Change]:
        return [Change(real(self.path), self.expect, make=_writer(self.after))]


@dataclass(frozen=True)
class ReplaceDatabase(Step):
    """Rebuild a database on a copy and swap it in once the copy is proven sound.

    `rebuild` gets the path of the copy; the write-ahead log of the original lies beside it,
    so that opening the copy shows what Hermes would see. The sidecars of the original go:
    their content is in the new file, and left beside it they would be replayed over it.
    """

    path: Path
    rebuild: Rebuild
    why: str
    expect: Snapshot
    times: int = 1
    """How often the database and its log must fit beside it while `rebuild` works."""
    said: list[str] = field(default_factory=list, compare=False)

    def notes(self) -> Sequence[str]:
        return tuple(self.said)

    def sentence(self) -> str:
        if self.expect.kind == "absent":
            return f"make {self.path.name}, which is gone: {self.why}"
        also = _other_names(self.path)
        return f"rebuild {self.path.name} on a copy and swap it in: {self.why}{also}"

    def changes(self) -> Sequence[Change]:
        path = real(self.path)
        beside = [(p, snapshot(p)) for p in sidecars(path)]
        gone = [Change(p, taken, absent=True) for p, taken in beside if taken.kind != "absent"]
        never = tuple((p, taken) for p, taken in beside if taken.kind == "absent")
        room = self.times * (self.expect.size + sum(taken.size for _, taken in beside))
        return [*gone, Change(path, self.expect, make=self._make, beside=never, room=room)]

    def _make(self, target: Path) -> None:
        source = real(self.path)
        progress.tell(f"copying {self.path.name}")
        try:
            with disk.fresh(target) as fd:
                if self.expect.kind != "absent":
                    disk.copy(source, fd)
            for suffix in ("-wal", "-journal"):  # SQLite replays the one and rolls back the other
                log = source.with_name(source.name + suffix)
                if snapshot(log).kind == "file":
                    with disk.fresh(target.with_name(target.name + suffix)) as fd:
                        disk.copy(log, fd)
            self.said[:] = json.loads(with_rights_of(target, self._rebuilt))
        except BaseException:
            disk.remove(target)
            raise
        finally:
            for leftover in sidecars(target):
                disk.remove(leftover)

    def _rebuilt(self, target: Path) -> str:
        try:
            said = self.rebuild(target)
            prove(target)
        except CannotFix as why:
            if any(name in str(why) for name in _NO_ROOM):  # says nothing of the database
                raise Trouble(
                    f"There is no space left to rebuild {self.path.name} in. Nothing was changed. "
                    f"Make room, then try again."
                ) from why
            raise
        return json.dumps(list(said or ()))


_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR")


@dataclass(frozen=True)
class MoveAside(Step):
    """Take a file out of Hermes' sight; it lies in the vault afterwards."""

    path: Path
    why: str

    def sentence(self) -> str:
        return f"move {self.path.name} aside into the vault: {self.why}"

    def changes(self) -> Sequence[Change]:
        taken = snapshot(self.path)
        if taken.kind not in ("file", "symlink"):
            raise CannotFix(f"{self.path.name} is not a file ({taken.kind})")
        return [Change(self.path, taken, absent=True)]


@dataclass(frozen=True)
class MoveLog(MoveAside):
    """Take a log out of the way that the gateway may still be writing."""

    def changes(self) -> Sequence[Change]:
        return [replace(change, growing=True) for change in super().changes()]


@dataclass(frozen=True)
class SaveLost(Step):
    """Keep a database that has no name any more and lives only as long as a process has it open.

    It is held by descriptors of our own and copied when the process has ended. SQLite does not
    bring the log into a database that has lost its name, so the log is kept beside it.
    """

    path: Path
    """Where it lay."""
    pid: int
    fds: tuple[tuple[str, str], ...]
    """The descriptors of the process, each with what follows the name: "" and "-wal"."""
    why: str
    held: dict[str, int] = field(default_factory=dict, compare=False)

    def sentence(self) -> str:
        return f"keep the {self.path.name} that process {self.pid} works on: {self.why}"

    def prepare(self) -> None:
        for suffix, fd in self.fds:
            try:
                self.held[suffix] = open_held(self.pid, fd, self.path)
            except OSError:
                raise CannotFix(self._gone()) from None

    def release(self) -> None:
        while self.held:
            os.close(self.held.popitem()[1])

    def changes(self) -> Sequence[Change]:
        suffix, fd = self.fds[0]
        try:
            number = os.stat(self.held.get(suffix) or self._way(fd)).st_ino
        except OSError:
            raise CannotFix(self._gone()) from None
        base = self.path.with_name(f"{self.path.name}.lost-{number}")
        targets = {suffix: base.with_name(base.name + suffix) for suffix, _ in self.fds}
        return [
            Change(target, snapshot(target), make=partial(self._make, suffix))
            for suffix, target in targets.items()
        ]

    def _make(self, suffix: str, target: Path) -> None:
        with disk.fresh(target) as fd:
            offset = 0
            while chunk := os.pread(self.held[suffix], disk.CHUNK, offset):
                disk.write(fd, chunk)
                offset += len(chunk)

    def _way(self, fd: str) -> str:
        return f"/proc/{self.pid}/fd/{fd}"

    def _gone(self) -> str:
        return f"the {self.path.name} of process {self.pid} is gone"


@dataclass(frozen=True)
class Remove(MoveAside):
    """Remove a file that Hermes makes anew; a copy stays in the vault all the same."""

    def sentence(self) -> str:
        return f"remove {self.path.name}, which Hermes makes anew: {self.why}"


@dataclass(frozen=True)
class SetMode(Step):
    """Set the permissions of a file."""

    path: Path
    mode: int
    why: str
    expect: Snapshot

    def sentence(self) -> str:
        return f"chmod {self.mode:04o} {self.path.name} (now {self.expect.mode:04o}): {self.why}"

    def changes(self) -> Sequence[Change]:
        return [Change(real(self.path), self.expect, mode=self.mode)]


@dataclass(frozen=True)
class SetOwner(Step):
    """Give a file to another owner."""

    path: Path
    uid: int
    gid: int
    why: str
    expect: Snapshot

    def sentence(self) -> str:
        return f"chown {self.uid}:{self.gid} {self.path.name}: {self.why}"

    def changes(self) -> Sequence[Change]:
        owner = (self.uid, self.gid)
        return [Change(real(self.path), self.expect, owner=owner, from_root=True)]


class Service(Protocol):
    """Whatever owns the gateway of a home: a systemd unit, launchd, s6, compose, or nobody.

    The contract: `stop` returns only when the process is gone and `start` only when a new one
    has stayed up and works on this very home; both raise `CannotFix` within `limit` seconds
    otherwise. Neither ever acts by process name or on another home's process.
    """

    def describe(self) -> str:
        """What owns the gateway, for the plan."""

    def running(self) -> int | None:
        """The gateway's process, or None."""

    def stop(self, limit: float) -> None:
        """Drain and end the gateway."""

    def start(self, limit: float) -> None:
        """Bring a gateway up and see that it stays."""

    def restless(self) -> bool:
        """Whether its owner will start a gateway by itself although none runs now."""

    def settled(self, limit: float) -> int | None:
        """Wait for the end of a process that was asked to stop; the one that runs then."""

    def asked(self) -> int | None:
        """The process that `stop` has asked to end, whether it has or not."""

    def remember(self, file: Path) -> None:
        """Keep in a private file what a later command needs to start it as it was."""

    def notes(self) -> Sequence[str]:
        """What came to light on the way, for the receipt."""


@dataclass(frozen=True)
class GatewayStep(Step):
    """Bring the gateway up, or have it down while the files change and up again afterwards."""

    service: Service
    restart: bool
    why: str
    expected: bool = False
    """It was running when the fault occurred, or its service wants it to run: a start that only
    brings it back needs no question."""

    def sentence(self) -> str:
        verb = "restart" if self.restart else "start"
        return f"{verb} the gateway through {self.service.describe()}: {self.why}"

    def changes(self) -> Sequence[Change]:
        return []

    def notes(self) -> Sequence[str]:
        return self.service.notes()


class Act(Step):
    """Something that is asked of the machine and changes no file of the plan.

    It is done when the files are in place and before the gateway starts. Done twice it equals
    done once. The receipt keeps its `kind` and `words`, from which `undo` makes it again.
    """

    kind: ClassVar[str] = ""
    lasting: ClassVar[bool] = False
    """Whether it leaves something that can be taken back."""

    def words(self) -> dict[str, str]:
        """What the receipt keeps of it; no secret, and nothing that the home's owner may forge."""
        return {}

    def refuse(self) -> None:
        """Raise CannotFix where it cannot be done, before anything is changed."""

    def do(self) -> None:
        """Do it; raises CannotFix."""
        raise NotImplementedError

    def take_back(self) -> None:
        """Take it back, as far as that can be done."""

    def changes(self) -> Sequence[Change]:
        return []
