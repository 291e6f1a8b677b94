"""Install a job as a systemd unit of the user or of the system, with minimal privileges.

A user's systemd needs a user namespace for most sandbox options, and from inside one the gateway's
/proc cannot be read. So user units have only the limits that need no namespace; system units have
all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.core.home import SERVICE_VARIABLE, config_environment
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.preferences import places
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.accounts import account
from hermes_doctor.core.system.files import user_home
from hermes_doctor.hermes.supervisors.systemd import lingers
from hermes_doctor.repair.gateway.service_managers import SystemdManager as Systemctl
from hermes_doctor.repair.schedule.jobs import Job, JobStatus

_UNIT = """\
# Made by `hermes-doctor watch install`; remove it with `hermes-doctor watch remove`.
[Unit]
Description=hermes-doctor watches {home} all the time
StartLimitIntervalSec=0
{order}
[Service]
ExecStart={command}
Environment={service}=1
{environment}WorkingDirectory=/
Restart=always
RestartSec=10
# A running repair is finished or rolled back before the watch stops.
KillMode=mixed
TimeoutStopSec=330
SyslogIdentifier=hermes-doctor
Nice=5
UMask=0077
TasksMax=256
{limits}
[Install]
WantedBy={target}
"""
LIMITS = """\
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
"""
SANDBOX = """\
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
"""


class Systemd:
    """A unit of the user's or the system's systemd."""

    schedules = False

    def __init__(self, *, system: bool) -> None:
        self.system = system
        self.manager = Systemctl(None if system else account(os.geteuid()))
        if system and not os.path.isdir("/run/systemd/system"):
            raise CannotFix("systemd is not running on this machine. Add --cron to use cron.")
        self.manager.refuse()

    def describe(self) -> str:
        return f"a systemd {'system' if self.system else 'user'} service"

    def _file(self, job: Job) -> Path:
        if self.system:
            return Path("/etc/systemd/system") / self._name(job)
        base = os.environ.get("XDG_CONFIG_HOME", "")
        config = Path(base) if os.path.isabs(base) else user_home() / ".config"
        return config / "systemd" / "user" / self._name(job)

    @staticmethod
    def _name(job: Job) -> str:
        return f"{job.name}.service"

    def place(self, job: Job) -> str:
        return str(self._file(job))

    def text(self, job: Job) -> str:
        limits = LIMITS
        order = ""
        if self.system:
            limits += f"{SANDBOX}StateDirectory={job.name}\nStateDirectoryMode=0700\n"
            mutes = [] if job.user else [places.SYSTEM]  # it removes those that have ended
            if writes := [*job.writes, *mutes]:
                paths = " ".join(quote(f"-{path}") for path in writes)
                limits += f"ReadWritePaths={paths}\n"
            if job.user:
                limits = f"User={job.user}\n{limits}CapabilityBoundingSet=\n"
            order = "After=network.target\n"
        state = os.environ.get("XDG_STATE_HOME", "")
        known = {"XDG_STATE_HOME": str(job.folder.parent)} if state or self.system else {}
        known |= {} if job.user else config_environment()
        keeps = "".join(
            f"Environment={quote(f'{name}={value}')}\n" for name, value in known.items()
        )
        return _UNIT.format(
            home=str(job.home.path).replace("%", "%%"),
            order=order,
            command=" ".join(quote(word, command=True) for word in job.command),
            service=SERVICE_VARIABLE,
            environment=keeps,
            limits=limits,
            target="multi-user.target" if self.system else "default.target",
        )

    def install(self, job: Job) -> bool:
        file, name, text = self._file(job), self._name(job), self.text(job).encode()
        same = file.is_file() and file.read_bytes() == text
        if same and self.status(job).running and self.manager.run("is-enabled", name).code == 0:
            return False
        if not same:
            disk.make_folder(file.parent)
            disk.save(file, text, 0o644)
        self.manager.run_checked("daemon-reload")
        self.manager.run_checked("enable", name)
        self.manager.run_checked("restart", name)
        return True

    def remove(self, job: Job) -> bool:
        file, name = self._file(job), self._name(job)
        there = os.path.lexists(file)
        if there:
            self.manager.run_checked("disable", "--now", name, limit=360.0)
            disk.remove(file)
            self.manager.run_checked("daemon-reload")
        self.manager.run("reset-failed", name)
        return there

    def status(self, job: Job) -> JobStatus:
        name = self._name(job)
        state = self.manager.property_of(name, "ActiveState")
        return JobStatus(
            installed=os.path.lexists(self._file(job)),
            running=state == "active",
            since=self.manager.property_of(name, "ActiveEnterTimestamp")
            if state == "active"
            else "",
            what=f"{name} is {state or 'unknown'}",
        )

    def hints(self, job: Job) -> Sequence[str]:
        words = "journalctl -u" if self.system else "journalctl --user -u"
        found = [f"Show its log: {words} {self._name(job)} -f"]
        user = self.manager.user
        if user is not None and user.name and user.uid and lingers(user.name) is False:
            found.append(
                f"It stops when you log out. To keep it running: loginctl enable-linger {user.name}"
            )
        return found


def quote(word: str, *, command: bool = False) -> str:
    """Quote a word for a unit file; `$` is escaped only in commands, where it means a variable.

    Only for lines that systemd splits into words: elsewhere a \\ at the end would join the next
    line.
    """
    if any(ord(sign) < 32 for sign in word):
        raise CannotFix(
            "A path contains characters that a systemd unit must not contain. Rename that folder."
        )
    for sign, written in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%")):
        word = word.replace(sign, written)
    word = word.replace("$", "$$") if command else word
    plain = all(sign.isalnum() or sign in "/._-=:@%," for sign in word)
    return word if plain and word else f'"{word}"'
