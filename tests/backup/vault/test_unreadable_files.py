"""A file that cannot be read does not keep the rest of a home from being backed up."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.backup.vault import whole_backup
from hermes_doctor.backup.vault.save import why_unreadable
from hermes_doctor.backup.vault.unreadable_files import MissingFile, needed_for_update
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.files import walk
from hermes_doctor.operations.updates import before_update
from tests.helpers import crash_server, support
from tests.helpers.database_writer import back_up
from tests.scenarios.test_steps import apply, item, replaced

ORDINARY = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes an ordinary user")


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A healthy home in a folder that every user can get to."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        yield support.healthy(Path(place) / "home")


def give(home: Path, uid: int = ORDINARY) -> None:
    """Give the home to an ordinary user."""
    for base, _, files in os.walk(home):
        for name in (base, *(f"{base}/{file}" for file in files)):
            os.chown(name, uid, uid, follow_symlinks=False)


@pytest.fixture
def deep(home: Path) -> Iterator[Path]:
    """A home with folders nested so deep that the kernel takes no path to the last ones."""
    here = os.open(home, os.O_RDONLY)
    names = []
    for _ in range(24):
        name = "d" * 200
        os.mkdir(name, dir_fd=here)
        last, here = here, os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(last)
        names.append(name)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    yield home
    while names:  # pytest cannot remove it
        here = os.open(home, os.O_RDONLY)
        for name in names:
            last, here = here, os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(last)
        os.unlink("file", dir_fd=here)
        os.close(here)
        here = os.open(home, os.O_RDONLY)
        for name in names[:-1]:
            last, here = here, os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(last)
        os.rmdir(names.pop(), dir_fd=here)
        os.close(here)


def test_a_path_that_is_too_long(deep: Path) -> None:
    """The rest is saved, the path is listed everywhere, and a restore leaves it alone."""
    done = support.doctor("backup", "create", "--json", "--home", deep)

    assert done.code == 1, done.err
    made = done.json
    assert not made["whole"]
    reasons = {one["reason"] for one in made["missing"]}
    assert reasons == {"its path is too long"}
    assert all(one["path"].startswith("ddd") for one in made["missing"])
    shown = support.doctor("backup", "create", "--home", deep)
    assert shown.code == 1
    assert "Incomplete: " in shown.out
    assert "its path is too long" in shown.out
    store = Vault(Home(deep))
    backup = store.load(made["id"])
    assert {"config.yaml", ".env", "state.db", "d" * 200 + "/file"} <= {
        one.path for one in backup.entries
    }
    assert [one.document for one in backup.missing] == made["missing"]
    listed = support.doctor("backup", "list", "--json", "--home", deep).json["backups"]
    assert listed[0]["missing"] == made["missing"]
    verified = support.doctor("backup", "verify", made["id"], "--json", "--home", deep)
    assert verified.code == 1
    assert verified.json["backups"][0]["whole"]
    assert verified.json["backups"][0]["missing"] == made["missing"]
    (deep / ".env").write_text("now")
    back = support.doctor("backup", "restore", made["id"], "--yes", "--json", "--home", deep)
    assert back.code == 0, back.err
    assert back.json["missing"] == made["missing"]
    assert (deep / ".env").read_text() != "now"


def test_many_nested_folders(tmp_path: Path) -> None:
    """A tree deeper than Python's recursion is walked like any other."""
    name = "/".join("n" * 1500)
    subprocess.run(["mkdir", "-p", tmp_path / name], check=True)

    try:
        found = [base for base, _, _ in walk(tmp_path)]
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "n"], check=True)

    assert len(found) == 1501
    assert found[-1] == str(tmp_path / name)


@as_root
def test_a_file_that_may_not_be_read(reachable: Path) -> None:
    """An ordinary user, whose home holds a file and a folder of root's; root works as that user."""
    home = reachable
    support.put(home / "notes.txt", "root's")
    support.put(home / "hidden" / "file", "root's")
    give(home)
    os.chown(home / "notes.txt", 0, 0)
    os.chown(home / "hidden", 0, 0)
    (home / "hidden").chmod(0o700)

    done = support.doctor("backup", "create", "--json", "--home", home, user=ORDINARY)
    by_root = support.doctor("backup", "create", "--json", "--home", home)

    notes = {"path": "notes.txt", "reason": "permission denied", "folder": False}
    folder = {"path": "hidden", "reason": "permission denied", "folder": True}
    for one in (done, by_root):
        assert one.code == 1, one.err
        assert one.json["missing"] == [notes, folder]
    again = support.doctor("backup", "create", "--json", "--home", home, user=ORDINARY)
    assert again.json["shares"]  # an incomplete one is something to share with


