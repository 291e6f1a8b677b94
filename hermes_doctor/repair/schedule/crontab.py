"""Install a job as a line of the user's crontab, where there is no service manager.

Cron does not restart a process that has ended, so it starts single rounds; each reads the stored
state of the previous one.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from hermes_doctor.core.home import config_environment
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import crontab
from hermes_doctor.repair.schedule.durations import format_duration
from hermes_doctor.repair.schedule.jobs import Job, JobStatus

MIN_INTERVAL = 300.0
"""Shortest time between two rounds in seconds: each starts a new Python process."""
MIN_HEALING = 60.0
"""The same for a watch that heals: while a gateway is down, nobody gets an answer."""
_NOTHING = "systemd, launchd and cron are all missing on this machine"
_STEPS = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440)
"""Minutes that divide an hour or a day, because cron counts from the start of each."""


class Cron:
    """A crontab line that is found by the comment at its end."""

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
    """Shortest time between two rounds in seconds."""
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
