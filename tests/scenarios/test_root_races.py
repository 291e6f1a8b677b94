"""Root at work in the home of another user, who puts symlinks where root is going to write."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.helpers import budget, crash_server, support, symlink_races
from tests.helpers.crash_server import Server

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to lose here")

SECRET = b"a secret of root's"
FIX = ("fix", "--apply", "--yes")
CREATE = ("backup", "create")
UNDO = ("undo", "--yes")


@pytest.fixture(scope="module")
def server() -> Server:
    """The warm process."""
    return crash_server.serving("tests.helpers.symlink_races", alone=True)


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A small home of another user, with faults in folders of its own."""
    home = tmp_path / "user" / "home"
    support.put(home / "config.yaml", support.CONFIG)
    crash_server.lacking(home / "kanban" / "boards" / "one" / "kanban.db")
    support.put(home / "state-snapshots" / "one" / ".env", support.ENV, 0o644)
    support.put(home / "sessions" / "sessions.json", "{}")
    (home / "backups" / "doctor" / "runs").mkdir(parents=True)
    crash_server.chown(tmp_path / "user")
    return home


def facts(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything about a folder but when it was last read."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [folder, *folder.rglob("*")]:
        st = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        found[str(path)] = (st.st_mode, st.st_uid, st.st_gid, st.st_ino, st.st_ctime_ns, content)
    return found


def double(folder: Path, elsewhere: Path, *, secret: bool = False) -> Path:
    """Root's own folder that looks like one of the home, so that every name is there too."""
    shutil.copytree(folder, elsewhere, symlinks=True)
    for path in elsewhere.rglob("*"):
        if path.is_file():
            path.write_bytes(SECRET if secret else path.read_bytes())
            path.chmod(0o600)
    return crash_server.chown(elsewhere, 0)


def leaked(home: Path) -> list[str]:
    """The files of a home that hold what only root may read."""
    return [
        str(Path(base, name).relative_to(home))
        for base, _, names in os.walk(home)
        for name in names
        if not Path(base, name).is_symlink() and SECRET in Path(base, name).read_bytes()
    ]


# -- symlinks that are there already -------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize(
    "name", ["backups", "backups/doctor", "backups/doctor/runs", "kanban/boards/one", "kanban"]
)
def test_a_folder_that_is_a_symlink(
    server: Server, theirs: Path, tmp_path: Path, name: str
) -> None:
    """A folder on the way that leads to one of root's: refused, and nothing there is touched."""
    elsewhere = double(theirs / name, tmp_path / "elsewhere")
    shutil.rmtree(theirs / name)
    (theirs / name).symlink_to(elsewhere)
    crash_server.chown(theirs)
    before, intact = crash_server.state(theirs / "kanban"), facts(elsewhere)

    for command in (FIX, CREATE, UNDO):
        done = server(*command, "--home", theirs)

        assert facts(elsewhere) == intact, command
        assert "bug in" not in done.err, done.err
        if name.startswith("backups") and (command, name) != (CREATE, "backups/doctor/runs"):
            assert done.code == 2, done.said
        elif command == FIX:
            assert done.code in (1, 2), done.said
    assert crash_server.state(theirs / "kanban") == before


@pytest.mark.parametrize("at_once", [True, False])
def test_a_home_that_is_a_symlink(
    server: Server, theirs: Path, tmp_path: Path, at_once: bool
) -> None:
    """Who can swap the home for a link does not lead root to a home of root's."""
    elsewhere = double(theirs, tmp_path / "elsewhere", secret=True)
    theirs.rename(theirs.parent / "moved")
    top = theirs.parent
    if not at_once:  # a folder above it
        top.rename(tmp_path / "deep")
        top.mkdir()
        (tmp_path / "elsewhere").rename(tmp_path / "home")
        elsewhere = tmp_path / "home"
        (top / "above").symlink_to(tmp_path)
        theirs = top / "above" / "home"
    else:
        theirs.symlink_to(elsewhere)
    crash_server.chown(top)
    intact = facts(elsewhere)

    done = server(*CREATE, "--home", theirs)

    assert facts(elsewhere) == intact
    assert done.code == 2 and "is in the hands of another user" in done.said, done.said
    made = server(*CREATE, "--home", elsewhere)
    assert "created and verified" in made.out, "its path, named by the operator"


