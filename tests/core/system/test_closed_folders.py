"""Folders that root has closed to a home's owner: a container's volume, a vault of root's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import closed_folders, privileges
from hermes_doctor.core.system.closed_folders import LentFolder
from hermes_doctor.core.system.separate_process import run_as
from tests.cli.test_separate_look import opened_by_root
from tests.helpers import crash_server, support
from tests.helpers.crash_server import STRANGER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root closes folders to others")


@pytest.fixture
def volume() -> Iterator[Path]:
    """A home of a stranger below a folder of root's that nobody else may enter."""
    with support.reachable_folder() as place:
        closed = place / "volumes"
        home = support.healthy(closed / "bot" / "_data")
        crash_server.chown(home)
        support.put(closed / "secret", "a secret of root's", 0o644)
        closed.chmod(0o700)
        yield home


def user_of(home: Path) -> privileges.Privileges:
    """The owner."""
    found = privileges.owner_of_home(home)
    assert found is not None and not found.can_reach
    return found


def test_it_is_shown_at_its_own_path(volume: Path) -> None:
    """The process is the owner's, and sees nothing else of the closed folder."""

    def work() -> list[object]:
        closed = volume.parents[1]
        (volume / "new").write_text("x")
        above = [sorted(os.listdir(closed)), sorted(os.listdir(volume.parent))]
        return [os.geteuid(), sorted(os.listdir(volume)), *above, os.access(closed, os.W_OK)]

    inside = sorted([*os.listdir(volume), "new"])
    uid, seen, closed, parent, writable = run_as(user_of(volume), work, {}, closed=volume)

    assert (uid, seen, closed, parent) == (STRANGER, inside, ["bot"], ["_data"])
    assert not writable
    assert (volume / "new").stat().st_uid == STRANGER
    assert "secret" in os.listdir(volume.parents[1]), "only that process has these mounts"


def test_a_link_in_the_hands_of_the_owner(volume: Path) -> None:
    """It leads to no other folder below the closed one."""
    other = support.healthy(volume.parents[1] / "other")
    profile = volume / "profiles" / "coder"
    profile.parent.mkdir()
    profile.symlink_to(other)
    os.lchown(profile.parent, STRANGER, STRANGER)

    def work() -> bool:
        return os.path.exists(profile / "config.yaml")

    assert run_as(user_of(volume), work, {}, closed=profile) is False


def test_a_profile_sees_its_root_home(volume: Path) -> None:
    """The topmost folder of the owner is shown."""
    profile = support.healthy(volume / "profiles" / "coder")
    crash_server.chown(volume)

    def work() -> bool:
        return os.path.exists(volume / "config.yaml")

    assert run_as(user_of(volume), work, {}, closed=profile)


def test_without_the_right_to_mount(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused in one sentence that says what to do."""

    def refuse(_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(closed_folders._Mounts, "separate", refuse)
    with pytest.raises(CouldNotLook) as raised:
        run_as(user_of(volume), lambda: 1, {}, closed=volume)

    assert "run hermes-doctor in the container, or as the owner" in str(raised.value)


@pytest.fixture
def vault(volume: Path) -> Path:
    """A folder below a closed one of root's: with a file, and with a folder to hide."""
    closed = volume.parents[2] / "closed"
    support.put(closed / "vault" / "mine" / "copy", "saved", 0o600)
    support.put(closed / "vault" / "other" / "copy", "of somebody else", 0o644)
    support.put(closed / "vault" / "note", "of root's", 0o644)
    support.put(closed / "secret", "a secret of root's", 0o644)
    (closed / "vault").chmod(0o700)
    closed.chmod(0o700)
    return closed / "vault"


def test_a_lent_folder(volume: Path, vault: Path) -> None:
    """The owner's process uses root's folder like its own; on the disk all stays root's."""

    def work() -> list[object]:
        (vault / "new").write_text("x")
        (vault / "mine" / "copy").rename(vault / "mine" / "kept")
        owners = [os.stat(path).st_uid for path in (vault, vault / "mine" / "kept", vault / "new")]
        shown = [sorted(os.listdir(path)) for path in (vault.parent, vault, vault / "other")]
        return [owners, shown, os.path.exists(volume / "config.yaml"), (vault / "note").read_text()]

    lent = [LentFolder(vault, hidden=("other", "note"))]
    owners, shown, home, note = run_as(user_of(volume), work, {}, closed=volume, lent=lent)

    assert owners == [STRANGER] * 3
    assert shown == [["vault"], ["mine", "new", "note", "other"], []]
    assert home and note == ""
    assert {path.stat().st_uid for path in (vault, *vault.rglob("*"))} == {0}
    assert (vault / "mine" / "kept").read_text() == "saved"
    assert (vault / "note").read_text() == "of root's"
    assert os.listdir(vault / "other") == ["copy"], "only that process has these mounts"


def test_what_cannot_be_lent(volume: Path, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the right to mount, it is refused in one sentence that says what to do."""

    def refuse(_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(closed_folders._Mounts, "separate", refuse)
    with pytest.raises(Trouble, match=r"\(operation not permitted\).*: --vault DIR$"):
        run_as(user_of(volume), lambda: 1, {}, lent=[LentFolder(vault)])


@pytest.mark.needs("strace")
@pytest.mark.parametrize(
    "command",
    [("check", "--json"), ("backup", "create"), ("fix", "--apply", "--yes")],
    ids=" ".join,
)
def test_root_opens_nothing_there(volume: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Commands work in such a home, and belong to its owner."""
    support.put(volume / ".env", b"\xef\xbb\xbfSECOND=two\n")
    crash_server.chown(volume)
    by_root, by_others = opened_by_root(command, volume, tmp_path / "log")

    assert [path for path in by_root if path.startswith(str(volume))] == []
    assert str(volume / "config.yaml") in by_others
    assert crash_server.strangers(volume) == []
    assert command[0] == "check" or list((volume / "backups" / "doctor").glob("2*"))


def test_processes_beside_it_are_of_the_same_machine(volume: Path) -> None:
    """The mounts of its own do not make all other processes look like those of a container."""
    from hermes_doctor.hermes.processes import home_of

    with subprocess.Popen(["sleep", "60"], user=STRANGER, group=STRANGER) as other:

        def work() -> bool:
            return home_of.shares_namespaces(other.pid)

        try:
            assert run_as(user_of(volume), work, {}, closed=volume)
        finally:
            other.kill()
