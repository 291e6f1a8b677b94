"""Root at work for another user: with his rights, as far as they go, and never further."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.backup.records.journal import Journal
from hermes_doctor.backup.vault import restore_files
from hermes_doctor.core.model import CannotFix, Trouble
from hermes_doctor.core.system import privileges, workers as children
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.core.system.workers import start_worker
from hermes_doctor.repair.steps.files import SetOwner
from tests.helpers import crash_server, support
from tests.helpers.crash_server import STRANGER
from tests.helpers.warm_server import ROOT
from tests.scenarios.test_steps import apply, forked, item

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root works for others")

TEAM = 23456
"""A group that the user is a member of, where he has a name."""
ENCODES = """
import sys
from pathlib import Path
from hermes_doctor.core.system.workers import start_worker, wait_for_result

def work(send_line):
    sys.meta_path.clear()  # as if the folder of Python were closed to this user
    return "messages".encode("utf-16-le").decode("utf-16")

with start_worker(Path(sys.argv[1]), work) as worker:
    print(wait_for_result(worker))
"""
"""A worker that can import nothing, and uses an encoding that nobody has used before."""
SECRET = "a secret of root's"
COMMANDS = {
    "fix": ("fix", "--apply", "--yes"),
    "create": ("backup", "create"),
    "undo": ("undo", "--yes"),
}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can get to, other than those of the tests."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture(params=["open", "closed"])
def sick(request: pytest.FixtureRequest, place: Path) -> Path:
    """A sick home of another user, in a place that he can get to by its name, or cannot."""
    way = place / "way"
    home = crash_server.sick(way / "user" / "home")
    crash_server.chown(way / "user")
    way.chmod(0o755 if request.param == "open" else 0o700)
    return home


def owners(folder: Path) -> set[int]:
    """Whose the files of a tree are."""
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


@contextlib.contextmanager
def gateway(home: Path) -> Iterator[None]:
    """A process of the user's that has a database open; as in a container, it sees nothing else."""
    up, held = os.pipe(), os.pipe()
    pid = forked()
    if not pid:
        with contextlib.suppress(BaseException):
            os.close(held[1])
            os.chroot(home)
            os.chdir("/")
            os.setgroups([])
            os.setresgid(STRANGER, STRANGER, STRANGER)
            os.setresuid(STRANGER, STRANGER, STRANGER)
            db = sqlite3.connect("live.db", isolation_level=None)
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("CREATE TABLE t (a)")
            db.execute("INSERT INTO t VALUES (1)")
            os.write(up[1], b"x")
            os.read(held[0], 1)
        os._exit(0)
    os.close(up[1])
    try:
        assert os.read(up[0], 1), "the gateway did not come up"
        yield
    finally:
        for fd in (up[0], *held):
            os.close(fd)
        os.waitpid(pid, 0)


# -- his rights ----------------------------------------------------------------------------


@pytest.mark.sampled
def test_all_is_his(sick: Path, tmp_path: Path) -> None:
    """Whatever is made in his home is his, wherever it lies, and undo gives all of it back."""
    before = crash_server.state(sick)
    temp = {"TMPDIR": str(tmp_path)}
    for name in ("fix", "undo", "create", "fix"):
        with gateway(sick) if name == "create" else contextlib.nullcontext():
            done = support.doctor(*COMMANDS[name], "--home", sick, env=temp)

        assert done.code == 0, done.out + done.err
        assert owners(sick) == {STRANGER}, name
        assert crash_server.leftovers(sick) == []
        assert os.listdir(tmp_path) == [], "something was left in the room for databases"
        if name == "undo":
            assert crash_server.state(sick) == before
    [manifest] = [
        found
        for path in sick.glob("backups/doctor/2*/manifest.json")
        if (found := json.loads(path.read_bytes()))["reason"] == "by hand"
    ]
    saved = {one["path"]: one for one in manifest["entries"]}
    assert (saved["live.db"]["method"], saved["live.db"]["integrity"]) == ("sqlite", "ok")
    assert support.doctor("backup", "verify", "--all", "--home", sick).code == 0


def test_the_child_is_he(place: Path) -> None:
    """What SQLite does is done by a process that can never be root again."""
    home = place / "home"
    home.mkdir()
    os.chown(home, STRANGER, STRANGER)

    def who(_: object) -> str:
        return json.dumps([os.getresuid(), os.getresgid(), os.getgroups()])

    with start_worker(home / "state.db", who) as other:
        said = json.loads(other.receive()[1])

    assert said == [[STRANGER] * 3, [STRANGER] * 3, [STRANGER]]


