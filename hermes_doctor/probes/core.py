"""The part of `Probes` that every other part builds on: files, machine and processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.once import Cell, once

if TYPE_CHECKING:
    from hermes_doctor.model import TextCopy
    from hermes_doctor.processes.connection import Connection
    from hermes_doctor.processes.oom_kills import Kill
    from hermes_doctor.processes.process_stat import Stat, Vitals
    from hermes_doctor.settings.config_file import ConfigFile
    from hermes_doctor.settings.env_file import EnvFile
    from hermes_doctor.settings.gateway_json import OldSettings
    from hermes_doctor.system.mounts import Mount
    from hermes_doctor.system.space import Space


class CoreProbes:
    """Files of the home, and what the machine says of processes and sockets."""

    def __init__(
        self,
        home: Home,
        *,
        deep: bool = False,
        network: bool = False,
        alone: bool = True,
        spends: bool = True,
    ) -> None:
        self.home = home
        self.alone = alone
        """No other home is looked at beside it, so that what our environment says is meant here."""
        self.deep = deep
        self.network = network
        self.spends = spends
        """Whether a question may be asked that somebody has to pay for."""
        self.cells: dict[tuple[object, ...], Cell] = {}
        self.guard = threading.Lock()
        self.shares: dict[str, Callable[[], float]] = {}

    @once(limit=2)
    def config(self) -> ConfigFile | None:
        """config.yaml, parsed or with the place where it fails; None when there is none."""
        from hermes_doctor.settings import config_file

        return config_file.read(self.home)

    @once(limit=4)
    def config_copies(self) -> list[TextCopy]:
        """Older copies of config.yaml that do parse, newest first."""
        from hermes_doctor.backup import copies as backup_copies

        return backup_copies.config_copies(self.home)

    @once(limit=2)
    def env(self) -> EnvFile | None:
        """.env as bytes and how they are encoded; None when there is none."""
        from hermes_doctor.settings import env_file

        return env_file.read(self.home)

    @once(limit=2)
    def old_settings(self) -> OldSettings | None:
        """gateway.json of an older set-up; None when there is none."""
        from hermes_doctor.settings import gateway_json

        return gateway_json.read(self.home)

    @once(limit=2)
    def kind(self, path: Path) -> str | None:
        """What lies in the place of a file and is none; None for a file, or where none is."""
        from hermes_doctor.probes import databases

        return databases.kind_of(path)

    @once(limit=2)
    def mount(self, path: Path) -> Mount | None:
        """The file system that a path lies on."""
        from hermes_doctor.system import mounts

        return mounts.mount_of(path)

    def command(self, pid: int) -> str:
        """The name of a process."""
        from hermes_doctor.probes import stuck_locks

        return stuck_locks.command(pid)

    def close(self) -> None:
        """Let go of every database; what was learnt stays known."""
        with self.guard:
            found = [cell.answer for key, cell in self.cells.items() if key[0] == "condition"]
        for condition in found:
            if condition is not None and condition.reader is not None:
                condition.reader.close()

    def progress(self) -> str:
        """How far the looks at large databases have come."""
        return ", ".join(f"{name} {share():.0%}" for name, share in list(self.shares.items()))

    def process(self, pid: int) -> Stat | None:
        """What the kernel says of any process, in short."""
        from hermes_doctor.processes import process_stat

        return process_stat.stat(pid)

    def exists(self, pid: int) -> bool:
        """Whether there is a process of that number, also one that is hidden from us."""
        from hermes_doctor.processes import process_stat

        return process_stat.exists(pid)

    @once(limit=2)
    def vitals(self, pid: int) -> Vitals:
        """One process as the kernel sees it."""
        from hermes_doctor.processes import process_stat

        return process_stat.take(pid)

    @once(limit=2)
    def connections(self, pid: int) -> list[Connection]:
        """The network connections of a process."""
        from hermes_doctor.processes import sockets

        return sockets.of(pid)

    @once(limit=2)
    def listeners(self, pid: int) -> list[Connection]:
        """Whatever listens in the network that a process lives in, whoever's it is."""
        from hermes_doctor.processes import sockets

        return sockets.listeners(pid)

    @once(limit=3)
    def socket_owner(self, inode: int) -> int | None:
        """The process that has a socket open, as far as we may see."""
        from hermes_doctor.processes import sockets

        return sockets.owner(inode)

    @once(limit=3)
    def kill(self, pid: int, began: datetime) -> Kill | None:
        """Whether the kernel killed this process for want of memory."""
        from hermes_doctor.processes import oom_kills

        return oom_kills.find(pid, began)

    @once(limit=2)
    def memory_kills(self) -> int:
        """How many processes of our own control group the kernel killed so."""
        from hermes_doctor.processes import oom_kills

        return oom_kills.here()

    def rebooted_since(self, moment: datetime) -> bool:
        """Whether the machine was started after that moment."""
        from hermes_doctor.processes import process_stat

        try:
            return process_stat.boot_time() > moment.timestamp()
        except CouldNotLook:
            return False

    def modified(self, path: Path) -> datetime | None:
        """When a file was last written."""
        from hermes_doctor.installation import changes

        return changes.modified(path)

    @once(limit=2)
    def space(self) -> Space:
        """What is left on the disk of this home for ordinary processes."""
        from hermes_doctor.system import space

        return space.of(self.home.path)

    @once(limit=2)
    def sessions(self) -> int:
        """How many files of sessions there are beside the database."""
        from hermes_doctor.backup import copies

        return copies.sessions(self.home)
