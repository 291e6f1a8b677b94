"""Install a job as a launchd agent or daemon."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.core.home import config_environment
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import user_home
from hermes_doctor.repair.gateway.manager_commands import run_checked, run_command
from hermes_doctor.repair.schedule.jobs import Job, JobStatus


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