def test_a_worker_has_every_encoding_loaded(place: Path) -> None:
    """Otherwise no database can be salvaged if the folder of Python is closed to its owner."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    command = [sys.executable, "-c", ENCODES, str(home / "state.db")]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert done.stdout == "messages\n", done.stderr


def test_a_child_that_its_owner_stops_is_not_waited_for(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs as him, so he may hold it still for ever; root's command ends all the same."""
    monkeypatch.setattr(children, "STILL", 0.05)

    def work(_: object) -> str:
        time.sleep(60)
        return ""

    with start_worker(home / "state.db", work) as other:
        os.kill(other.pid, signal.SIGSTOP)
        with pytest.raises(CannotFix, match="stopped"):
            other.receive()


NAMED = """
mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/group" /etc/group && shift && exec "$@"
"""


def as_named(place: Path, *args: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command where the user has a name and a second group."""
    names = place / "names"
    support.put(names / "passwd", f"root:x:0:0::/:\nhermes:x:{STRANGER}:{STRANGER}::/:\n", 0o644)
    support.put(names / "group", f"root:x:0:\nhermes:x:{STRANGER}:\nteam:x:{TEAM}:hermes\n", 0o644)
    command = [sys.executable, "-m", "hermes_doctor", *map(str, args)]
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", NAMED, "sh", str(names), *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_his_groups(place: Path) -> None:
    """What he may read as a member of a group is saved; a user without a name has none."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("a table of users of its own cannot be mounted")
    home = support.healthy(place / "home")
    crash_server.chown(home)
    lent = support.put(home / "lent.md", "for the team", 0o640)
    os.chown(lent, 0, TEAM)

    named = as_named(place, "backup", "create", "--home", home)
    unnamed = support.doctor("backup", "create", "--home", home)

    assert named.returncode == 0, named.stderr
    [copy] = home.glob("backups/doctor/2*/files/lent.md")
    assert (copy.read_text(), copy.stat().st_uid) == ("for the team", STRANGER)
    assert unnamed.code == 1
    assert "lent.md (permission denied)" in unnamed.out
    assert str(lent) in unnamed.out


# -- and no further ------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize(("mode", "group"), [(0o777, 0), (0o775, TEAM)], ids=["all", "a group"])
def test_a_folder_on_the_way_that_others_may_write_to(place: Path, mode: int, group: int) -> None:
    """Anybody could put another home there: refused in one line that names the folder."""
    way = place / "way"
    home = crash_server.sick(way / "home")
    crash_server.chown(home)
    os.chown(way, 0, group)
    way.chmod(mode)
    before = crash_server.state(home, vault=True)

    for command in COMMANDS.values():
        done = support.doctor(*command, "--home", home)

        assert done.code == 2, done.out
        [line] = done.err.splitlines()
        assert "bug in" not in line
        assert crash_server.state(home, vault=True) == before
        if command != COMMANDS["undo"]:
            assert str(way) in line
            assert "other users may write" in line.lower()


@pytest.mark.needs("setfacl")
@pytest.mark.parametrize("owner", [0, STRANGER], ids=["root's", "another user's"])
@pytest.mark.parametrize("shared", ["home", "way"])
def test_an_access_list_that_lets_others_write(place: Path, owner: int, shared: str) -> None:
    """Its mode and owner say that it is one user's alone; a third user may replace what is in it.

    Root changes nothing there before the list is gone.
    """
    way = place / "way"
    home = crash_server.sick(way / "home")
    crash_server.chown(way, owner)
    folder = {"home": home, "way": way}[shared]
    os.chmod(folder, 0o700 if owner == 0 else 0o755)
    if subprocess.run(["setfacl", "-m", "u:34567:rwx", folder], capture_output=True).returncode:
        pytest.skip("the disk has no access lists")
    before = crash_server.state(home, vault=True)

    refused = support.doctor(*COMMANDS["fix"], "--home", home)

    assert refused.code == 2, refused.out
    assert f"Other users may write to {folder}" in refused.err
    assert crash_server.state(home, vault=True) == before

    os.chmod(folder, 0o755)  # what the line says takes the right away
    assert support.doctor(*COMMANDS["fix"], "--home", home).code == 0


@pytest.mark.sampled
@pytest.mark.parametrize(("mode", "group"), [(0o777, STRANGER), (0o775, TEAM)])
def test_a_home_that_its_owner_shares(place: Path, mode: int, group: int) -> None:
    """Whoever may write to it could lead root to all files of its owner."""
    home = crash_server.sick(place / "home")
    crash_server.chown(home)
    os.chown(home, STRANGER, group)
    home.chmod(mode)
    before = crash_server.state(home, vault=True)

    refused = support.doctor(*COMMANDS["fix"], "--home", home)

    assert refused.code == 2, refused.out
    assert f"Other users may write to {home}" in refused.err
    assert crash_server.state(home, vault=True) == before


def test_a_home_of_the_group_of_its_owner_alone(place: Path) -> None:
    """Where each user has a group of his own, files are often writable by it."""
    home = crash_server.sick(place / "home")
    crash_server.chown(home)
    home.chmod(0o770)

    assert support.doctor(*COMMANDS["fix"], "--home", home).code == 0


def test_a_sticky_folder_on_the_way(place: Path) -> None:
    """One like /tmp, in which nobody can move what is another's, is no hindrance."""
    way = place / "way"
    home = crash_server.sick(way / "home")
    crash_server.chown(home)
    way.chmod(0o1777)

    done = support.doctor(*COMMANDS["fix"], "--home", home)

    assert done.code == 0, done.err
    assert owners(home) == {STRANGER}


@pytest.mark.sampled
def test_a_file_of_root_is_not_saved(sick: Path) -> None:
    """Root's own file in his home does not go into his vault; what to type works when pasted."""
    secret = support.put(sick / "skills" / "secret.md", SECRET)
    os.chown(secret.parent, STRANGER, STRANGER)

    done = support.doctor("backup", "create", "--home", sick)

    assert done.code == 1, done.out
    assert "skills/secret.md (permission denied)" in done.out
    command = f"chown {STRANGER} {secret}"
    assert f"{command}\n" in done.out
    vault = sick / "backups" / "doctor"
    assert not [p for p in vault.rglob("*") if p.is_file() and SECRET in p.read_text("latin-1")]
    subprocess.run(command.split(), check=True)
    assert support.doctor("backup", "create", "--home", sick).code == 0


@pytest.mark.sampled
def test_a_file_of_root_is_not_repaired(sick: Path) -> None:
    """Nor is it replaced by one of his; the others are repaired."""
    os.chown(sick / ".env", 0, 0)
    old = (sick / ".env").read_bytes()

    done = support.doctor("fix", "--apply", "--yes", "--home", sick)

    assert done.code == 1, done.out + done.err
    assert f"chown {STRANGER} {sick / '.env'}" in " ".join((done.out + done.err).split())
    assert (sick / ".env").read_bytes() == old
    assert (sick / ".env").stat().st_uid == 0
    assert (sick / "config.yaml").read_text() == support.CONFIG


# -- giving a file back --------------------------------------------------------------------


@pytest.fixture
def theirs(place: Path) -> Path:
    """A home of another user with one file of root's in it."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    os.chown(home / "auth.json", 0, 0)
    return home


def given(home: Path, name: str, uid: int = STRANGER) -> Journal:
    """Give one file of the home to a user."""
    path = home / name
    return apply(home, item(SetOwner(path, uid, uid, "a test", snapshot(path))))


def test_what_was_root_s_becomes_his(theirs: Path) -> None:
    """That is what the step is for: owner and group change, and nothing else."""
    inode, mode = (theirs / "auth.json").stat().st_ino, (theirs / "auth.json").stat().st_mode

    assert given(theirs, "auth.json").state == "done"

    st = (theirs / "auth.json").stat()
    assert (st.st_uid, st.st_gid, st.st_ino, st.st_mode) == (STRANGER, STRANGER, inode, mode)


def test_it_goes_back_by_the_mark_only(theirs: Path) -> None:
    """An undo does not make it root's again by the receipt, which is his to write: a mark that
    only root can set has to prove that it was."""
    assert given(theirs, "auth.json").state == "done"
    mark = os.getxattr(theirs / "auth.json", privileges.MARK)
    os.removexattr(theirs / "auth.json", privileges.MARK)

    done = support.doctor("undo", "--yes", "--home", theirs)

    assert done.code == 1, done.out + done.err
    assert (theirs / "auth.json").stat().st_uid == STRANGER
    os.setxattr(theirs / "auth.json", privileges.MARK, mark)
    assert support.doctor("undo", "--yes", "--home", theirs).code == 0
    assert (theirs / "auth.json").stat().st_uid == 0


def test_a_file_with_a_second_name(theirs: Path, place: Path) -> None:
    """It may be a link to any file of root's that the user made: refused."""
    precious = support.put(place / "precious", SECRET)
    (theirs / "auth.json").unlink()
    os.link(precious, theirs / "auth.json")

    _refused(theirs)

    assert precious.stat().st_uid == 0


def test_a_file_of_a_third_user(theirs: Path) -> None:
    """Not even root's word makes somebody else's file his."""
    os.chown(theirs / "auth.json", STRANGER + 1, STRANGER + 1)

    _refused(theirs)

    assert (theirs / "auth.json").stat().st_uid == STRANGER + 1


def test_a_symlink_to_a_file_of_root(theirs: Path, place: Path) -> None:
    """What it leads to is not given away."""
    precious = support.put(place / "precious", SECRET)
    (theirs / "auth.json").unlink()
    (theirs / "auth.json").symlink_to(precious)

    _refused(theirs)

    assert precious.stat().st_uid == 0
    assert (theirs / "auth.json").is_symlink()


def test_a_symlink_that_is_root_s_own(theirs: Path, place: Path) -> None:
    """Nor when the link itself is what is to be given."""
    precious = support.put(place / "precious", SECRET)
    precious.chmod(0o644)
    (theirs / "link").symlink_to(precious)

    with pytest.raises(PermissionError):
        privileges.change_owner(theirs / "link", STRANGER, STRANGER, from_root=True)

    assert precious.stat().st_uid == 0
    assert (theirs / "link").lstat().st_uid == 0


@pytest.mark.parametrize("name", ["auth.json", ".env"])
def test_to_a_third_user(theirs: Path, name: str) -> None:
    """Nothing of the home is given to anybody but its owner."""
    before = (theirs / name).stat().st_uid

    _refused(theirs, name, STRANGER + 1)

    assert (theirs / name).stat().st_uid == before


def _refused(home: Path, name: str = "auth.json", uid: int = STRANGER) -> None:
    try:
        run = given(home, name, uid)
    except Trouble:
        return
    assert run.state in ("rolled-back", "abandoned"), run.state


def test_a_folder_that_becomes_a_symlink(
    theirs: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He swaps the folder for a symlink after the comparison: root's file elsewhere stays root's.

    He may pass the folder there, so that only root's care keeps the file from him.
    """
    support.put(theirs / "cron" / "jobs.json", "{}")
    os.chown(theirs / "cron", STRANGER, STRANGER)
    (place / "elsewhere").mkdir(mode=0o755)
    precious = support.put(place / "elsewhere" / "jobs.json", SECRET)
    real = restore_files.set_mode_and_owner

    def swapped(*args: object, **options: object) -> None:
        os.rename(theirs / "cron", theirs / "cron.moved")
        (theirs / "cron").symlink_to(precious.parent)
        real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(restore_files, "set_mode_and_owner", swapped)

    _refused(theirs, "cron/jobs.json")

    assert precious.stat().st_uid == 0
    assert os.listxattr(precious) == []


def test_a_folder_that_was_a_symlink_before(theirs: Path, place: Path) -> None:
    """The plan has seen the same file there, but it is in no folder of his."""
    (place / "elsewhere").mkdir(mode=0o755)
    precious = support.put(place / "elsewhere" / "jobs.json", SECRET)
    (theirs / "odd").symlink_to(precious.parent)

    _refused(theirs, "odd/jobs.json")

    assert precious.stat().st_uid == 0


def test_a_file_in_a_folder_of_root_in_his_home(theirs: Path) -> None:
    """A command with sudo has made the folder too; the file is given to him all the same."""
    support.put(theirs / "cron" / "jobs.json", "{}")
    os.chown(theirs / "cron", 0, 0)
    (theirs / "cron").chmod(0o755)

    assert given(theirs, "cron/jobs.json").state == "done"

    assert (theirs / "cron" / "jobs.json").stat().st_uid == STRANGER
