"""The Pythons that this tool supports, for tests that install it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import requirements

VERSIONS = ("3.11", "3.12", "3.13")
NEWEST = "3.14"
"""It is supported, too, but not every machine that runs these tests can install it."""
_UV = Path.home() / ".local" / "share" / "uv" / "python"
_OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"
every_python = pytest.mark.parametrize(
    "version",
    [
        pytest.param(one, marks=[] if one == _OWN else pytest.mark.wide)
        for one in (*VERSIONS, NEWEST)
    ],
)


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command that must succeed; what it printed on both ends."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout + done.stderr


def interpreter(version: str) -> Path:
    """A Python of that version; the test is skipped if there is none."""
    found = _interpreter(version)
    if found is None and version == NEWEST:
        pytest.skip(f"Python {version} cannot be had on every machine yet")
    if found is None:
        requirements.missing(f"Python {version} is not installed: uv python install {version}")
    return found


def _interpreter(version: str) -> Path | None:
    """A Python of that version: this one, one of pyenv's, one on the PATH, or one of uv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = [Path(sys.base_prefix) / "bin" / f"python{version}"]
    found += sorted((pyenv / "versions").glob(f"{version}.*/bin/python{version}"))
    on_path = shutil.which(f"python{version}")
    found += [Path(on_path)] if on_path else []
    found += sorted(_UV.glob(f"cpython-{version}.*/bin/python{version}"))
    for path in found:
        try:
            told = subprocess.run(
                [path, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"],
                capture_output=True,
                text=True,
            )
        except OSError:
            continue
        if told.stdout.strip() == version:
            return path
    return None
