"""What was there before an update, and how far it has come: a file each, in the vault."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_doctor import durable
from hermes_doctor.files import MEGABYTE, listing, read
from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.updating.hermes import Installed

SCHEMA = "hermes-doctor/update/1"
BACKED_UP, UPDATING, UPDATED, CHECKED = "backed-up", "updating", "updated", "checked"
GOING_BACK, BACK = "going-back", "back"
_STAGES = (BACKED_UP, UPDATING, UPDATED, CHECKED, GOING_BACK, BACK)
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_KEPT = 20


@dataclass
class Update:
    """One update of the Hermes that this home is used with."""

    id: str
    backup: str | None
    """The backup that was made before it; None where it was forced without one."""
    vault: str
    """Where that backup lies, if not in the home's own vault."""
    before: Installed | None
    started_at: str
    stage: str = BACKED_UP
    after: Installed | None = None
    known: list[list[str]] = field(default_factory=list)
    """What was wrong before: code and subject of each finding."""
    gateway: int | None = None
    """The gateway that ran before."""
    guard: list[int] = field(default_factory=list)
    """The process that sees the update through, and when that began: to tell it from another."""
    exit_code: int | None = None

    @property
    def began(self) -> datetime:
        """When it began."""
        return datetime.fromisoformat(self.started_at)

    @property
    def open(self) -> bool:
        """Whether nobody has looked yet at what became of it."""
        return self.stage in (UPDATING, UPDATED, GOING_BACK)

    def is_attended(self) -> bool:
        """Whether the process that sees it through is still there."""
        return bool(self.guard) and process(self.guard[0]) == self.guard


def process(pid: int) -> list[int] | None:
    """A process by its number and its start, so that a later one with its number is another."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return [pid, int(file.read().rpartition(")")[2].split()[19])]
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
        durable.make_folder(self.folder)
        document = {"schema": SCHEMA, **asdict(update)}
        data = json.dumps(document, indent=1).encode() + b"\n"
        durable.save(self._file(update.id), data)
        for id in self.ids()[:-_KEPT]:
            durable.remove(self._file(id))

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
        except (ValueError, KeyError, TypeError, RecursionError):
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

    def _file(self, id: str) -> Path:
        return self.folder / f"{id}.json"


def _parse(document: dict[str, Any]) -> Update:
    fields = dict(document)
    if fields.pop("schema") != SCHEMA:
        raise ValueError("another schema")
    for name in ("before", "after"):
        if fields[name] is not None:
            fields[name] = Installed(**fields[name])
    update = Update(**fields)
    if update.stage not in _STAGES or not _ID.fullmatch(update.id):
        raise ValueError("not written by this tool")
    if update.backup is not None and not _ID.fullmatch(update.backup):
        raise ValueError("a backup's name is a path")
    datetime.fromisoformat(update.started_at)
    return update
