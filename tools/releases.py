"""Real Hermes releases, each in a virtual environment of its own in a cache folder."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

ALL = (
    "0.13.0",
    "0.14.0",
    "0.15.0",
    "0.15.1",
    "0.15.2",
    "0.16.0",
    "0.17.0",
    "0.18.0",
    "0.18.1",
    "0.18.2",
    "0.19.0",
)


def cache() -> Path:
    """Where the environments lie."""
    named = os.environ.get("HERMES_DOCTOR_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "hermes-gateway-doctor" / "releases"


def python_of(version: str) -> Path:
    """The interpreter of a release, installed first where needed; raises if it cannot be had."""
    place = cache() / version
    python = place / "bin" / "python"
    complete = place / "complete"
    if complete.exists():
        return python
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{version}.lock").open("w") as lock:  # tests install side by side
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            _run([sys.executable, "-m", "venv", "--clear", str(place)])
            _run([str(python), "-m", "pip", "install", "--quiet", f"hermes-agent=={version}"])
            complete.touch()
    return python


def _run(command: list[str]) -> None:
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")


if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        print(name, python_of(name))