@as_root
def test_the_last_whole_backup_stays(reachable: Path) -> None:
    """Incomplete backups never replace a whole one when old ones are pruned."""
    home = reachable
    give(home)
    whole = support.doctor("backup", "create", "--json", "--home", home, user=ORDINARY)
    os.chown(support.put(home / "notes.txt", "root's"), 0, 0)
    for _ in range(3):
        done = support.doctor(
            "backup", "create", "--daily", "1", "--json", "--home", home, user=ORDINARY
        )
        assert done.code == 1, done.err

    listed = support.doctor("backup", "list", "--json", "--home", home).json["backups"]

    assert [one["whole"] for one in listed] == [True, False]
    assert listed[0]["id"] == whole.json["id"]


@pytest.mark.sampled
@as_root
@pytest.mark.parametrize(
    ("name", "stops"), [("state.db", True), ("config.yaml", True), (".env", True), ("x.txt", False)]
)
def test_an_update_needs_what_a_rollback_needs(reachable: Path, name: str, stops: bool) -> None:
    """Without a database or a setting in the backup no update begins; another file is a warning."""
    home = reachable
    if not (home / name).exists():
        support.put(home / name, "x")
    give(home)
    os.chown(home / name, 0, 0)
    (home / name).chmod(0o600)
    warned: list[str] = []

    if stops:
        with pytest.raises(Trouble, match=name):
            before_update.back_up(
                Home(home), before_update.UpdatePreflight((), ()), warn=warned.append
            )
    else:
        before_update.back_up(Home(home), before_update.UpdatePreflight((), ()), warn=warned.append)

    assert [name in text for text in warned] == [True] * (not stops)


def test_what_a_rollback_needs() -> None:
    """Databases, settings, secrets and jobs, also of a profile; and folders that hold them."""
    wanted = [
        *("state.db", "kanban/boards/x/kanban.db", "config.yaml", ".env", "auth.json"),
        *("profiles/coder/.env", "cron/jobs.json", "other.db", "other.db-wal"),
    ]
    folders = ["profiles", "profiles/coder", "cron", "platforms", "kanban/boards", "pairing"]
    others = ["notes.txt", "sessions/one.json", "skills/x/SKILL.md", "profiles/coder/notes"]

    assert len(needed_for_update(MissingFile(one, "") for one in wanted)) == len(wanted)
    assert len(needed_for_update(MissingFile(one, "", is_folder=True) for one in folders)) == len(
        folders
    )
    assert needed_for_update(MissingFile(one, "") for one in others) == []
    assert needed_for_update([MissingFile("workspace/deep", "", is_folder=True)]) == []


def test_a_disk_that_cannot_read_a_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An input error of one file leaves it out; the same error of the vault stops the backup."""
    file = support.put(home / "notes.txt", "x" * 100)
    bad = file.stat().st_ino

    def read(fd: int, count: int) -> bytes:
        if os.fstat(fd).st_ino == bad:
            raise OSError(5, os.strerror(5))
        return real(fd, count)

    real = os.read
    source = next(one for one in whole_backup.list_sources(Home(home)) if one.name == "notes.txt")
    monkeypatch.setattr(os, "read", read)
    assert why_unreadable([source], OSError(5, "")) == "input/output error"
    bad = 0
    assert why_unreadable([source], OSError(5, "")) is None


@pytest.mark.parametrize(
    ("call", "error"), [("open", "input/output error"), ("read", "bad file descriptor")]
)
def test_a_run_never_does_without_a_backup(
    home: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: str
) -> None:
    """A file that cannot be backed up stops the run, which leaves everything as it was."""
    file = support.put(home / "notes.txt", "x" * 100)
    before = crash_server.state(home)
    step = replaced(file, b"new")
    spoil(monkeypatch, call, file)

    with pytest.raises(Trouble, match=f"(?i){error}"):
        apply(home, item(step))

    monkeypatch.undo()
    assert crash_server.state(home) == before
    assert Vault(Home(home)).ids() == []
    [journal] = crash_server.journals(home)
    assert journal["state"] == "abandoned"


def spoil(monkeypatch: pytest.MonkeyPatch, call: str, file: Path) -> None:
    """Let one file fail, when it is opened or, however that is done, when it is read."""
    bad = file.stat().st_ino
    real = os.open

    def opened(path: Any, flags: int, *args: Any, **options: Any) -> int:
        fd = real(path, flags, *args, **options)
        if os.fstat(fd).st_ino != bad:
            return fd
        os.close(fd)
        if call == "open":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(file))
        return real(path, os.O_WRONLY, *args, **options)  # the kernel refuses to read from it

    monkeypatch.setattr(os, "open", opened)


def test_the_manifest_of_an_incomplete_backup(deep: Path) -> None:
    """It is one JSON document as before, with one more field at its head."""
    made = back_up(deep)
    document = json.loads((made.folder / "manifest.json").read_bytes())

    assert document["whole"] is False
    assert document["missing"] == [one.document for one in made.missing]
    assert len(document["entries"]) == len(made.entries)
