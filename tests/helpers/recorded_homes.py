"""Homes of releases newer than this tool's knowledge, recorded or created by their own code.

`tests/data/homes/VERSION.tar.xz` holds homes that the real code of a release made once
(`tools/record_home.py`). With HERMES_DOCTOR_CHECKOUTS=DIR the same tests also run on homes that
the checkout DIR/VERSION makes during the test.
"""

from __future__ import annotations

import json
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import need_release
from tools import record_home

VERSIONS = ("0.19.1", "0.20.0", "0.20.2", "0.20.5")
VARIABLE = "HERMES_DOCTOR_CHECKOUTS"
ORIGINS = ("recorded", pytest.param("real", marks=[pytest.mark.real, pytest.mark.wide]))


@dataclass(frozen=True)
class Source:
    """Where homes of a release come from."""

    version: str
    origin: str
    folder: Path
    """An empty folder for what is unpacked or made."""

    def home(self, variant: str) -> Path:
        """Return a new home, `plain` or `interrupted`; its environment names the release."""
        if self.origin == "recorded":
            home = self._unpacked(variant)
        else:
            make = {"plain": record_home.plain, "interrupted": record_home.interrupted}[variant]
            home = make(self.python, self.folder / variant)
        if variant == "interrupted":  # its board still lacks columns, which is a warning of its own
            (home / "kanban.db").unlink()
        installed(home, self.version)
        return home

    @property
    def python(self) -> Path:
        """Return the interpreter of the checkout; skip the test if there is none."""
        folder = os.environ.get(VARIABLE)
        if not folder:
            pytest.skip(f"{VARIABLE} is not set, so no code of Hermes {self.version} can run")
        python = record_home.python_of(Path(folder) / self.version)
        if not python.exists():
            pytest.skip(f"{VARIABLE} has no checkout of Hermes {self.version}")
        need_release(record_home.OLD)
        return python

    def run(self, home: Path, part: str) -> dict[str, Any]:
        """Let the real code work on a home, and return what it reports."""
        said: dict[str, Any] = json.loads(record_home.run(self.python, home, part))
        return said

    def _unpacked(self, variant: str) -> Path:
        path = record_home.KEPT / f"{self.version}.tar.xz"
        with tarfile.open(path) as archive:
            members = [m for m in archive.getmembers() if m.name.startswith(f"{variant}/")]
            assert members, f"{path.name} has no home {variant}"
            archive.extractall(self.folder, members, filter="data")
        home = self.folder / variant
        home.chmod(0o700)
        config = home / "config.yaml"  # recorded with a name that OpenRouter would reject
        config.write_text(config.read_text().replace(" test-model", " acme/test-model"))
        return home


def installed(home: Path, version: str) -> None:
    """Give a home an environment that names a release of Hermes, as its installer does."""
    packages = home / "hermes-agent" / "venv" / "lib" / "python3.11" / "site-packages"
    (packages / f"hermes_agent-{version}.dist-info").mkdir(parents=True)
