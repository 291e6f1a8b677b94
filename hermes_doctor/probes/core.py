"""The part of `Probes` that all others build on: files, the machine and processes."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.once import CachedCall, once

if TYPE_CHECKING:
    from hermes_doctor.file_copies import TextCopy
    from hermes_doctor.processes.connection import Connection
    from hermes_doctor.processes.gateway_processes import CommandLines
    from hermes_doctor.processes.oom_kills import Kill
    from hermes_doctor.processes.process_stat import ProcessDetails, Stat
    from hermes_doctor.settings.config_file import ConfigFile
    from hermes_doctor.settings.env_file import EnvFile
    from hermes_doctor.settings.gateway_json import OldSettings
    from hermes_doctor.system.mounts import Mount
    from hermes_doctor.system.space import Space


class CoreProbes:
    """The home's files, and what the kernel reports about processes and sockets."""

    def __init__(
        self,
        home: Home,
        *,
        deep: bool = False,
        network: bool = False,
        alone: bool = True,
        paid_requests: bool = True,
        seconds: float = math.inf,
    ) -> None:
        self.home = home
        self.alone = alone
        """Only this home is examined, so our environment variables apply to it."""
        self.deep = deep
        self.network = network
        self.paid_requests = paid_requests
        """Whether requests that cost money are allowed."""
        self.end = time.monotonic() + seconds
        """The moment from which all calls that have not ended are given up."""
        self.cells: dict[tuple[object, ...], CachedCall] = {}
        self.guard = threading.Lock()
        self.shares: dict[str, Callable[[], float]] = {}

    @once(limit=2)
    def config(self) -> ConfigFile | None:
        """config.yaml, parsed or with the position of the error; None if it is missing."""
        from hermes_doctor.settings import config_file

        return config_file.read(self.home)

    @once(limit=4)
    def config_copies(self) -> list[TextCopy]:
        """Older copies of config.yaml that do parse, newest first."""
        from hermes_doctor.backup import copies as backup_copies

        return backup_copies.config_copies(self.home)

    @once(limit=2)
    def env(self) -> EnvFile | None:
        """.env as bytes with its encoding; None if it is missing."""
        from hermes_doctor.settings import env_file

        return env_file.read(self.home)

    @once(limit=2)
    def old_settings(self) -> OldSettings | None:
        """gateway.json of an older set-up; None if it is missing."""
        from hermes_doctor.settings import gateway_json

        return gateway_json.read(self.home)

    @once(limit=2)
    def kind(self, path: Path) -> str | None:
        """What is at a path instead of a file, e.g. a folder; None for a file or for nothing."""
        from hermes_doctor.probes import databases

        return databases.kind_of(path)

    @once(limit=2)
    def mount(self, path: Path) -> Mount | None:
        """The file system that a path is on."""
        from hermes_doctor.system import mounts

        return mounts.mount_of(path)

    def command(self, pid: int) -> str:
        """The name of a process."""
        from hermes_doctor.probes import stuck_locks

        return stuck_locks.command(pid)

    def close(self) -> None:
        """Close every database; the answers are kept."""
        with self.guard:
            found = [cell.answer for key, cell in self.cells.items() if key[0] == "condition"]
        for condition in found:
            if condition is not None and condition.reader is not None:
                condition.reader.close()

    def progress(self) -> str:
        """The progress of the examinations of large databases."""
        return ", ".join(f"{name} {share():.0%}" for name, share in list(self.shares.items()))

    def process(self, pid: int) -> Stat | None:
        """A few facts from the kernel about a process."""
        from hermes_doctor.processes import process_stat

        return process_stat.stat(pid)

    def exists(self, pid: int) -> bool:
        """Whether a process with this pid exists, even if it is hidden from us."""
        from hermes_doctor.processes import process_stat

        return process_stat.exists(pid)

    @once(limit=2)
    def command_lines(self) -> CommandLines:
        """The command lines of all processes, read once for everything that is searched there."""
        from hermes_doctor.processes import gateway_processes

        return [] if self.home.is_example else gateway_processes.command_lines()

    @once(limit=2)
    def vitals(self, pid: int) -> ProcessDetails:
        """The state of one process, from the kernel."""
        from hermes_doctor.processes import process_stat

        return process_stat.read_vitals(pid)

    @once(limit=2)
    def socket_table(self, pid: int) -> bytes:
        """The kernel's rows of all TCP sockets in the network namespace of a process."""
        from hermes_doctor.processes import sockets

        return sockets.read_table(pid)

    @once(limit=2)
    def connections(self, pid: int) -> list[Connection]:
        """The network connections of a process."""
        from hermes_doctor.processes import sockets

        return sockets.of(pid, self.socket_table)

    @once(limit=2)
    def listeners(self, pid: int) -> list[Connection]:
        """All listening sockets in the network namespace of a process, also those of others."""
        from hermes_doctor.processes import sockets

        return sockets.all_listeners(pid, self.socket_table)

    @once(limit=3)
    def socket_owner(self, inode: int) -> int | None:
        """The process that has a socket open, if we may see it."""
        from hermes_doctor.processes import sockets

        return sockets.process_with_socket(inode)

    @once(limit=3)
    def kill(self, pid: int, started_at: datetime) -> Kill | None:
        """How the kernel killed this process because memory ran out; None if it did not."""
        from hermes_doctor.processes import oom_kills

        return oom_kills.find(pid, started_at)

    @once(limit=2)
    def memory_of_machine(self) -> int:
        """The size of this machine's memory in bytes; 0 if it is unknown."""
        import os

        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError):
            return 0

    @once(limit=2)
    def memory_kills(self) -> int:
        """How many processes of our control group the kernel killed because memory ran out."""
        from hermes_doctor.processes import oom_kills

        return oom_kills.kills_in_own_group()

    def rebooted_since(self, moment: datetime) -> bool:
        """Whether the machine was booted after that moment."""
        from hermes_doctor.processes import process_stat

        try:
            return process_stat.boot_time() > moment.timestamp()
        except CouldNotLook:
            return False

    def end_of(self, path: Path, length: int = 8192) -> str:
        """The last bytes of a file as text; empty if it does not exist."""
        from hermes_doctor.system.files import read_tail

        try:
            return read_tail(path, length)[0].decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def modified(self, path: Path) -> datetime | None:
        """When a file was last written."""
        from hermes_doctor.installation import changes

        return changes.modified_at(path)

    @once(limit=2)
    def space(self) -> Space:
        """The space left for ordinary processes on this home's disk."""
        from hermes_doctor.system import space

        return space.of(self.home.path)

    @once(limit=2)
    def session_names(self) -> list[str]:
        """The sorted names of the session files, and of one more than the limit if there are more.

        Several probes need them: reading the names of 50,000 files takes 50 ms.
        """
        from hermes_doctor.probes.oversized_files import MOST_SESSIONS
        from hermes_doctor.system.files import first_names

        return first_names(self.home / "sessions", MOST_SESSIONS + 1)

    @once(limit=2)
    def sessions(self) -> int:
        """The number of session files besides the database."""
        from hermes_doctor.backup import copies

        return copies.session_file_count(self.home)
