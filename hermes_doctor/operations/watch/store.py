"""Stores the state of a watch in files outside of the Hermes home."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import Home, identity, state_folder
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.outgoing import masked
from hermes_doctor.core.system import disk, open_files
from hermes_doctor.core.system.files import MEGABYTE, read
from hermes_doctor.core.system.privileges import as_owner_of
from hermes_doctor.operations.watch import state as memories
from hermes_doctor.operations.watch.state import WatchState, open_lock_file

SCHEMA = "hermes-doctor/watch/1"
_NONE = (OSError, CouldNotLook, Trouble, ValueError, OverflowError, RecursionError)
_OTHER = (KeyError, TypeError, AttributeError)


class WatchStateFiles:
    """The state files of one home's watch."""

    def __init__(self, home: Home, folder: Path | None = None) -> None:
        self.folder = folder or state_folder()
        self.file = self.folder / f"watch-{identity(home)}.json"
        self.lock = self.folder / f"watch-{identity(home)}.lock"
        self.webhook = self.folder / f"watch-{identity(home)}.webhook"
        self.command = self.folder / f"watch-{identity(home)}.command"
        self.heartbeat = self.folder / f"watch-{identity(home)}.heartbeat"
        self.heartbeat_fail = self.folder / f"watch-{identity(home)}.heartbeat-fail"
        self.secrets = (self.webhook, self.command, self.heartbeat, self.heartbeat_fail)
        """Files with the values of options that may be secret."""
        self.home = home
        self._saved = b""
        self._fd: int | None = None

    @property
    def lock_descriptor(self) -> int | None:
        """The descriptor that holds the lock for healing; None if we do not have it."""
        return self._fd

    def load(self, boot: str) -> WatchState | None:
        """Load the state; None if there is none. Times of another boot are dropped."""
        try:
            said: Any = json.loads(self.read(self.file))
            known = memories.parse(said)
        except (*_NONE, *_OTHER):
            return None
        if said.get("schema") != SCHEMA or said.get("home") != str(self.home.path):
            return None
        if known.boot != boot:
            known.forget_times()
        return known

    @staticmethod
    def read(path: Path) -> bytes:
        """Read a file of this folder with the privileges of the folder's owner."""
        with as_owner_of(path) as here:
            return read(here, MEGABYTE)[0]

    def save(self, memory: WatchState) -> None:
        """Write the state if it changed; else only update the time of the file."""
        if self.others():
            return
        data = masked(memories.document(memory)) | {"schema": SCHEMA, "home": str(self.home.path)}
        if not memory.heals:
            data |= self._healer(memory.boot)
        plain = json.dumps(data | dict.fromkeys(memories.VOLATILE_FIELDS)).encode()
        if plain == self._saved and os.path.exists(self.file):
            disk.set_time(self.file, time.time_ns())
            return
        disk.make_folder(self.folder)
        disk.save(self.file, json.dumps(data).encode())
        self._saved = plain

    def _healer(self, boot: str) -> dict[str, Any]:
        """The fields of a watch that heals, which a watch that only examines leaves as they are."""
        try:
            told = json.loads(self.read(self.file))
        except _NONE:
            return {}
        if not isinstance(told, dict) or told.get("boot") != boot:
            return {}
        return {name: told[name] for name in memories.HEALING_FIELDS if name in told}

    def remove(self) -> list[Path]:
        """Delete all files of this home's watch; return what there was."""
        ours = (self.file, self.lock, *self.secrets)
        there = [path for path in ours if os.path.lexists(path)]
        for path in there:
            disk.remove(path)
        with contextlib.suppress(OSError):
            disk.remove_folder(self.folder)
        return there

    def take(self) -> bool:
        """Take the lock for healing until this process ends; False if another watch has it."""
        if self._fd is not None:
            return True
        disk.make_folder(self.folder)
        fd = open_lock_file(self.lock, create=True)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def others(self) -> bool:
        """Whether another process heals this home; then the stored state is its own."""
        if self._fd is not None:
            return False
        try:
            fd = open_lock_file(self.lock, create=False)
        except (OSError, Trouble):
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def holder(self) -> int | None:
        """The process that heals this home; 0 if it cannot be identified."""
        pids = open_files.lock_holders([self.lock]).get(self.lock, [])
        return next(iter(pids), None)
