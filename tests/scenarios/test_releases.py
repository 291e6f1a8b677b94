"""The cache of Hermes releases: what an entry is called, and how a change of it is seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.warm_server import ROOT
from tools import releases

VERSION = releases.ALL[-1]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, with a release that consists of two small files."""
    monkeypatch.setenv("HERMES_DOCTOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(releases, "LOCKS", tmp_path)
    support.put(tmp_path / f"{VERSION}.txt", f"hermes-agent=={VERSION}\n")

    def run(command: list[str], given: str = "") -> None:
        place = releases.folder(VERSION)
        support.put(place / "bin" / "python", "")
        packages = place / "lib" / "python3.11" / "site-packages"
        support.put(packages / f"hermes_agent-{VERSION}.dist-info" / "RECORD", "")
        support.put(packages / "hermes.py", "pass\n")

    monkeypatch.setattr(releases, "_run", run)
    return tmp_path / "cache"


def module(place: Path) -> Path:
    """The one module of the release."""
    [found] = place.glob("lib/*/site-packages/hermes.py")
    return found


@pytest.mark.parametrize("version", releases.ALL)
def test_a_lock_names_everything(version: str) -> None:
    """Each release has a lock with exact versions, with what its API server needs."""
    lines = (releases.LOCKS / f"{version}.txt").read_text().splitlines()
    assert all("==" in line for line in lines if line and not line.startswith((" ", "#")))
    names = {line.partition("==")[0].partition("[")[0] for line in lines}
    assert {"hermes-agent", "aiohttp"} <= names


def test_an_entry_names_what_is_installed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry records release, extras and lock; a change of any of them gives another entry."""
    python = releases.python_of(VERSION)
    record = json.loads((python.parent.parent / releases.RECORD).read_text())
    assert record["release"] == VERSION
    assert record["extras"] == ["messaging"]
    assert record["lock"] == f"hermes-agent=={VERSION}\n"
    assert record["packages"] == [f"hermes_agent-{VERSION}"]

    first = releases.folder(VERSION)
    monkeypatch.setattr(releases, "EXTRAS", ("messaging", "voice"))
    second = releases.folder(VERSION)
    support.put(releases.LOCKS / f"{VERSION}.txt", f"hermes-agent=={VERSION}\nmore==1\n")
    assert len({first, second, releases.folder(VERSION)}) == 3


def test_an_entry_with_other_packages_is_rebuilt(cache: Path) -> None:
    """What somebody installed into an entry or removed from it does not stay."""
    place = releases.python_of(VERSION).parent.parent
    extra = module(place).with_name("surprise-1.0.dist-info") / "RECORD"
    support.put(extra, "")

    releases.python_of(VERSION)

    assert not extra.exists()
    assert module(place).exists()


def test_a_change_is_seen(cache: Path) -> None:
    """A changed, a new and a missing file; compiled modules do not count."""
    place = releases.python_of(VERSION).parent.parent
    support.put(module(place).parent / "__pycache__" / "hermes.pyc", "")
    assert releases.changed() == {}

    module(place).write_text("import os\n")
    support.put(place / "bin" / "more", "")
    (place / "bin" / "python").unlink()

    name = str(module(place).relative_to(place))
    assert releases.changed() == {place.name: ["bin/more", "bin/python", name]}


SPOILING = """
import pytest

from tools import releases

@pytest.mark.real
def test_spoils():
    [record] = releases.cache().glob("*/installed.json")
    (record.parent / "bin" / "more").write_text("")
"""


@pytest.mark.sampled
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_that_changes_a_release_fails(cache: Path, tmp_path: Path, workers: str) -> None:
    """All tests pass, and yet the run fails and names the file."""
    releases.python_of(VERSION)
    support.put(tmp_path / "suite" / "test_spoils.py", SPOILING)
    # -p: as if it were the conftest.py of that suite
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-n", workers]
    outer = ("PYTEST_XDIST_", "PYTEST_CURRENT")  # it is not a worker of this run
    environ = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    done = subprocess.run(
        [
            *command,
            "--rootdir",
            tmp_path / "suite",
            "-c",
            ROOT / "pyproject.toml",
            tmp_path / "suite",
        ],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "1 passed" in done.stdout, done
    assert f"changed the cached release {releases.folder(VERSION).name}" in done.stdout
    assert "bin/more" in done.stdout
    assert done.returncode == 1
