"""As root in a home of another user, full of traps: restic and rsync, with root's credentials."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.backup.vault import engines
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import closed_folders, privileges
from tests.cli.test_separate_look import opened_by_root
from tests.cli.test_separate_work import sick
from tests.helpers import crash_server, support
from tests.helpers.crash_server import STRANGER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can get to."""
    with support.reachable_folder() as folder:
        yield folder


@pytest.fixture
def mine(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of root's that nobody else can get to, for what is sent, and restic's settings."""
    folder = place / "mine"
    folder.mkdir(0o700)
    support.put(folder / "password", "zQcanary-password\n", 0o600)
    monkeypatch.setenv("RESTIC_PASSWORD_FILE", str(folder / "password"))
    monkeypatch.setenv("RESTIC_CACHE_DIR", str(folder / "cache"))
    return folder


def backed_up(place: Path, *, traps: bool = False) -> Path:
    """A home of a stranger with a backup."""
    home = sick(place, traps=traps)
    assert support.doctor("backup", "create", "--home", home).code in (0, 1)
    return home


@pytest.mark.needs("restic", "strace")
def test_to_restic_and_back(place: Path, mine: Path, tmp_path: Path) -> None:
    """Root opens only the chosen backup, and only to send it; the owner's process imports it."""
    home = backed_up(place, traps=True)
    vault = home / "backups" / "doctor"
    [first] = vault.glob("2*")
    where = ("--restic", str(mine / "repository"))
    tops = (str(home), str(place / "secret"))

    by_root, _ = opened_by_root(("backup", "push", "--init", *where), home, tmp_path / "log")

    opened = [path for path in by_root if path.startswith(tops)]
    assert opened
    assert [path for path in opened if not path.startswith(str(first))] == []
    assert (mine / "repository" / "config").exists()
    before = support.contents(first)
    shutil.rmtree(first)
    for words in (("list",), ("pull",)):
        by_root, _ = opened_by_root(("backup", *words, *where), home, tmp_path / words[0])
        assert [path for path in by_root if path.startswith(tops)] == []
    [back] = vault.glob("2*")
    assert {path.lstat().st_uid for path in (back, *back.rglob("*"))} == {STRANGER}
    same = {"manifest.json", "home"}  # of the import
    after = support.contents(back)
    assert {*after} - same == {*before} - same
    assert all(after[name] == before[name] for name in {*after} - same)
    assert support.doctor("backup", "verify", "--home", home).code in (0, 1)


@pytest.mark.needs("rsync", "strace")
def test_to_a_folder_with_rsync(place: Path, mine: Path, tmp_path: Path) -> None:
    """Root opens only the vault."""
    home = backed_up(place, traps=True)
    vault = home / "backups" / "doctor"
    [backup] = vault.glob("2*")
    (vault / "trap").symlink_to(place / "secret")

    words = ("backup", "push", "--rsync", str(mine / "there"))
    by_root, _ = opened_by_root(words, home, tmp_path / "log")

    opened = [path for path in by_root if path.startswith((str(home), str(place / "secret")))]
    assert [path for path in opened if not path.startswith(str(vault))] == []
    assert support.contents(mine / "there" / backup.name) == support.contents(backup)
    assert (mine / "there" / "trap").is_symlink()
    (vault / "trap").unlink()
    done = support.doctor("backup", "push", "--rsync", mine / "here", "--home", home)
    assert done.code == 0, done.err
    assert "compared byte by byte" in done.out


@pytest.mark.needs("rsync")
def test_a_vault_of_root_is_sent(place: Path, mine: Path) -> None:
    """It is sent as it is; no other user can change it."""
    home = sick(place)
    vault = mine / "vault"
    words = ("--home", home, "--vault", vault)
    assert support.doctor("backup", "create", *words).code in (0, 1)

    done = support.doctor("backup", "push", "--rsync", mine / "there", *words)

    assert done.code == 0, done.err
    [name] = [path.name for path in vault.glob("2*")]
    assert support.contents(mine / "there" / name) == support.contents(vault / name)


@pytest.mark.needs("rsync")
def test_into_a_folder_of_the_owner(place: Path) -> None:
    """It would be hidden from rsync, so the command is refused before anything is sent."""
    top = place / "user"
    top.mkdir()
    os.chown(top, STRANGER, STRANGER)
    home = backed_up(top)

    done = support.doctor("backup", "push", "--rsync", top / "there", "--home", home)

    assert (done.code, "in a folder of another user" in done.err) == (2, True), done.err
    assert not (top / "there").exists()


@pytest.fixture
def shown(place: Path) -> Path:
    """A folder of a stranger, inside another one of his."""
    folder = place / "his" / "vault"
    support.put(folder / "file", "his own")
    support.put(place / "secret" / "file", "a secret of root's")
    (place / "secret").chmod(0o700)
    (folder / "link").symlink_to(place / "secret" / "file")
    crash_server.chown(place / "his")
    return folder


def in_program(
    folder: Path, script: str, *, swapped: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a program of root's that is shown the folder; perhaps the owner swaps it before."""
    user = privileges.of(folder / "_")
    assert user is not None
    with closed_folders.shown_to_program(folder, user) as show:
        if swapped:
            folder.parent.rename(folder.parent.with_name("moved"))
            folder.parent.mkdir()
            folder.symlink_to(folder.parents[1] / "secret")
            crash_server.chown(folder.parent)
        return subprocess.run(
            ["sh", "-c", script, "sh", str(folder)],
            preexec_fn=show,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.mark.parametrize("swapped", [False, True])
def test_a_program_of_root_is_led_nowhere(shown: Path, swapped: bool) -> None:
    """It sees the folder that was opened, follows no link, and writes nothing."""
    done = in_program(shown, 'cat "$1/file"; ls "$1/.."', swapped=swapped)
    assert done.stdout == "his ownvault\n", done.stderr


def test_a_program_of_root_follows_no_link(shown: Path) -> None:
    """Inside the folder, too; and nothing there can be changed."""
    for script in ('cat "$1/link"', 'echo x > "$1/new"', 'echo x > "$1/../new"'):
        done = in_program(shown, script)
        assert (done.returncode != 0, done.stdout) == (True, ""), script
    assert sorted(os.listdir(shown)) == ["file", "link"]


def test_a_folder_that_is_not_the_owner_s(shown: Path, place: Path) -> None:
    """It could be any folder of the machine."""
    user = privileges.of(shown / "_")
    shutil.rmtree(shown)
    shown.symlink_to("/etc")
    assert user is not None
    refused = pytest.raises(Trouble, match="does not belong to the owner")
    with refused, closed_folders.shown_to_program(shown, user):
        pass


def test_without_the_right_to_mount(shown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused in one sentence that says what to do."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(closed_folders._Mounts, "_call", refuse)
    user = privileges.of(shown / "_")
    assert user is not None
    refused = pytest.raises(Trouble, match=r"\(operation not permitted\)\. Nothing was sent\. Run ")
    with refused, closed_folders.shown_to_program(shown, user):
        pass


@pytest.mark.needs("rsync")
def test_without_the_right_to_mounts_of_its_own() -> None:
    """The program is not started."""

    def refuse() -> None:
        raise PermissionError(1, "Operation not permitted")

    with pytest.raises(Trouble, match=r"does not let root show the backups to rsync.*Nothing was"):
        engines._run(["rsync", "--version"], show=refuse)


def lost(place: Path) -> Path:
    """A home of a stranger, in a folder of his, that will be lost."""
    top = place / "user"
    home = support.healthy(top / "home")
    (home / "logs").rmdir()
    crash_server.chown(top)
    return home


@pytest.mark.needs("strace")
def test_a_lost_home(place: Path, mine: Path, tmp_path: Path) -> None:
    """Root creates the folder as the owner of the one above, and then opens nothing in it."""
    home, vault = lost(place), mine / "vault"
    made = support.doctor("backup", "create", "--json", "--home", home, "--vault", vault)
    assert made.code == 0, made.err
    saved = support.contents(home)
    shutil.rmtree(home)

    words = ("backup", "restore", str(made.json["id"]), "--yes", "--vault", str(vault))
    by_root, _ = opened_by_root(words, home, tmp_path / "log")

    assert [path for path in by_root if path.startswith(str(home))] == []
    after = support.contents(home)
    assert {name: after.get(name) for name in saved} == saved
    assert crash_server.strangers(home) == []
    assert (home.stat().st_uid, home.stat().st_mode & 0o777) == (STRANGER, 0o700)


@pytest.mark.needs("restic", "strace")
def test_a_lost_home_from_restic(place: Path, mine: Path, tmp_path: Path) -> None:
    """The same when a backup is fetched."""
    home = lost(place)
    assert support.doctor("backup", "create", "--home", home).code == 0
    where = ("--restic", str(mine / "repository"))
    assert support.doctor("backup", "push", "--init", *where, "--home", home).code == 0
    shutil.rmtree(home)

    by_root, _ = opened_by_root(("backup", "pull", *where), home, tmp_path / "log")

    assert [path for path in by_root if path.startswith(str(home))] == []
    assert len([*(home / "backups" / "doctor").glob("2*")]) == 1
    assert crash_server.strangers(home) == []


def test_a_lost_home_behind_a_link(place: Path, mine: Path) -> None:
    """A link of the owner does not make root create a home where only root may."""
    home, vault = lost(place), mine / "vault"
    made = support.doctor("backup", "create", "--json", "--home", home, "--vault", vault)
    shutil.rmtree(home)
    link = home.with_name("link")
    link.symlink_to(mine)
    os.lchown(link, STRANGER, STRANGER)
    before = sorted(os.listdir(mine))

    words = ("restore", made.json["id"], "--yes", "--other-home", "--vault", vault)
    done = support.doctor("backup", *words, "--home", link / "new")

    assert done.code == 2, done.out
    assert sorted(os.listdir(mine)) == before


def test_a_lost_home_without_the_backup(place: Path, mine: Path) -> None:
    """Nothing is left of the folder."""
    home, vault = lost(place), mine / "vault"
    assert support.doctor("backup", "create", "--home", home, "--vault", vault).code == 0
    shutil.rmtree(home)

    done = support.doctor("backup", "restore", "none", "--yes", "--home", home, "--vault", vault)

    assert (done.code, home.exists()) == (2, False), done.err
