"""The part of `Probes` about the machine and the files of the home."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes_doctor.core.model import CouldNotLook, known_or
from hermes_doctor.core.system import mounts
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.core.system.files import first_names, read_tail
from hermes_doctor.diagnosis.probes.scope import View
from hermes_doctor.hermes.processes import gateway_processes, lineage, process_stat, sockets

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from hermes_doctor.core.system.mounts import Mount, Space
    from hermes_doctor.diagnosis.probes.file_permissions import SecretFile
    from hermes_doctor.diagnosis.probes.large_files import Dumps, LogFile, RemovableFile
    from hermes_doctor.hermes.processes.gateway_processes import CommandLines
    from hermes_doctor.hermes.processes.oom_kills import Kill
    from hermes_doctor.hermes.processes.process_stat import ProcessDetails, Stat
    from hermes_doctor.hermes.processes.sockets import Connection


class MachineView(View):
    """What the kernel says about this machine, its processes and their sockets."""

    def command(self, pid: int) -> str:
        """The name of a process."""
        from hermes_doctor.diagnosis.probes import database_users

        return database_users.command(pid)

    def process(self, pid: int) -> Stat | None:
        """A few facts from the kernel about a process."""
        return process_stat.stat(pid)

    def exists(self, pid: int) -> bool:
        """Whether a process with this pid exists, even if it is hidden from us."""
        return process_stat.exists(pid)

    @once(limit=2)
    def command_lines(self) -> CommandLines:
        """The command lines of all processes, read once for everything that is searched there."""
        return [] if self.home.is_example else gateway_processes.command_lines()

    @once(limit=2)
    def vitals(self, pid: int) -> ProcessDetails:
        """The state of one process, from the kernel."""
        return process_stat.read_vitals(pid)

    @once(limit=3)
    def kill(self, pid: int, started_at: datetime) -> Kill | None:
        """How the kernel killed this process because memory ran out; None if it did not."""
        from hermes_doctor.hermes.processes import oom_kills

        return oom_kills.find(pid, started_at)

    def rebooted_since(self, moment: datetime) -> bool:
        """Whether the machine was booted after that moment."""
        return known_or(False, lambda: process_stat.boot_time() > moment.timestamp())

    @once(limit=2)
    def space(self) -> Space:
        """The space left for ordinary processes on this home's disk."""
        return mounts.free_space(self.home.path)

    @once(limit=2, what="memory of machine")
    def memory(self) -> int:
        """The size of this machine's memory in bytes; 0 if it is unknown."""
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError):
            return 0

    @once(limit=2)
    def memory_kills(self) -> int:
        """How many processes of our control group the kernel killed because memory ran out."""
        from hermes_doctor.hermes.processes import oom_kills

        return oom_kills.kills_in_own_group()

    @once(limit=2, what="machine zone")
    def time_zone(self) -> str:
        """The name of the time zone of this machine; empty if it is unknown."""
        return lineage.own_time_zone()

    @once(limit=2)
    def container_zone(self, pid: int) -> str | None:
        """The time zone of the container of a process; empty without one, None if unknown."""
        return lineage.container_time_zone(pid)

    @once(limit=2)
    def container_has(self, pid: int, path: str) -> bool | None:
        """Whether the container of a process has a file; None if we may not look."""
        return lineage.container_has_file(pid, path)

    @once(limit=2)
    def connections(self, pid: int) -> list[Connection]:
        """The network connections of a process."""
        return sockets.connections(pid, self.socket_table)

    @once(limit=2)
    def listeners(self, pid: int) -> list[Connection]:
        """All listening sockets in the network namespace of a process, also those of others."""
        return sockets.all_listeners(pid, self.socket_table)

    @once(limit=2)
    def socket_table(self, pid: int) -> bytes:
        """The kernel's rows of all TCP sockets in the network namespace of a process."""
        return sockets.read_table(pid)

    @once(limit=3)
    def socket_owner(self, inode: int) -> int | None:
        """The process that has a socket open, if we may see it."""
        return sockets.process_with_socket(inode)

    @once(limit=2)
    def mount(self, path: Path) -> Mount | None:
        """The file system that a path is on."""
        return mounts.mount_of(path)


class FilesView(View):
    """The files of the home, besides settings, databases and stores."""

    @once(limit=2)
    def kind(self, path: Path) -> str | None:
        """What is at a path instead of a file, e.g. a folder; None for a file or for nothing."""
        from hermes_doctor.diagnosis.probes import databases

        return databases.kind_of(path)

    def end_of(self, path: Path, length: int = 8192) -> str:
        """The last bytes of a file as text; empty if it does not exist."""
        try:
            return read_tail(path, length)[0].decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def modified(self, path: Path) -> datetime | None:
        """When a file was last written."""
        from hermes_doctor.hermes.installation import last_update

        return last_update.modified_at(path)

    @once(limit=2)
    def session_names(self) -> list[str]:
        """The sorted names of the session files, and of one more than the limit if there are more.

        Several probes need them: reading the names of 50,000 files takes 50 ms.
        """
        from hermes_doctor.diagnosis.probes.large_files import MOST_SESSIONS

        return first_names(self.home / "sessions", MOST_SESSIONS + 1)

    @once(limit=2, what="sessions")
    def session_count(self) -> int:
        """The number of session files besides the database."""
        from hermes_doctor.backup.vault import copies

        return copies.session_file_count(self.home)

    @once(limit=2, what="open to")
    def who_can_enter(self) -> tuple[bool, bool]:
        """Whether all users of the machine and whether the group can enter the home."""
        from hermes_doctor.diagnosis.probes import file_permissions

        try:
            return file_permissions.who_can_enter(self.home.path)
        except OSError as error:
            raise CouldNotLook("could not read the permissions of the home") from error

    @once(limit=2, what="secrets")
    def secret_files(self) -> list[SecretFile]:
        """The files that contain secrets, with who may read them."""
        from hermes_doctor.diagnosis.probes import file_permissions

        return file_permissions.find_secret_files(self.home)

    @once(limit=2, what="tracked")
    def tracked_secrets(self) -> list[str]:
        """Files with secrets that are tracked by a git repository in the home."""
        from hermes_doctor.diagnosis.probes import leaks

        return leaks.find_tracked(self.home)

    @once(limit=2, what="logs")
    def log_files(self) -> list[LogFile]:
        """The log files, largest first."""
        from hermes_doctor.diagnosis.probes import large_files

        return large_files.log_files(self.home)

    @once(limit=2)
    def dumps(self) -> Dumps:
        """The requests that Hermes dumped to files."""
        from hermes_doctor.diagnosis.probes import large_files

        return large_files.dumps(self.home, self.session_names())

    @once(limit=2)
    def removable_files(self) -> list[RemovableFile]:
        """The files that may be deleted when the disk is full, the largest first."""
        from hermes_doctor.diagnosis.probes import large_files

        return large_files.removable_files(self.home, self.log_files())
