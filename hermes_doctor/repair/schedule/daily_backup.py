"""Schedules daily backups with a systemd timer, a launchd job or a crontab line."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes_doctor.backup.vault.prune_rules import Retention
from hermes_doctor.core.home import Home, identity, state_folder
from hermes_doctor.core.model import CannotFix, Trouble
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.accounts import refuse_untrusted
from hermes_doctor.core.system.own_environment import refuse_cached
from hermes_doctor.repair.gateway.manager_commands import owner_of
from hermes_doctor.repair.schedule import managers
from hermes_doctor.repair.schedule.choose import Kinds, choose, refuse_temporary_home
from hermes_doctor.repair.schedule.jobs import Job, JobManager

PREFIX = "hermes-doctor-backup"
_SERVICE = """\
# Made by `hermes-doctor backup schedule install`; remove it with `… remove`.
[Unit]
Description=hermes-doctor backs up {home}

[Service]
Type=oneshot
ExecStart={command}
WorkingDirectory=/
SyslogIdentifier=hermes-doctor
Nice=10
IOSchedulingClass=idle
UMask=0077
# Exit code 1: the backup was created, but a database is damaged.
SuccessExitStatus=1
{limits}"""
_TIMER = """\
# Made by `hermes-doctor backup schedule install`; remove it with `… remove`.
[Unit]
Description=hermes-doctor backs up {home} every day

[Timer]
OnCalendar=*-*-* {at}:00
Persistent=true

[Install]
WantedBy=timers.target
"""


@dataclass(frozen=True)
class Daily(Job):
    """The daily backup of one home."""

    at: str = "03:30"

    @property
    def name(self) -> str:
        return f"{PREFIX}-{identity(self.home)}"

    @property
    def command(self) -> list[str]:
        words = [sys.executable, "-P", "-m", "hermes_doctor", "backup", "create", "--home"]
        return [*words, str(self.home.path), "--reason", "scheduled", *self.options]

    @property
    def writes(self) -> list[Path]:
        return [self.home.path, *([self.vault] if self.vault else [])]


def at_of(job: Job) -> tuple[int, int]:
    hour, minute = (job.at if isinstance(job, Daily) else "03:30").split(":")
    return int(hour), int(minute)


class DailyTimer(managers.Systemd):
    """A systemd timer and the one-shot service that it starts."""

    def describe(self) -> str:
        return f"a systemd {'system' if self.system else 'user'} timer"

    @staticmethod
    def _name(job: Job) -> str:
        return f"{job.name}.timer"

    def _service(self, job: Job) -> Path:
        return self._file(job).with_suffix(".service")

    def text(self, job: Job) -> str:
        hour, minute = at_of(job)
        home = str(job.home.path).replace("%", "%%")
        return _TIMER.format(home=home, at=f"{hour:02}:{minute:02}")

    def service_text(self, job: Job) -> str:
        limits = managers.LIMITS
        if self.system:
            paths = " ".join(managers.quote(f"-{path}") for path in job.writes)
            limits += f"{managers.SANDBOX}ReadWritePaths={paths}\n"
            if job.user:
                limits = f"User={job.user}\n{limits}CapabilityBoundingSet=\n"
        return _SERVICE.format(
            home=str(job.home.path).replace("%", "%%"),
            command=" ".join(managers.quote(word, command=True) for word in job.command),
            limits=limits,
        )

    def installed(self, job: Job) -> list[str]:
        lines = _text(self._service(job)).splitlines()
        command = next((line for line in lines if line.startswith("ExecStart=")), "ExecStart=")
        words = shlex.split(command.removeprefix("ExecStart="))
        return [word.replace("%%", "%").replace("$$", "$") for word in words]

    def install(self, job: Job) -> bool:
        wanted = {self._file(job): self.text(job), self._service(job): self.service_text(job)}
        same = all(
            file.is_file() and file.read_text() == content for file, content in wanted.items()
        )
        if (
            same
            and self.status(job).running
            and self.manager.run("is-enabled", self._name(job)).code == 0
        ):
            return False
        for file, content in wanted.items():
            disk.make_folder(file.parent)
            disk.save(file, content.encode(), 0o644)
        self.manager.run_checked("daemon-reload")
        self.manager.run_checked("enable", self._name(job))
        self.manager.run_checked("restart", self._name(job))
        return True

    def remove(self, job: Job) -> bool:
        service = self._service(job)
        there = super().remove(job) or os.path.lexists(service)
        disk.remove(service)
        if there:
            self.manager.run_checked("daemon-reload")
        return there

    def hints(self, job: Job) -> Sequence[str]:
        words = "systemctl" if self.system else "systemctl --user"
        found = [f"Show the next run: {words} list-timers {self._name(job)}"]
        return [*found, *super().hints(job)[1:]]


class DailyLaunchdJob(managers.Launchd):
    """A launchd job that runs once a day."""

    def installed(self, job: Job) -> list[str]:
        import plistlib

        content = _text(Path(self.place(job)))
        return list(plistlib.loads(content.encode())["ProgramArguments"]) if content else []

    def text(self, job: Job) -> str:
        import plistlib

        wanted = plistlib.loads(super().text(job).encode())
        hour, minute = at_of(job)
        for name in ("KeepAlive", "ThrottleInterval", "EnvironmentVariables"):
            wanted.pop(name, None)
        wanted |= {"RunAtLoad": False, "StartCalendarInterval": {"Hour": hour, "Minute": minute}}
        return plistlib.dumps(wanted).decode()


class DailyCrontabLine(managers.Cron):
    """A crontab line that runs once a day."""

    def installed(self, job: Job) -> list[str]:
        line = next(iter(managers.lines_of(job)), "")
        return shlex.split(line.replace(r"\%", "%"), comments=True)

    def text(self, job: Job) -> str:
        hour, minute = at_of(job)
        command = managers.in_line(job.command)
        return f"{minute} {hour} * * * {command} >/dev/null  # {job.name}\n"

    def hints(self, job: Job) -> Sequence[str]:
        return [f"Cron mails errors. Show the line: crontab -l | grep {job.name}"]


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def vault_of(manager: JobManager, job: Daily) -> Path | None:
    """The vault of the installed job; None for the home's own vault."""
    import itertools

    if not isinstance(manager, DailyTimer | DailyLaunchdJob | DailyCrontabLine):
        return None
    try:
        words = manager.installed(job)
    except (ValueError, KeyError):  # the file was edited by hand
        return None
    paths = (Path(place) for word, place in itertools.pairwise(words) if word == "--vault")
    return next(paths, None)


