"""Create healthy homes with real Hermes releases, for tests and benchmarks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tools import releases


def make(version: str, home: Path) -> Path:
    """Let a release fill an empty folder."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    run(version, home, (Path(__file__).parent / "home_lesson.py").read_text())
    return home


def run(version: str, home: Path, script: str) -> str:
    """Run a script under a release's interpreter with this home, and return its output."""
    done = subprocess.run(
        [str(releases.python_of(version)), "-I", "-c", script],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(f"Hermes {version} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


def environment(home: Path) -> dict[str, str]:
    """Return an environment in which Hermes sees no settings of this machine.

    Some of its modules install missing packages as soon as their availability is queried.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    still = {"HERMES_DISABLE_LAZY_INSTALLS": "1", "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    return kept | still | {"HERMES_HOME": str(home), "HOME": str(home.parent)}
