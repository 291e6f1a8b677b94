"""A crontab in a file, and a process that bears the name of the cron daemon."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_doctor.core.system import crontab
from tests.helpers import fake_managers
from tests.helpers.real.gateways import end, until

CRONTAB = """
case "$1" in -u) shift 2 ;; esac
case "$1" in
  -l) if [ -f {file} ]; then cat {file}; else echo "no crontab for you" >&2; exit 1; fi ;;
  -r) rm {file} ;;
  -) cat >{file} ;;
esac
"""
OTHERS = "# mine\nMAILTO=me\n5 4 * * * /bin/true  # h\u00e4m\n"
"""A crontab that people have."""


def install(folder: Path, text: str = OTHERS) -> Path:
    """Put the program into a folder; return the file that it keeps."""
    folder.mkdir(exist_ok=True)
    tab = folder / "tab"
    tab.write_text(text)
    fake_managers.command(folder, "crontab", CRONTAB.format(file=tab))
    return tab


def use(folder: Path, monkeypatch: pytest.MonkeyPatch, *, runs: bool = True) -> Path:
    """Let this process use such a crontab and no systemd; return the file."""
    tab = install(folder)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.setattr(crontab, "is_running", lambda: runs)
    return tab


@contextmanager
def daemon(folder: Path) -> Iterator[None]:
    """Run a process with the name of the cron daemon, which does nothing."""
    program = shutil.copy(shutil.which("sleep") or "sleep", folder / "cron")
    process = subprocess.Popen([program, "1000"])
    try:
        until(crontab.is_running, "the daemon to be seen")
        yield
    finally:
        end(process)
