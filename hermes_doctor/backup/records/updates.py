"""Record each update of Hermes in the vault: the state before it, and how far it has come."""

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
from typing import Any

from hermes_doctor.backup.records.typed_documents import to_record
from hermes_doctor.core.home import Home
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.outgoing import masked
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import MEGABYTE, list_folder, read
from hermes_doctor.hermes.installation.details import InstallationDetails, has_changed
from hermes_doctor.hermes.installation.find import Installation

SCHEMA = "hermes-doctor/update/1"
BACKED_UP, UPDATING, UPDATED, CHECKED = "backed-up", "updating", "updated", "checked"
GOING_BACK, BACK = "going-back", "back"
_STAGES = (BACKED_UP, UPDATING, UPDATED, CHECKED, GOING_BACK, BACK)
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_KEPT = 20
_CHAT_LIMIT = timedelta(hours=1)
COMMAND_LIMIT = 1800.0
"""Seconds that an update command may take to end after it has started a gateway."""


@dataclass
class Update:
    """The record of one update of the Hermes that this home uses."""

    id: str
    backup: str | None
    """The backup that was made before it; None if the update was forced without one."""
    vault: str
    """The vault of that backup; empty for the home's own vault."""
    before: InstallationDetails | None
    """The Hermes before the update; None if it was not found."""
    started_at: str
    stage: str = BACKED_UP
    after: InstallationDetails | None = None
    known: list[list[str]] = field(default_factory=list)
    """The findings before the update: code and subject of each."""
    gateway: int | None = None
    """The pid of the gateway that ran before."""
    guard: list[int] = field(default_factory=list)
    """Pid and start time of the process of this tool that supervises the update."""
    child: list[int] = field(default_factory=list)
    """Pid and start time of the update command; it may outlive its guard."""
    exit_code: int | None = None
    down: list[str] = field(default_factory=list)
    """The homes whose gateway a rollback has stopped and not started yet."""
    chat: bool = False
    """Whether it was started from a chat; no process of this tool supervises such an update."""
    beside: dict[str, int] = field(default_factory=dict)
    """The gateways of other homes, mostly profiles, that ran before: pids by home."""
    others: dict[str, str] = field(default_factory=dict)
    """Other installations of Hermes that were found, and their versions."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Amounts of data that an update must not lose: rows, jobs, bytes of settings."""
    doubt: str = ""
    """Why a rollback may not bring back the previous Hermes."""

    @property
    def began(self) -> datetime:
        """When the update began."""
        return datetime.fromisoformat(self.started_at)

    @property
    def open(self) -> bool:
        """Whether the result of the update has not been checked yet."""
        return self.stage in (UPDATING, UPDATED, GOING_BACK)

    @property
    def had_gateway(self) -> bool:
        """Whether any gateway ran before it."""
        return self.gateway is not None or bool(self.beside)

    def restore_command(self, home: Home) -> str:
        """Return the command that restores only the data; empty if there is no backup."""
        if self.backup is None:
            return ""
        import shlex

        words = ["hermes-doctor", "backup", "restore", self.backup, "--home", str(home.path)]
        return shlex.join([*words, *(("--vault", self.vault) if self.vault else ())])

    def is_running(self) -> bool:
        """Whether its guard or the update command is still running."""
        return self.running_process() is not None

    def running_process(self) -> int | None:
        """Return the pid of the guard or of the update command, whichever still runs."""
        alive = [
            one[0] for one in (self.guard, self.child) if one and process_identity(one[0]) == one
        ]
        return next(iter(alive), None)

    def is_cut_off(self, installation: Installation | None) -> bool:
        """Whether it was interrupted before its result was checked.

        The `installation` is the current Hermes. An update from a chat is checked by the gateway
        that it starts, so it gets an hour for that.
        """
        if not self.open or self.is_running():
            return False
        if not self.chat or self.stage != UPDATING:
            return True
        return datetime.now(UTC) - self.began > _CHAT_LIMIT and has_changed(
            installation, self.before
        )


def process_identity(pid: int) -> list[int] | None:
    """Pid and start time, which identify a process; None if it does not exist or is a zombie."""
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
    """Return the current time in the format of the records."""
    return datetime.now(UTC).isoformat()


