"""`make release`, in a copy of the tree that is committed."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest

from hermes_doctor import __version__
from tests.conftest import once
from tests.helpers import requirements
from tests.helpers.pythons import run
from tools import release

pytestmark = [pytest.mark.real, pytest.mark.wide, pytest.mark.needs("git")]
TREE = Path(__file__).parents[2]
START = f"hermes_gateway_doctor-{__version__}"
WHEEL, SDIST, BILL = f"{START}-py3-none-any.whl", f"{START}.tar.gz", f"{START}.cdx.json"
WHEN = 1_790_000_000
"""The time of the commit."""


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with its release in dist/."""
    if find_spec("cyclonedx") is None:
        requirements.missing("cyclonedx-bom is not installed: make .venv/release")
    return once(tmp_path_factory, "released", _release) / "tree"


def _release(target: Path) -> None:
    copy = target / "tree"
    left = shutil.ignore_patterns(".git", ".venv", ".*_cache", "cache", "__pycache__", "dist")
    shutil.copytree(TREE, copy, ignore=left)
    when = {"GIT_AUTHOR_DATE": f"{WHEN} +0000", "GIT_COMMITTER_DATE": f"{WHEN} +0000"}
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "gc.auto=0")
    run(*git, "init", "--quiet", cwd=copy)
    run(*git, "add", "--all", cwd=copy)
    run(*git, "commit", "--quiet", "--message", "a", cwd=copy, env={**os.environ, **when})
    assert make(copy).returncode == 0, make(copy).stderr


def make(tree: Path) -> subprocess.CompletedProcess[str]:
    """`make release` with the environment of the tests."""
    venv = sys.prefix
    return subprocess.run(
        ["make", "--silent", "--old-file", f"{venv}/release", f"VENV={venv}", "release"],
        cwd=tree,
        env={name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_files(released: Path) -> None:
    """Wheel, sdist and bill of materials, with checksums that can be checked."""
    dist = released / "dist"

    assert {path.name for path in dist.iterdir()} == {WHEEL, SDIST, BILL, release.SUMS}
    assert run("sha256sum", "--check", release.SUMS, cwd=dist).splitlines() == [
        f"{name}: OK" for name in sorted((WHEEL, SDIST, BILL))
    ]


def test_time_of_the_commit(released: Path) -> None:
    """No file in the sdist is newer or older than the commit."""
    with tarfile.open(released / "dist" / SDIST) as archive:
        assert {member.mtime for member in archive} == {WHEN}
    packed = (released / "dist" / SDIST).read_bytes()
    assert int.from_bytes(packed[4:8], "little") in (0, WHEN)
    assert gzip.decompress(packed)


def test_the_sdist_builds_the_same_wheel(released: Path, tmp_path: Path) -> None:
    """Everything that the wheel needs is in the sdist."""
    with tarfile.open(released / "dist" / SDIST) as archive:
        archive.extractall(tmp_path, filter="data")
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(WHEN)}
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)

    run(*build, cwd=tmp_path / START, env=env)

    assert (tmp_path / WHEEL).read_bytes() == (released / "dist" / WHEEL).read_bytes()


def test_bill_of_materials(released: Path) -> None:
    """It names this tool with its checksum, and each package that is installed with it."""
    text = (released / "dist" / BILL).read_text()
    bill = json.loads(text)
    about = bill["metadata"]["component"]

    assert (about["name"], about["version"]) == ("hermes-gateway-doctor", __version__)
    assert about["hashes"][0]["content"] == release.sums(released / "dist")[WHEEL]
    assert datetime.fromisoformat(bill["metadata"]["timestamp"]) == datetime.fromtimestamp(
        WHEN, UTC
    )
    names = {one["name"].lower() for one in bill["components"]}
    assert {"typer", "rich", "pyyaml", "psutil", "python-dotenv", "sqlite-utils"} <= names
    assert "cyclonedx-bom" not in names
    [root] = [one for one in bill["dependencies"] if one["ref"] == about["bom-ref"]]
    assert len(root["dependsOn"]) >= 6
    assert not any(place in text for place in ("file:", str(released.parent), str(Path.home())))


def test_the_bill_is_reproducible(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made again in another folder, it has the same bytes."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(WHEN))
    shutil.copy(released / "dist" / WHEEL, tmp_path)

    made = release.bill_of_materials(tmp_path)

    assert made.read_bytes() == (released / "dist" / BILL).read_bytes()


def test_changes_are_refused(released: Path, tmp_path: Path) -> None:
    """With a file that is not committed, nothing is built, and one line says so."""
    tree = tmp_path / "tree"
    shutil.copytree(released, tree)
    before = release.sums(tree / "dist")
    (tree / "hermes_doctor" / "new.py").touch()

    done = make(tree)

    assert done.returncode == 2
    said = done.stderr.splitlines()[0]
    assert said == "Not committed: hermes_doctor/new.py. Commit or remove that first."
    assert release.sums(tree / "dist") == before


def test_difference_is_refused(tmp_path: Path) -> None:
    """Two builds that differ in one file are named."""
    for name, content in (("first", "a"), ("second", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same").write_text("same")
        (tmp_path / name / "made.whl").write_text(content)

    with pytest.raises(SystemExit, match=r"Two builds of the same commit differ: made\.whl"):
        release.refuse_difference(tmp_path / "first", tmp_path / "second")
    release.refuse_difference(tmp_path / "first", tmp_path / "first")


def test_settings_of_git_change_no_byte(released: Path, tmp_path: Path) -> None:
    """Such as line ends, which some people let git convert."""
    archive = tmp_path / "one.tar"
    settings = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.autocrlf",
        "GIT_CONFIG_VALUE_0": "true",
    }
    code = f"from tools import release; release._git('archive', '-o', {str(archive)!r}, 'HEAD')"
    run(sys.executable, "-c", code, cwd=released, env={**os.environ, **settings})

    with tarfile.open(archive) as tar:
        file = tar.extractfile("README.md")
        assert file is not None
        assert file.read() == (released / "README.md").read_bytes()


def test_without_git() -> None:
    """One line says what is missing."""
    with pytest.raises(SystemExit, match="no-such-program is not installed"):
        release._run("no-such-program")