@pytest.mark.parametrize("name", ["sessions", "skills", "kanban/boards/one"])
def test_a_backup_holds_nothing_of_root(
    server: Server, theirs: Path, tmp_path: Path, name: str
) -> None:
    """A symlink to a folder of root's does not bring its files into a vault of the user's."""
    (theirs / "skills").mkdir()
    support.put(theirs / "skills" / "one.md", "a skill")
    elsewhere = double(theirs / name, tmp_path / "elsewhere", secret=True)
    shutil.rmtree(theirs / name)
    (theirs / name).symlink_to(elsewhere)
    crash_server.chown(theirs)

    done = server(*CREATE, "--home", theirs)

    assert done.code == 0, done.said
    assert leaked(theirs) == []


@pytest.mark.parametrize("name", ["sessions", "sessions/deep"])
def test_a_restore_through_a_symlink(
    server: Server, theirs: Path, tmp_path: Path, name: str
) -> None:
    """A folder that became a symlink after the backup: its files are not restored elsewhere."""
    support.put(theirs / "sessions" / "deep" / "two.json", "{}")
    crash_server.chown(theirs)
    assert server(*CREATE, "--home", theirs).code == 0
    [id] = [path.name for path in theirs.glob("backups/doctor/2*")]
    elsewhere = double(theirs / name, tmp_path / "elsewhere")
    shutil.rmtree(theirs / name)
    (theirs / name).symlink_to(elsewhere)
    os.chown(theirs / name, crash_server.STRANGER, crash_server.STRANGER, follow_symlinks=False)
    intact = facts(elsewhere)

    done = server("backup", "restore", id, "--yes", "--home", theirs)

    assert facts(elsewhere) == intact
    assert done.code == 2, done.said


# -- symlinks that come meanwhile ----------------------------------------------------------

FOLDERS = (
    ".",
    "backups",
    "backups/doctor",
    "backups/doctor/runs",
    "kanban",
    "kanban/boards/one",
    "state-snapshots/one",
)
STRIDE = 7
"""Every such call of a run is raced against; another one is the first for each folder."""


@pytest.mark.sampled
@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("command", [FIX, UNDO, CREATE], ids=lambda command: command[0])
def test_a_folder_that_becomes_a_symlink(
    server: Server, theirs: Path, tmp_path: Path, command: tuple[str, ...], name: str
) -> None:
    """Whenever a folder is swapped, root changes nothing elsewhere and copies nothing of it."""
    if command == UNDO:
        assert server(*FIX, "--home", theirs).code == 0
    template = crash_server.clone(theirs, tmp_path / "template")
    elsewhere = double(theirs / name, tmp_path / "elsewhere", secret=True)
    intact = facts(elsewhere)
    calls = server(*command, "--home", theirs).calls
    assert len(calls) > 30
    wrong = []
    for at in budget.sample(range(FOLDERS.index(name) % STRIDE, len(calls), STRIDE), 4):
        shutil.rmtree(theirs)
        shutil.rmtree(f"{theirs}{symlink_races.MOVED}", ignore_errors=True)
        crash_server.clone(template, theirs)
        cut = symlink_races.swap(theirs / name if name != "." else theirs, elsewhere, at)
        done = server(*command, "--home", theirs, cuts=(cut,))
        assert "bug in" not in done.err, f"{calls[at]}: {done.err}"
        if facts(elsewhere) != intact:
            wrong.append(f"written to before {calls[at]}")
            shutil.rmtree(elsewhere)
            double(template / name, elsewhere, secret=True)
            intact = facts(elsewhere)
        if theirs.is_symlink():
            theirs.unlink()
            Path(f"{theirs}{symlink_races.MOVED}").rename(theirs)
        wrong += [f"{leak} leaked before {calls[at]}" for leak in leaked(theirs)]
    assert wrong == []