class UpdateRecords:
    """The records of all updates of one home."""

    def __init__(self, home: Home) -> None:
        self.folder = home.vault / "updates"

    def save(self, update: Update) -> None:
        """Save a record to the disk, and remove the oldest records; called before each step."""
        disk.make_folder(self.folder)
        document = {"schema": SCHEMA, **asdict(update), "doubt": masked(update.doubt)}
        data = json.dumps(document, indent=1).encode() + b"\n"
        disk.save(self.file(update.id), data)
        older = [id for id in self.ids() if id != update.id]
        for id in older[: 1 - _KEPT]:
            disk.remove(self.file(id))

    @contextmanager
    def lock(self) -> Iterator[int]:
        """Hold the lock that allows one update or rollback at a time; yields its descriptor.

        The kernel releases it even when this process is killed. A process that inherits the
        descriptor keeps the lock as long as it runs.
        """
        disk.make_folder(self.folder)
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Trouble(
                    "Another update or rollback of this home is running. Nothing was changed. "
                    "Try again when it has finished."
                ) from None
            yield fd
        finally:
            os.close(fd)

    def wait_for_end(self, update: Update) -> Update:
        """Wait until the update command has ended or COMMAND_LIMIT is over; return the new record.

        The command starts a gateway before it ends, and this is called when that gateway starts.
        """
        until = time.monotonic() + COMMAND_LIMIT
        while update.child and process_identity(update.child[0]) == update.child:
            if time.monotonic() >= until:
                break
            time.sleep(0.2)
        return self.load(update.id)

    def origin(self, update: Update, home: Home) -> Path:
        """Return the file that records how a gateway was started, while the gateway is down."""
        return self.folder / f"{update.id}{f'.{home.profile}' if home.profile else ''}.origin"

    def ids(self) -> list[str]:
        """Return the ids of all updates, oldest first."""
        try:
            names = list_folder(self.folder)
        except CouldNotLook:
            return []
        return sorted(n.removesuffix(".json") for n in names if n.endswith(".json"))

    def load(self, id: str) -> Update:
        """Load the record of one update; Trouble if it is missing or damaged."""
        if not _ID.fullmatch(id):
            raise Trouble("{id!r} is not the id of an update.", id=id)
        try:
            document = json.loads(read(self.file(id), MEGABYTE)[0])
            return _parse(document)
        except FileNotFoundError:
            known = self.ids()
            raise Trouble(
                text(
                    "No update {id!r} is recorded. The newest is {newest}.", id=id, newest=known[-1]
                )
                if known
                else text("No update {id!r} is recorded. No guarded update was made here.", id=id)
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Trouble(
                "The record of update {id} is damaged ({file}).", id=id, file=self.file(id)
            ) from None
        except CouldNotLook as why:
            raise Trouble(
                "Could not read the record of update {id}: {reason}.", id=id, reason=why
            ) from None

    def last(self) -> Update | None:
        """Return the newest record that can be read."""
        for id in reversed(self.ids()):
            try:
                return self.load(id)
            except Trouble:
                continue
        return None

    def newest(self) -> Update | None:
        """Return the newest record; Trouble if it is damaged, instead of using an older one."""
        known = self.ids()
        if not known:
            return None
        try:
            return self.load(known[-1])
        except Trouble as why:
            message = str(why)
            raise Trouble(
                "{given} Name an update: {ids}", given=message, ids=", ".join(known[-4:-1])
            ) from None

    def file(self, id: str) -> Path:
        return self.folder / f"{id}.json"


def _parse(document: dict[str, Any]) -> Update:
    fields = dict(document)
    if fields.pop("schema") != SCHEMA:
        raise ValueError("another schema")
    update = to_record(Update, fields)
    if update.stage not in _STAGES or not _ID.fullmatch(update.id):
        raise ValueError("not written by this tool")
    if update.backup is not None and not _ID.fullmatch(update.backup):
        raise ValueError("a backup's name is a path")
    if datetime.fromisoformat(update.started_at).tzinfo is None:
        raise ValueError("a time without a zone")
    return update
