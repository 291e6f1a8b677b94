"""Lists of access and marks of the file system: neither won nor lost by a repair."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import crash_server, requirements, support

pytestmark = pytest.mark.disk
LIST = "system.posix_acl_access"
READER = crash_server.STRANGER


def setfacl(*args: str | Path) -> None:
    """Set a list of access, or skip where there are none."""
    requirements.programs("setfacl")
    if subprocess.run(["setfacl", *map(str, args)], capture_output=True, check=False).returncode:
        pytest.skip("this disk has no lists of access")


def access(path: Path) -> bytes | None:
    """The list of access of a file."""
    try:
        return os.getxattr(path, LIST)
    except OSError:
        return None


@pytest.fixture
def sick(tmp_path: Path) -> Path:
    """A home with a fault of every kind."""
    return crash_server.sick(tmp_path / "home")


FILES = ("config.yaml", ".env", "state.db", "kanban.db", "auth.json")


def test_the_folder_s_default_is_not_inherited(sick: Path) -> None:
    """A file that was closed to a user is not open to him because it was replaced."""
    setfacl("-d", "-m", f"u:{READER}:rw", sick)
    before = crash_server.state(sick)
    assert [access(sick / name) for name in FILES] == [None] * len(FILES)

    done = support.doctor("fix", "--apply", "--yes", "--home", sick)

    assert done.code == 0, done.err
    assert [access(sick / name) for name in FILES] == [None] * len(FILES)
    assert support.doctor("undo", "--yes", "--home", sick).code == 0
    assert [access(sick / name) for name in FILES] == [None] * len(FILES)
    assert crash_server.state(sick) == before


def test_a_restored_file_inherits_nothing_either(sick: Path) -> None:
    """The same for a file that comes back out of the vault."""
    assert support.doctor("backup", "create", "--json", "--home", sick).code == 0
    [id] = os.listdir(sick / "backups" / "doctor")
    setfacl("-d", "-m", f"u:{READER}:rw", sick)
    (sick / ".env").unlink()

    done = support.doctor("backup", "restore", id, ".env", "--yes", "--home", sick)

    assert done.code == 0, done.err
    assert access(sick / ".env") is None


def test_a_list_of_its_own_is_kept(sick: Path) -> None:
    """The file's own list stays, whatever the folder's default is; undo gives it back."""
    setfacl("-d", "-m", f"u:{READER}:rw", sick)
    setfacl("-m", f"u:{READER + 1}:r", sick / "config.yaml", sick / "kanban.db")
    lists = {name: access(sick / name) for name in FILES}
    assert lists["config.yaml"] and lists["kanban.db"]

    done = support.doctor("fix", "CFG-YAML", "KANBAN-SCHEMA", "--apply", "--yes", "--home", sick)

    assert done.code == 0, done.err
    assert {name: access(sick / name) for name in FILES} == lists
    setfacl("-b", sick / "kanban.db")
    forced = support.doctor("undo", "--yes", "--force", "--home", sick)
    assert forced.code == 0, forced.err
    assert {name: access(sick / name) for name in FILES} == lists


# -- marks ---------------------------------------------------------------------------------


@pytest.fixture(params=["i", "a"])
def marked(request: pytest.FixtureRequest, sick: Path) -> Iterator[Path]:
    """A sick home with one file that nobody may change."""
    path = sick / ".env"
    mark = ["chattr", f"+{request.param}", str(path)]
    able = shutil.which("chattr") is not None
    if not able or subprocess.run(mark, capture_output=True, check=False).returncode:
        pytest.skip("this file system has no marks, or not for us")
    yield path
    subprocess.run(["chattr", "-ia", str(path)], check=True)


@pytest.mark.sampled
def test_an_unchangeable_file(sick: Path, marked: Path) -> None:
    """Only its own fix is refused, with the command that helps; the others are done."""
    old = marked.read_bytes()

    done = support.doctor("fix", "--apply", "--yes", "--home", sick)

    assert done.code == 1, done.out + done.err
    command = f"chattr -ia {marked}"
    assert command in " ".join((done.out + done.err).split())
    assert marked.read_bytes() == old
    assert (sick / "config.yaml").read_text() == support.CONFIG
    assert crash_server.leftovers(sick) == []
    left = [one["subject"] for one in support.check(sick).json["findings"]]
    assert set(left) == {".env"}
    subprocess.run(command.split(), check=True)
    assert support.doctor("fix", "--apply", "--yes", "--home", sick).code == 0


def test_nothing_but_an_unchangeable_file(sick: Path, marked: Path) -> None:
    """Where it is all there is to do, nothing is, and one line says why."""
    before = crash_server.state(sick)

    done = support.doctor("fix", "ENV-BOM", "--apply", "--yes", "--home", sick)

    assert done.code == 2
    assert f"chattr -ia {marked}" in " ".join(done.err.split())
    assert crash_server.state(sick) == before
