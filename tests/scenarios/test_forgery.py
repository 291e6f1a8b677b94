"""Root believes nothing that the owner of a home could have written.

Manifests and receipts lie in the home. Their seal is a hash that anybody can make, so whatever
they say, root must do nothing with them that the home's owner could not do himself.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import crash_server, forged_vault, support
from tests.helpers.crash_server import STRANGER, Ended, Server
from tests.helpers.forged_vault import ENEMY, ID, entry, record

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to lose here")

STATES = {"undo": "done", "recovery": "committing"}
WAYS = ("restore", *STATES)
"""Each way in which root comes to act on what lies in a vault."""
THIRD = 54321
"""A user who is neither the home's owner nor root."""
CAPABILITY = base64.b64encode(bytes.fromhex("0100000200040000000000000000000000000000")).decode()
"""cap_setuid for any user who runs the file."""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of root's with a file that the enemy would like to be his."""
    folder = tmp_path / "outside"
    support.put(folder / "victim", "root's own", 0o644)
    support.put(folder / "secret", "root's secret", 0o600)
    return folder


@pytest.fixture
def theirs(home: Path) -> Path:
    """A home of another user, with a file of its own in a folder of its own."""
    support.put(home / "tool", ENEMY, 0o755)
    support.put(home / "sessions" / "victim", "the user's own", 0o644)
    return home


@dataclass(frozen=True)
class Root:
    """Root, who calls the commands that act on what lies in a vault."""

    server: Server

    def attacked(self, home: Path, way: str, *entries: dict[str, Any]) -> Ended:
        """Act on a forged backup with these entries, in one of the ways."""
        forged_vault.manifest(home, *entries)
        crash_server.chown(home)
        if way != "restore":
            records = [record(home, one) for one in entries]
            forged_vault.receipt(home, STATES[way], *records)
        crash_server.chown(home)
        return self.comes_by(home, way)

    def comes_by(self, home: Path, way: str) -> Ended:
        """Act on the forgery that is there."""
        args = {
            "restore": ("backup", "restore", ID, "--yes"),
            "undo": ("undo", ID, "--yes", "--force"),
            "recovery": ("fix", "--apply", "--yes"),
        }[way]
        done = self.server(*args, "--home", home)
        assert "Traceback" not in done.err
        assert "bug in" not in done.err, done.err
        return done


@pytest.fixture(scope="module")
def root() -> Root:
    """Root, with a warm process for all commands of this file."""
    return Root(crash_server.serving())


def facts(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything about a folder but when it was last read."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [folder, *folder.rglob("*")]:
        st = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        found[str(path)] = (st.st_mode, st.st_uid, st.st_gid, st.st_ino, st.st_ctime_ns, content)
    return found


def powerful(home: Path) -> list[str]:
    """What in a home could give its owner rights that are not his."""
    found = []
    for path in home.rglob("*"):
        if path.is_symlink():
            continue
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o7000:
            found.append(f"{path.name} {mode:04o}")
        with contextlib.suppress(OSError):
            names = os.listxattr(path)
            found += [f"{path.name} {n}" for n in names if n.startswith(("security.", "trusted."))]
    return found


# -- modes and attributes ------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["file", "mode"])
@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o1755, 0o6777, 0o100755])
def test_no_set_user_id(root: Root, theirs: Path, way: str, kind: str, mode: int) -> None:
    """A manifest cannot make root give a file of the enemy's the right to run as root."""
    done = root.attacked(theirs, way, entry("tool", kind, mode=mode))

    assert powerful(theirs) == []
    assert done.code == 2
    assert "damaged" in done.err
    assert (theirs / "tool").stat().st_uid == STRANGER
    assert (theirs / "tool").read_bytes() == ENEMY


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["security.capability", "trusted.overlay.opaque"])
def test_no_capability(root: Root, theirs: Path, way: str, name: str) -> None:
    """Nor attributes that only root may set, among them the rights of a program."""
    (theirs / "tool").write_text("something else")

    done = root.attacked(theirs, way, entry("tool", mode=0o755, xattrs={name: CAPABILITY}))

    assert powerful(theirs) == []
    assert done.code == 2
    assert "damaged" in done.err


def test_a_capability_could_be_set_here(tmp_path: Path) -> None:
    """The test above means something: root's own call would be obeyed on this disk."""
    path = support.put(tmp_path / "tool", ENEMY, 0o755)
    try:
        os.setxattr(path, "security.capability", base64.b64decode(CAPABILITY))
    except OSError as error:
        pytest.skip(f"this disk keeps no capabilities ({error.strerror})")

    assert powerful(tmp_path) == ["tool security.capability"]


