"""Install a job as a systemd unit, as a launchd agent or daemon, or as a line of the crontab.

Units of systemd have minimal privileges.
A user's systemd needs a user namespace for most sandbox options, and from inside one the gateway's
/proc cannot be read. So user units have only the limits that need no namespace; system units have
all.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.core.home import SERVICE_VARIABLE, config_environment
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.preferences import places
from hermes_doctor.core.system import crontab, disk
from hermes_doctor.core.system.accounts import account
from hermes_doctor.core.system.files import user_home
from hermes_doctor.hermes.supervisors.systemd import lingers
from hermes_doctor.repair.gateway.manager_commands import run_checked, run_command
from hermes_doctor.repair.gateway.service_managers import SystemdManager as Systemctl
from hermes_doctor.repair.schedule.jobs import Job, JobStatus, format_duration

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


class Launchd:
    """A property list for a job that launchd keeps running."""

    schedules = False

    def __init__(self, *, system: bool) -> None:
        self.system = system
        self.domain = "system" if system else f"gui/{os.getuid()}"

    def describe(self) -> str:
        return f"a launchd {'daemon' if self.system else 'agent'}"

    def _file(self, job: Job) -> Path:
        folder = (
            Path("/Library/LaunchDaemons")
            if self.system
            else user_home() / "Library" / "LaunchAgents"
        )
        return folder / f"{job.name}.plist"

    def place(self, job: Job) -> str:
        return str(self._file(job))

    def text(self, job: Job) -> str:
        import plistlib

        said = str(job.folder / f"{job.name}.log")
        wanted: dict[str, object] = {
            "Label": job.name,
            "ProgramArguments": job.command,
            "RunAtLoad": True,
            "KeepAlive": True,
            "ThrottleInterval": 10,
            "ProcessType": "Background",
            "Umask": 0o077,
            "WorkingDirectory": "/",
            "StandardOutPath": said,
            "StandardErrorPath": said,
            "EnvironmentVariables": {
                "XDG_STATE_HOME": str(job.folder.parent),
                **({} if job.user else config_environment()),
            },
        }
        if job.user:
            wanted["UserName"] = job.user
        return plistlib.dumps(wanted).decode()

    def install(self, job: Job) -> bool:
        file, text = self._file(job), self.text(job).encode()
        same = file.is_file() and file.read_bytes() == text
        if same and self.status(job).running:
            return False
        disk.make_folder(job.folder)
        if not same:
            disk.make_folder(file.parent)
            disk.save(file, text, 0o644)
        if run_command(["launchctl", "print", f"{self.domain}/{job.name}"]).code == 0:
            run_checked(["launchctl", "bootout", f"{self.domain}/{job.name}"])
        run_checked(["launchctl", "bootstrap", self.domain, str(file)])
        return True

    def remove(self, job: Job) -> bool:
        file = self._file(job)
        there = os.path.lexists(file)
        if run_command(["launchctl", "print", f"{self.domain}/{job.name}"]).code == 0:
            run_checked(["launchctl", "bootout", f"{self.domain}/{job.name}"])
        disk.remove(file)
        disk.remove(job.folder / f"{job.name}.log")
        return there

    def status(self, job: Job) -> JobStatus:
        loaded = run_command(["launchctl", "print", f"{self.domain}/{job.name}"]).code == 0
        word = "loaded" if loaded else "not loaded"
        return JobStatus(os.path.lexists(self._file(job)), loaded, what=f"{job.name} is {word}")

    def hints(self, job: Job) -> Sequence[str]:
        return [f"Show its log: tail -f {job.folder / f'{job.name}.log'}"]


MIN_INTERVAL = 300.0
"""Shortest time between two rounds in seconds: each starts a new Python process."""
MIN_HEALING = 60.0
"""The same for a watch that heals: while a gateway is down, nobody gets an answer."""
_NOTHING = "systemd, launchd and cron are all missing on this machine"
_STEPS = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440)
"""Minutes that divide an hour or a day, because cron counts from the start of each."""


class Cron:
    """A crontab line, where there is no service manager; it is found by the comment at its end.

    Cron does not restart a process that has ended, so it starts single rounds; each reads the
    stored state of the previous one.
    """

    schedules = True

    def describe(self) -> str:
        return "a line of your crontab"

    def place(self, job: Job) -> str:
        return f"the line of your crontab that ends with # {job.name}"

    def text(self, job: Job) -> str:
        minutes = _minutes(job)
        words = [*job.command]
        if "--interval" in words:  # cron may not be able to keep it
            at = words.index("--interval")
            del words[at : at + 2]
        words += ["--once", "--interval", f"{minutes}m"]
        state = f"XDG_STATE_HOME={job.folder.parent}"
        config = [f"{name}={value}" for name, value in config_environment().items()]
        return f"{_schedule(minutes)} {in_line(['env', state, *config, *words])}  # {job.name}\n"

    def install(self, job: Job) -> bool:
        lines = _lines()
        if lines is None:
            raise CannotFix(
                "{reason}, so it cannot be installed. Start it from your own scheduler.",
                reason=_NOTHING,
            )
        wanted = [*(line for line in lines if not _ours(line, job)), self.text(job)]
        if wanted == lines:
            return False
        crontab.write_lines(wanted)
        return True

    def remove(self, job: Job) -> bool:
        lines = _lines() or []
        kept = [line for line in lines if not _ours(line, job)]
        if kept == lines:
            return False
        crontab.write_lines(kept)
        return True

    def status(self, job: Job) -> JobStatus:
        lines = _lines()
        there = any(_ours(line, job) for line in lines or ())
        what = "scheduled in the crontab" if there else "not in the crontab"
        what = _NOTHING if lines is None else what
        return JobStatus(there, there, what=what)

    def hints(self, job: Job) -> Sequence[str]:
        every = format_duration(_minutes(job) * 60)
        found = [
            f"Cron runs a check every {every} and mails what changed: crontab -l | grep {job.name}"
        ]
        if job.interval != _minutes(job) * 60:
            least = format_duration(shortest(heal=job.heal))
            found.append(
                f"Cron cannot run every {format_duration(job.interval)}, so it runs every {every}: "
                f"at least {least}, and a part of an hour or a day."
            )
        return found


def in_line(words: Sequence[str]) -> str:
    """A command as a crontab line contains it."""
    command = shlex.join(words).replace("%", r"\%")
    if "\n" in command:
        raise CannotFix(
            "A path contains characters that a crontab line must not contain. Rename that folder."
        )
    return command


def shortest(*, heal: bool) -> float:
    return MIN_HEALING if heal else MIN_INTERVAL


def _minutes(job: Job) -> int:
    """The allowed step that is nearest to the interval."""
    wanted = max(job.interval, shortest(heal=job.heal)) / 60
    return min(_STEPS, key=lambda step: (abs(step - wanted), step))


def _schedule(minutes: int) -> str:
    if minutes == 1:
        return "* * * * *"
    if minutes < 60:
        return f"*/{minutes} * * * *"
    hours = minutes // 60
    return f"0 {'*' if hours == 1 else 0 if hours == 24 else f'*/{hours}'} * * *"


def lines_of(job: Job) -> list[str]:
    """The crontab lines of a job: one, if it is installed."""
    return [line for line in _lines() or () if _ours(line, job)]


def remove_line(line: str) -> None:
    crontab.write_lines([one for one in _lines() or () if one != line])


def _ours(line: str, job: Job) -> bool:
    return line.rstrip("\n").endswith(f"# {job.name}")


def _lines() -> list[str] | None:
    """Read the crontab of this user; None where cron is not installed."""
    try:
        return crontab.read_lines()
    except crontab.NoCrontab:
        return None
    except CouldNotLook as why:
        raise CannotFix(str(why)) from None
