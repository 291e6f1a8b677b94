"""What was there before an update, and how far it has come: a file each, in the vault."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import UnionType
from typing import Any

from hermes_doctor.home import Home
from hermes_doctor.installation.details import Installed, differs
from hermes_doctor.installation.find import Installation
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.system import disk
from hermes_doctor.system.files import MEGABYTE, listing, read

SCHEMA = "hermes-doctor/update/1"
BACKED_UP, UPDATING, UPDATED, CHECKED = "backed-up", "updating", "updated", "checked"
GOING_BACK, BACK = "going-back", "back"
_STAGES = (BACKED_UP, UPDATING, UPDATED, CHECKED, GOING_BACK, BACK)
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_KEPT = 20
_CHAT_LIMIT = timedelta(hours=1)
COMMAND_LIMIT = 1800.0
"""Seconds that the command of an update may take to its end after it started a gateway."""


@dataclass
class Update:
    """One update of the Hermes that this home is used with."""

    id: str
    backup: str | None
    """The backup that was made before it; None where it was forced without one."""
    vault: str
    """Where that backup lies, if not in the home's own vault."""
    before: Installed | None
    """The Hermes that was there; None where that could not be told."""
    started_at: str
    stage: str = BACKED_UP
    after: Installed | None = None
    known: list[list[str]] = field(default_factory=list)
    """What was wrong before: code and subject of each finding."""
    gateway: int | None = None
    """The gateway that ran before."""
    guard: list[int] = field(default_factory=list)
    """The process that sees the update through, and when that began: to tell it from another."""
    child: list[int] = field(default_factory=list)
    """The command itself, in the same way: it may outlive its guard."""
    exit_code: int | None = None
    down: list[str] = field(default_factory=list)
    """The homes whose gateway a rollback has stopped and not started yet."""
    chat: bool = False
    """Whether it was asked for in a chat: no process of ours sees such an update through."""
    beside: dict[str, int] = field(default_factory=dict)
    """The gateways of other homes that ran before, profiles above all: the home and the process."""
    others: dict[str, str] = field(default_factory=dict)
    """Other installations of Hermes that were seen, and their versions."""
    sizes: dict[str, int] = field(default_factory=dict)
    """How much there was of what an update must not take: rows, jobs, bytes of settings."""
    doubt: str = ""
    """Why the Hermes of before may not come back."""

    @property
    def began(self) -> datetime:
        """When it began."""
        return datetime.fromisoformat(self.started_at)

    @property
    def open(self) -> bool:
        """Whether nobody has looked yet at what became of it."""
        return self.stage in (UPDATING, UPDATED, GOING_BACK)

    @property
    def ran(self) -> bool:
        """Whether any gateway ran before it."""
        return self.gateway is not None or bool(self.beside)

    def restoring(self, home: Home) -> str:
        """The command that brings back the data alone; empty where there is no backup."""
        if self.backup is None:
            return ""
        import shlex

        words = ["hermes-doctor", "backup", "restore", self.backup, "--home", str(home.path)]
        return shlex.join([*words, *(("--vault", self.vault) if self.vault else ())])

    def is_attended(self) -> bool:
        """Whether the process that sees it through, or the command itself, is still there."""
        return self.attendant() is not None

    def attendant(self) -> int | None:
        """That process."""
        alive = [one[0] for one in (self.guard, self.child) if one and process(one[0]) == one]
        return next(iter(alive), None)

    def is_cut_off(self, found: Installation | None) -> bool:
        """Whether it ended before somebody looked; `found` is the Hermes that is there now.

        A chat's update is looked at by the gateway that it starts, which may take its time.
        """
        if not self.open or self.is_attended():
            return False
        if not self.chat or self.stage != UPDATING:
            return True
        return datetime.now(UTC) - self.began > _CHAT_LIMIT and differs(found, self.before)