def test_a_backup_takes_no_rights_along(root: Root, theirs: Path) -> None:
    """Nor does an honest backup of such a file bring them back: root's backup, root's restore."""
    (theirs / "tool").chmod(0o4755)
    crash_server.chown(theirs)
    (theirs / "tool").chmod(0o4755)
    with contextlib.suppress(OSError):
        os.setxattr(theirs / "tool", "security.capability", base64.b64decode(CAPABILITY))
    assert support.doctor("backup", "create", "--home", theirs).code == 0
    [id] = [path.name for path in theirs.glob("backups/doctor/2*")]
    (theirs / "tool").unlink()

    done = support.doctor("backup", "restore", id, "tool", "--yes", "--home", theirs)

    assert done.code == 0, done.out + done.err
    assert (theirs / "tool").read_bytes() == ENEMY
    assert powerful(theirs) == []


# -- places --------------------------------------------------------------------------------


def aims(home: Path, outside: Path) -> list[str]:
    """Paths that lead outside, with the symlinks that they need."""
    (home / "link").symlink_to(outside)
    (home / "sessions" / "link").symlink_to("../link")
    return [
        "../outside/victim",
        "sessions/../../outside/victim",
        f"{outside}/victim",
        f"/{outside}/victim",
        "link/victim",
        "sessions/link/victim",
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["file", "mode", "absent", "symlink"])
def test_nothing_outside(root: Root, theirs: Path, outside: Path, way: str, kind: str) -> None:
    """No entry of any kind reaches a file outside the home, whatever its path looks like."""
    intact = facts(outside)
    for path in aims(theirs, outside):
        forged = entry(path, kind, uid=STRANGER, mode=0o666, target="/etc")

        root.attacked(theirs, way, forged)

        assert facts(outside) == intact, path


@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS)
def test_nothing_new_outside(root: Root, theirs: Path, outside: Path, way: str) -> None:
    """Nor is anything made there that was not there."""
    (outside / "victim").unlink()
    intact = facts(outside)
    for path in aims(theirs, outside):
        root.attacked(theirs, way, entry(path, uid=STRANGER))

        assert facts(outside) == intact, path


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", ["../outside/victim", "sessions/../../outside/victim"])
def test_no_way_up_in_a_home_of_ones_own(
    root: Root, theirs: Path, outside: Path, way: str, path: str
) -> None:
    """In a home of root's own, too: a backup may come from somewhere else."""
    intact = facts(outside)
    forged = entry(path)
    forged_vault.manifest(theirs, forged)
    if way != "restore":
        forged_vault.receipt(theirs, STATES[way], record(theirs, forged))

    done = root.comes_by(theirs, way)

    assert facts(outside) == intact
    if way != "recovery":  # which passes over a receipt that is none
        assert done.code == 2
        assert "is damaged" in done.err


@pytest.mark.parametrize(("own", "up"), [(True, True), (False, True), (False, False)])
def test_no_leftovers_are_removed_outside(
    root: Root, theirs: Path, outside: Path, own: bool, up: bool
) -> None:
    """A receipt that only has to be tidied up after does not tidy up elsewhere."""
    for end in ("new", "old", "back"):
        support.put(outside / f".victim.hermes-doctor-{ID}.{end}", "root's own")
    intact = facts(outside)
    forged = entry("../outside/victim" if up else f"{outside}/victim")
    if not own:
        crash_server.chown(theirs)
    forged_vault.receipt(theirs, "ending", record(theirs, forged), end="done")

    root.comes_by(theirs, "recovery")

    assert facts(outside) == intact


@pytest.mark.parametrize(
    ("way", "first"),
    [
        *((way, "the link") for way in WAYS),
        ("restore", "the loot"),
        ("undo", "the loot"),
        ("recovery", "the loot"),
    ],
)
def test_one_entry_opens_the_way_for_the_next(
    root: Root, theirs: Path, outside: Path, way: str, first: str
) -> None:
    """A folder that the forgery itself replaces by a symlink leads nowhere either."""
    (theirs / "sessions").rename(theirs / "real")
    (theirs / "sessions").symlink_to("real")
    intact = facts(outside)
    crash_server.chown(theirs)
    link = entry("sessions", "symlink", target=str(outside), uid=STRANGER, gid=STRANGER)
    loot = entry("sessions/victim", uid=STRANGER, gid=STRANGER)
    # The enemy knows what the file outside is: anybody may read it.
    known = record(theirs, loot, after=forged_vault.state(outside / "victim"))
    entries, records = [link, loot], [record(theirs, link), known]
    if first == "the loot":
        entries.reverse()
        records.reverse()
    forged_vault.manifest(theirs, *entries)
    if way != "restore":
        forged_vault.receipt(theirs, STATES[way], *records)
    crash_server.chown(theirs)

    root.comes_by(theirs, way)

    assert facts(outside) == intact


