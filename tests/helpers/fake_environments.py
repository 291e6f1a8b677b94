"""Fake virtual environments with a Hermes in them, and a command that updates them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from hermes_doctor.backup.records.updates import UpdateRecords
from hermes_doctor.core.home import Home
from tests.helpers import support

HERE = Path(__file__).parents[2]
NEEDED = ("hermes_cli", "yaml", "dotenv", "httpx")


def make(home: Path, version: str = "0.18.2") -> Path:
    """Create the environment of the Hermes of a home."""
    root = home / "hermes-agent" / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    for name in NEEDED:
        support.put(packages(root) / name / "__init__.py", "")
    support.put(packages(root) / "pip-26.0.dist-info" / "METADATA", "Name: pip\nVersion: 26.0\n")
    become(root, version)
    return root


def packages(root: Path) -> Path:
    """Return the folder of its packages."""
    return next((root / "lib").glob("python*")) / "site-packages"


def become(root: Path, version: str, *requires: str) -> None:
    """Replace the Hermes in the same environment by another version."""
    for old in packages(root).glob("hermes_agent-*.dist-info"):
        shutil.rmtree(old)
    needed = "".join(f"Requires-Dist: {one}\n" for one in requires)
    text = f"Metadata-Version: 2.1\nName: hermes-agent\nVersion: {version}\n{needed}"
    support.put(packages(root) / f"hermes_agent-{version}.dist-info" / "METADATA", text)


def updating(root: Path, version: str, *requires: str, then: str = "") -> list[str]:
    """Return a command that does the update, and then runs more code."""
    what = f"environments.become(pathlib.Path({str(root)!r}), {version!r}, *{list(requires)!r})"
    code = f"import pathlib, sys; sys.path.insert(0, {str(HERE)!r})\n"
    code += f"from tests.helpers import fake_environments as environments; {what}\n{then}"
    return [sys.executable, "-c", code]


def ended(home: Path) -> None:
    """Wait until the command that killed its guard has ended, too."""
    until = time.monotonic() + 60
    while (last := UpdateRecords(Home(home)).last()) is not None and last.is_running():
        assert time.monotonic() < until, last
        time.sleep(0.02)
