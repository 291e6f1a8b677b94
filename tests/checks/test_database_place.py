"""DB-NETFS and DB-OWNER: where databases lie, and who may write them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.core.model import Severity, Status
from hermes_doctor.core.system import mounts
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.core.system.mounts import FileUser, Mount
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from hermes_doctor.diagnosis.probes.machine_view import MachineView
from tests.helpers import crash_server, damage, support
from tests.helpers.one_check import ask

GATEWAY = FileUser(4242, frozenset({4242}))


def test_healthy(home: Path) -> None:
    """Files that their owner may write, on a local disk."""
    damage.with_log(damage.history(home / "state.db"))

    result, findings = ask("database-place", home)

    assert (result.status, findings) == (Status.OK, [])


@pytest.mark.parametrize("name", ["state.db", "state.db-wal", "state.db-shm"])
def test_not_writable(home: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A file of which the gateway's user is neither owner nor may write it."""
    damage.with_log(damage.history(home / "state.db"))
    for file in home.glob("*.db*"):
        file.chmod(0o666)
    (home / name).chmod(0o644)
    monkeypatch.setattr(GatewayView, "user", lambda _: GATEWAY)

    _, [finding] = ask("database-place", home)

    assert (finding.code, finding.severity) == ("DB-OWNER", Severity.ERROR)
    assert finding.subject == name
    assert finding.data["snapshot"] == snapshot(home / name)
    assert "mode 0644" in finding.evidence[0].what


def test_a_folder_in_the_place_of_a_log(home: Path) -> None:
    """SQLite opens read-only then, or not at all."""
    damage.history(home / "state.db")
    (home / "state.db-shm").mkdir()

    _, findings = ask("database-place", home)

    assert [(f.code, f.subject) for f in findings] == [("DB-OWNER", "state.db-shm")]


@pytest.mark.parametrize(
    ("user", "uid", "gid", "mode", "may"),
    [
        (FileUser(0, frozenset()), 5, 5, 0o400, True),
        (FileUser(5, frozenset()), 5, 6, 0o600, True),
        (FileUser(5, frozenset()), 5, 6, 0o466, False),
        (FileUser(5, frozenset({6})), 7, 6, 0o660, True),
        (FileUser(5, frozenset({6})), 7, 6, 0o606, False),
        (FileUser(5, frozenset({6})), 7, 8, 0o602, True),
        (FileUser(5, frozenset({6})), 7, 8, 0o660, False),
    ],
)
def test_may_write(user: FileUser, uid: int, gid: int, mode: int, may: bool) -> None:
    """As the kernel decides: the first class that fits counts, and no other."""
    taken = snapshot(Path("/"))
    taken = type(taken)(kind="file", uid=uid, gid=gid, mode=mode)

    assert user.may_write(taken) is may


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "virtiofs", "fuse.sshfs", "fuse.grpcfuse"])
def test_shared_file_systems(home: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """One finding for the file system, not one for each database on it."""
    damage.history(home / "state.db")
    monkeypatch.setattr(MachineView, "mount", lambda *_: Mount(home, kind))

    _, [finding] = ask("database-place", home)

    assert (finding.code, finding.severity) == ("DB-NETFS", Severity.WARNING)
    assert kind in finding.title
    assert len(finding.evidence) == 2


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk"])
def test_local_file_systems(kind: str) -> None:
    """These lock as they should."""
    assert not Mount(Path("/"), kind).is_unreliable


def test_the_mount_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deepest mount counts, the last of several on one point, and names are unescaped."""
    odd = tmp_path / "with space"
    (odd / "deep").mkdir(parents=True)
    table = tmp_path / "mountinfo"
    escaped = str(odd).replace(" ", "\\040")
    table.write_text(
        "1 0 8:1 / / rw - ext4 /dev/a rw\n"
        f"2 1 0:9 / {escaped} rw,relatime shared:1 - xfs /dev/b rw\n"
        f"3 1 0:9 / {escaped} rw,relatime shared:1 master:2 - nfs4 host:/x rw\n"
        "nonsense\n"
    )
    monkeypatch.setattr(mounts, "_TABLE", table)

    assert mounts.mount_of(odd / "deep" / "state.db") == Mount(odd, "nfs4")
    assert mounts.mount_of(tmp_path) == Mount(Path("/"), "ext4")
    monkeypatch.setattr(mounts, "_TABLE", tmp_path / "none")
    assert mounts.mount_of(tmp_path) is None


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_as_whom_a_process_runs() -> None:
    """Of ourselves it is known."""
    found = mounts.user_of(os.getpid())

    assert (found.uid, os.getegid() in found.gids) == (os.geteuid(), True)


@pytest.mark.skipif(os.geteuid() != 0, reason="root gives a file away")
def test_not_readable_either() -> None:
    """A database of root's in another user's home: its own user, who looks, sees whose it is."""
    with support.reachable_folder() as place:
        home = crash_server.chown(support.healthy(place / "home"))
        os.chown(home / "state.db", 0, 0)

        for user in (None, crash_server.STRANGER):
            done = support.doctor("check", "--json", "--home", home, user=user)

            finding = support.finding(done, "DB-OWNER")
            assert finding["subject"] == "state.db"
            assert finding["evidence"][0]["what"].startswith("owner 0, mode 0600;")
