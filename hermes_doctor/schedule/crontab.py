"""Install a job as a line of the user's crontab, where there is no service manager.

Cron does not restart a process that has ended, so it starts single rounds; each reads the stored
state of the previous one.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence

from hermes_doctor.gateway.manager_commands import LIMIT, run_checked
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.schedule.durations import format_duration
from hermes_doctor.schedule.job_names import config_environment
from hermes_doctor.schedule.jobs import Job, JobStatus

MIN_INTERVAL = 300.0
"""Shortest time between two rounds in seconds: each starts a new Python process."""
_STEPS = (5, 6, 10, 12, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440)
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
        words = [*_without_interval(job.command), "--once", "--interval", f"{minutes}m"]
        state = f"XDG_STATE_HOME={job.folder.parent}"
        config = [f"{name}={value}" for name, value in config_environment().items()]
        command = shlex.join(["env", state, *config, *words]).replace("%", r"\%")
        if "\n" in command:
            raise CannotFix(
                "A path contains characters that a crontab line must not contain. "
                "Rename that folder."
            )
        return f"{_schedule(minutes)} {command}  # {job.name}\n"

    def install(self, job: Job) -> bool:
        lines = _lines()
        wanted = [*(line for line in lines if not _ours(line, job)), self.text(job)]
        if wanted == lines:
            return False
        _write(wanted)
        return True

    def remove(self, job: Job) -> bool:
        lines = _lines()
        kept = [line for line in lines if not _ours(line, job)]
        if kept == lines:
            return False
        if kept:
            _write(kept)
        else:
            run_checked(["crontab", "-r"])
        return True

    def status(self, job: Job) -> JobStatus:
        there = any(_ours(line, job) for line in _lines())
        what = "scheduled in the crontab" if there else "not in the crontab"
        return JobStatus(there, there, what=what)

    def hints(self, job: Job) -> Sequence[str]:
        every = format_duration(_minutes(job) * 60)
        found = [
            f"Cron runs a check every {every} and mails what changed: crontab -l | grep {job.name}"
        ]
        if job.interval != _minutes(job) * 60:
            found.append(
                f"Cron cannot run every {format_duration(job.interval)}, so it runs every {every}: "
                f"at least {format_duration(MIN_INTERVAL)}, and a part of an hour or a day."
            )
        return found


def _without_interval(command: Sequence[str]) -> list[str]:
    """The words of a command without its --interval, which cron may not be able to keep."""
    if "--interval" not in command:
        return [*command]
    at = command.index("--interval")
    return [*command[:at], *command[at + 2 :]]


def _minutes(job: Job) -> int:
    """The allowed step that is nearest to the interval."""
    wanted = max(job.interval, MIN_INTERVAL) / 60
    return min(_STEPS, key=lambda step: (abs(step - wanted), step))


def _schedule(minutes: int) -> str:
    if minutes < 60:
        return f"*/{minutes} * * * *"
    hours = minutes // 60
    return f"0 {'*' if hours == 1 else 0 if hours == 24 else f'*/{hours}'} * * *"


def line_of(job: Job) -> str | None:
    """The crontab line of a job, if there is one."""
    return next((line for line in _lines() if _ours(line, job)), None)


def _ours(line: str, job: Job) -> bool:
    return line.rstrip("\n").endswith(f"# {job.name}")


def _lines() -> list[str]:
    """Read the crontab; a missing one counts as empty."""
    done = _crontab(["-l"])
    if done.returncode and b"no crontab" not in done.stderr.lower():
        raise CannotFix("Could not read the crontab. Run `crontab -l` to see why.")
    text = done.stdout.decode("utf-8", "surrogateescape") if not done.returncode else ""
    lines = text.split("\n")  # not splitlines(): a comment may contain other line separators
    return [line + "\n" for line in (lines if lines[-1] else lines[:-1])]


def _write(lines: list[str]) -> None:
    done = _crontab(["-"], "".join(lines).encode("utf-8", "surrogateescape"))
    if done.returncode:
        raise CannotFix(
            text(
                "crontab rejected the new lines (exit code {code}). Run `crontab -e` to see why.",
                code=done.returncode,
            )
        )


def _crontab(words: list[str], data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["crontab", *words],
            input=data,
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
    except FileNotFoundError:
        raise CannotFix(
            "systemd, launchd and cron are all missing on this machine, so it cannot be installed. "
            "Start it from your own scheduler."
        ) from None
    except (OSError, subprocess.TimeoutExpired):
        raise CannotFix("crontab does not answer. Try again later.") from None