def process(pid: int) -> list[int] | None:
    """A process by its number and its start, so that a later one with its number is another.

    One that has ended and that nobody has asked for yet is none.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            fields = file.read().rpartition(")")[2].split()
            return [pid, int(fields[19])] if fields[0] not in "ZX" else None
    except (OSError, ValueError, IndexError):
        pass
    if os.path.isdir("/proc/self"):
        return None
    import psutil

    try:
        return [pid, int(psutil.Process(pid).create_time() * 1000)]
    except psutil.Error:
        return None


def now() -> str:
    """The time for a record."""
    return datetime.now(UTC).isoformat()


class Records:
    """The updates of one home."""

    def __init__(self, home: Home) -> None:
        self.folder = home.vault / "updates"

    def save(self, update: Update) -> None:
        """Onto the disk before the next thing happens."""
        disk.make_folder(self.folder)
        document = {"schema": SCHEMA, **asdict(update)}
        data = json.dumps(document, indent=1).encode() + b"\n"
        disk.save(self._file(update.id), data)
        older = [id for id in self.ids() if id != update.id]
        for id in older[: 1 - _KEPT]:
            disk.remove(self._file(id))

    @contextmanager
    def held(self) -> Iterator[int]:
        """One update or rollback at a time; the kernel lets go of it even when we are killed.

        What is given the descriptor holds it, too, for as long as it lives.
        """
        disk.make_folder(self.folder)
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Trouble(
                    "Another update or rollback of this home is under way. Nothing was changed."
                ) from None
            yield fd
        finally:
            os.close(fd)

    def ended(self, update: Update) -> Update:
        """The same when its command has ended, or after a while: a gateway starts before that."""
        until = time.monotonic() + COMMAND_LIMIT
        while update.child and process(update.child[0]) == update.child:
            if time.monotonic() >= until:
                break
            time.sleep(0.2)
        return self.load(update.id)

    def origin(self, update: Update, home: Home) -> Path:
        """Where it is kept how a gateway was started, while that is down."""
        return self.folder / f"{update.id}{f'.{home.profile}' if home.profile else ''}.origin"

    def ids(self) -> list[str]:
        """All updates, oldest first."""
        try:
            names = listing(self.folder)
        except CouldNotLook:
            return []
        return sorted(n.removesuffix(".json") for n in names if n.endswith(".json"))

    def load(self, id: str) -> Update:
        """One update."""
        if not _ID.fullmatch(id):
            raise Trouble(f"{id!r} is not the name of an update.")
        try:
            document = json.loads(read(self._file(id), MEGABYTE)[0])
            return _parse(document)
        except FileNotFoundError:
            known = self.ids()
            newest = f" The newest is {known[-1]}." if known else " None was made with the guard."
            raise Trouble(f"There is no update {id!r}.{newest}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Trouble(f"The record of update {id} is damaged ({self._file(id)}).") from None
        except CouldNotLook as why:
            raise Trouble(f"The record of update {id} cannot be read: {why}.") from None

    def last(self) -> Update | None:
        """The newest one that can be read."""
        for id in reversed(self.ids()):
            try:
                return self.load(id)
            except Trouble:
                continue
        return None

    def newest(self) -> Update | None:
        """The newest one; Trouble where that is damaged: an older one is not what is meant."""
        known = self.ids()
        if not known:
            return None
        try:
            return self.load(known[-1])
        except Trouble as why:
            text = str(why)
            raise Trouble(f"{text} Say which update you mean: {' '.join(known[-4:-1])}") from None

    def _file(self, id: str) -> Path:
        return self.folder / f"{id}.json"


def _parse(document: dict[str, Any]) -> Update:
    fields = dict(document)
    if fields.pop("schema") != SCHEMA:
        raise ValueError("another schema")
    for name in ("before", "after"):
        if fields[name] is not None:
            fields[name] = _installed(Installed(**fields[name]))
    update = Update(**fields)
    if update.stage not in _STAGES or not _ID.fullmatch(update.id):
        raise ValueError("not written by this tool")
    if update.backup is not None and not _ID.fullmatch(update.backup):
        raise ValueError("a backup's name is a path")
    if datetime.fromisoformat(update.started_at).tzinfo is None:
        raise ValueError("a time without a zone")
    _refuse_others(list, update.known, update.guard, update.child, update.down)
    _refuse_others(dict, update.sizes, update.others, update.beside)
    _refuse_others(list, *update.known)
    _refuse_others(
        str,
        update.vault,
        update.doubt,
        *update.down,
        *(word for one in update.known for word in one),
    )
    _refuse_others(int, *update.guard, *update.child, *update.sizes.values())
    _refuse_others(int | None, update.gateway, update.exit_code, *update.beside.values())
    return update


def _installed(one: Installed) -> Installed:
    _refuse_others(str, one.version, one.where, one.kind, one.source, one.python)
    _refuse_others(str, *(word for word in (one.checkout, one.revision, one.branch) if word))
    _refuse_others(str, *one.packages, *one.packages.values())
    return one


def _refuse_others(kind: type | UnionType, *values: object) -> None:
    """Somebody else's words in a record make it a damaged one."""
    for value in values:
        if not isinstance(value, kind):
            raise TypeError(f"{type(value).__name__} is no {kind}")
