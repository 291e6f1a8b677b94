"""The watch as a line of the user's crontab, where no manager of services is to be had.

Nobody would start a process again that cron has started, so cron starts single rounds: what one
round knows, the next one reads.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence

from hermes_doctor.model import CannotFix
from hermes_doctor.services.commands import LIMIT, insist
from hermes_doctor.watching.jobs import Job, Told

LEAST = 300.0
"""Seconds between two rounds: each starts a Python of its own."""


class Cron:
    """One marked line."""

    def describe(self) -> str:
        return "a line of your crontab"

    def place(self, job: Job) -> str:
        return f"the line of your crontab that ends with # {job.name}"

    def text(self, job: Job) -> str:
        minutes = max(1, min(59, round(max(job.interval, LEAST) / 60)))
        words = [*job.command, "--once", "--interval", f"{minutes}m"]
        state = f"XDG_STATE_HOME={job.store.folder.parent}"
        command = shlex.join(["env", state, *words]).replace("%", r"\%")
        if "\n" in command:
            raise CannotFix("a name holds signs that no crontab may hold")
        return f"*/{minutes} * * * * {command}  # {job.name}\n"

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
            insist(["crontab", "-r"])
        return True

    def status(self, job: Job) -> Told:
        there = any(_ours(line, job) for line in _lines())
        return Told(there, there, what="a line in the crontab" if there else "not in the crontab")

    def hints(self, job: Job) -> Sequence[str]:
        return [f"Cron starts single rounds and mails what changed: crontab -l | grep {job.name}"]


def _ours(line: str, job: Job) -> bool:
    return line.rstrip("\n").endswith(f"# {job.name}")


def _lines() -> list[str]:
    """The crontab as it is; none is an empty one."""
    done = _crontab(["-l"])
    if done.returncode and b"no crontab" not in done.stderr.lower():
        raise CannotFix("crontab does not tell what is in it")
    text = done.stdout.decode("utf-8", "surrogateescape") if not done.returncode else ""
    lines = text.split("\n")  # and at nothing else: other signs may stand in a comment
    return [line + "\n" for line in (lines if lines[-1] else lines[:-1])]


def _write(lines: list[str]) -> None:
    done = _crontab(["-"], "".join(lines).encode("utf-8", "surrogateescape"))
    if done.returncode:
        raise CannotFix(f"crontab refused the new lines ({done.returncode})")


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
        raise CannotFix("there is neither systemd nor launchd nor cron to install into") from None
    except (OSError, subprocess.TimeoutExpired):
        raise CannotFix("crontab gives no answer") from None