@pytest.mark.parametrize("run_state", ["backing-up", "staging"])
@pytest.mark.parametrize("inside", [True, False])
def test_half_a_backup_of_somebody_else(
    root: Root, theirs: Path, outside: Path, run_state: str, inside: bool
) -> None:
    """A receipt that names another vault does not have root remove what lies there."""
    other = support.healthy(outside / "home") if inside else outside
    vault = other / "backups" / "doctor" if inside else other
    precious = support.put(vault / f"{ID}.partial" / "files" / "precious", "root's own")
    forged_vault.receipt(theirs, run_state, vault=str(vault))
    crash_server.chown(theirs)

    root.comes_by(theirs, "recovery")

    assert precious.exists()


@pytest.mark.parametrize("way", ["undo", "recovery"])
def test_the_backup_of_another_home(root: Root, theirs: Path, outside: Path, way: str) -> None:
    """A receipt cannot have root bring files out of somebody else's vault."""
    other = support.healthy(outside / "home")
    forged_vault.manifest(other, entry("tool", uid=STRANGER))
    support.put(other / "backups" / "doctor" / ID / "files" / "tool", ENEMY)
    (theirs / "tool").write_text("mine")
    crash_server.chown(theirs)
    vault = str(other / "backups" / "doctor")
    forged_vault.receipt(theirs, STATES[way], record(theirs, entry("tool")), vault=vault)
    crash_server.chown(theirs)

    done = root.comes_by(theirs, way)

    assert (theirs / "tool").read_text() == "mine"
    assert "another home" in done.err


@pytest.mark.parametrize("name", ["files", "files/tool"])
def test_a_copy_that_leads_to_a_secret(root: Root, theirs: Path, outside: Path, name: str) -> None:
    """A copy that is a symlink to a file of root's does not become the enemy's to read."""
    (outside / "tool").write_text("root's secret")
    (outside / "tool").chmod(0o600)
    sha = hashlib.sha256(b"root's secret").hexdigest()
    folder = forged_vault.manifest(theirs, entry("tool", uid=STRANGER, sha256=sha, size=13))
    place = folder / name
    if place.is_dir():
        shutil.rmtree(place)
        place.symlink_to(outside)
    else:
        place.unlink()
        place.symlink_to(outside / "tool")
    crash_server.chown(theirs)

    root.comes_by(theirs, "restore")

    for path in theirs.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.parent.resolve() != outside:
            assert b"root's secret" not in path.read_bytes(), path


# -- owners --------------------------------------------------------------------------------


def owners(home: Path) -> dict[str, int]:
    """Who owns each file of a home."""
    return {str(path.relative_to(home)): path.lstat().st_uid for path in home.rglob("*")}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("uid", [0, THIRD])
@pytest.mark.parametrize("kind", ["file", "mode", "symlink"])
def test_no_wrong_owner(root: Root, theirs: Path, way: str, uid: int, kind: str) -> None:
    """No file of the enemy's becomes root's or a third user's because a manifest says so."""
    root.attacked(theirs, way, entry("tool", kind, uid=uid, gid=uid, mode=0o755, target="/etc"))

    assert set(owners(theirs).values()) == {STRANGER}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_what_root_keeps_in_the_home(root: Root, theirs: Path, way: str, mode: int) -> None:
    """A private file of root's in the home is neither given away nor opened."""
    mine = support.put(theirs / "sessions" / "root's", "root's secret", 0o600)
    crash_server.chown(theirs)
    os.chown(mine, 0, 0)
    forged = entry("sessions/root's", "mode", uid=STRANGER, gid=STRANGER, mode=mode)
    forged_vault.manifest(theirs, forged)
    if way != "restore":
        forged_vault.receipt(theirs, STATES[way], record(theirs, forged))
    crash_server.chown(theirs / "backups")

    root.comes_by(theirs, way)

    st = mine.stat()
    assert (st.st_uid, stat.S_IMODE(st.st_mode)) == (0, 0o600)