KINDS = Kinds(DailyCrontabLine, DailyLaunchdJob, DailyTimer)


def find_job(home: Home, *, system: bool, cron: bool) -> tuple[JobManager, Daily]:
    """The manager and the home's job without its options, for status and removal."""
    manager = choose(home, system=system, cron=cron, kinds=KINDS)
    return manager, Daily(home, (), False, 0.0, state_folder())


def prepare(
    home: Home,
    *,
    at: str,
    retention: Retention,
    more: Sequence[str],
    vault: Path | None,
    system: bool,
    cron: bool,
) -> tuple[JobManager, Daily]:
    """Choose the manager and build the job from the options."""
    refuse_cached()
    refuse_temporary_home(home.path)
    if not retention:
        raise Trouble("At least one of --daily, --weekly and --monthly must be more than 0.")
    place = vault.expanduser().absolute() if vault else None
    options = [*retention.options, *more, *(["--vault", str(place)] if place else [])]
    manager = choose(home, system=system, cron=cron, kinds=KINDS)
    owner = owner_of(home)
    user = owner.name if system and owner.uid else None
    if system and owner.uid and user is None:
        raise CannotFix(
            "The owner of the home (uid {uid}) has no account on this machine. "
            "Correct the owner first.",
            uid=owner.uid,
        )
    if system and user is None:
        for path in (Path(sys.executable), Path(__file__)):
            refuse_untrusted(path, None)
    return manager, Daily(
        home, tuple(options), False, 86400.0, state_folder(), place, user=user, at=_checked(at)
    )


def _checked(at: str) -> str:
    hour, _, minute = at.partition(":")
    if not (hour.isdecimal() and minute.isdecimal() and int(hour) < 24 and int(minute) < 60):
        raise Trouble("--at needs a time of the day such as 03:30; got {given!r}.", given=at)
    return f"{int(hour):02}:{int(minute):02}"
