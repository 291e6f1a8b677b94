"""Create homes with a long, realistic message history by a real release, and keep them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from benchmarks import salvage
from tools import real_home, releases

MESSAGES = 60_000


def folder() -> Path:
    """Return the folder for the homes of the benchmarks."""
    place = releases.cache().parent / "benchmarks"
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o700)
    return place


def home(times: int) -> Path:
    """Return a home with this many times the history of a busy year, about 280 MB each."""
    release = salvage.RELEASE
    ready = folder() / f"talk-{release}-{times}" / "home"
    if ready.exists():
        return ready
    making = folder() / f"making-{times}"
    shutil.rmtree(making, ignore_errors=True)
    database = real_home.make(release, making / "home") / "state.db"
    shutil.copyfile(salvage.fixture(MESSAGES) / "state.db", database)
    script = Path(__file__).with_name("history_fixture.py")
    command = [str(releases.python_of(release)), "-I", str(script), str(database), str(times)]
    subprocess.run(command, check=True, env=real_home.environment(making / "home"), cwd=making)
    making.rename(ready.parent)
    return ready
