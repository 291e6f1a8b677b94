"""What Hermes itself makes: its zips and snapshots found, examined, and restored from."""

from __future__ import annotations

import json
import os
import shutil
import stat
import zipfile
from pathlib import Path

import pytest

from hermes_doctor.backup.vault import hermes_backups
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from tests.helpers import support

NAMES = ("config.yaml", ".env", "auth.json", "state.db", "kanban.db")


def zipped(home: Path, path: Path, names: tuple[str, ...] = NAMES, prefix: str = "") -> Path:
    """A zip as `hermes backup` makes it."""
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(home / name, prefix + name)
    return path


def snapshot(home: Path, name: str, names: tuple[str, ...] = NAMES) -> Path:
    """A snapshot as `hermes update` makes it."""
    folder = home / "state-snapshots" / name
    folder.mkdir(parents=True)
    for one in names:
        shutil.copy2(home / one, folder / one)
    sizes = {one: (folder / one).stat().st_size for one in names}
    (folder / "manifest.json").write_text(json.dumps({"id": name, "files": sizes}))
    return folder


def verified(home: Path, *args: str | Path) -> dict[str, list[str]]:
    """`backup verify`: what is wrong, by name."""
    done = support.doctor("backup", "verify", "--json", "--home", home, *args)
    assert done.code in (0, 1), done.out + done.err
    found = {one["id"]: one["wrong"] for one in done.json["backups"]}
    assert done.code == int(any(found.values()))
    return found


def test_all_that_lie_about(home: Path) -> None:
    """Each is examined, and it is said which are whole; the home and they stay as they are."""
    zipped(home, home / "backups" / "pre-update-2026-01-01-000000.zip")
    zipped(home, home.parent / "hermes-backup-2026.zip", ("config.yaml", ".env"))
    snapshot(home, "20260102-000000-pre-update")
    snapshot(home, "20260103-000000-pre-update", ("config.yaml", ".env", "auth.json", "kanban.db"))
    (home / "state-snapshots" / "20260104-000000").mkdir()
    before = support.contents(home)

    found = verified(home, "--hermes")

    assert found == {
        "pre-update-2026-01-01-000000.zip": [],
        "hermes-backup-2026.zip": [f"{name} is missing" for name in NAMES[2:]],
        "20260102-000000-pre-update": [],
        "20260103-000000-pre-update": ["state.db is missing"],
        "20260104-000000": ["it has no manifest, so it was not finished"],
    }
    assert support.contents(home) == before
    assert os.listdir(home / "backups" / "doctor") == []
    listed = support.doctor("backup", "list", "--hermes", "--home", home).out
    assert "pre-update-2026-01-01" in listed
    assert "20260103-000000-pre-update" in listed


@pytest.mark.parametrize("how", ["database", "bytes", "cut", "size", "gone", "manifest"])
def test_damage(home: Path, how: str) -> None:
    """A zip or a snapshot that is not whole, in each way that it can be."""
    archive = zipped(home, home / "backups" / "pre-update-x.zip")
    folder = snapshot(home, "20260102-000000")
    data = archive.read_bytes()
    if how == "database":
        support.clobber(folder / "state.db", b"\xff" * 200, 4096 * 3)
        support.clobber(home / "state.db", b"\xff" * 200, 4096 * 3)
        zipped(home, archive)
    elif how == "bytes":
        archive.write_bytes(data[:3000] + bytes([data[3000] ^ 1]) + data[3001:])
        support.clobber(folder / "kanban.db", b"\xff" * 5000, 0)
    elif how == "cut":
        archive.write_bytes(data[: len(data) // 2])
        (folder / "state.db").write_bytes((folder / "state.db").read_bytes()[:-4096])
    elif how == "size":
        archive.write_bytes(b"")
        (folder / "auth.json").write_text("{}")
    elif how == "gone":
        archive.write_bytes(b"PK\x05\x06" + bytes(18))
        (folder / "state.db").unlink()
    else:
        archive.write_bytes(b"not a zip at all")
        (folder / "manifest.json").write_text('{"files": []}')

    found = verified(home, "--hermes")

    assert found["pre-update-x.zip"], how
    assert found["20260102-000000"], how


@pytest.mark.sampled
@pytest.mark.parametrize("prefix", ["", ".hermes/"])
def test_restore_from_a_zip(home: Path, tmp_path: Path, prefix: str) -> None:
    """What is asked for comes back, as a run that can be undone."""
    archive = zipped(home, tmp_path / "hermes-backup-1.zip", prefix=prefix)
    saved = support.contents(home)
    support.put(home / ".env", "gone\n")
    support.clobber(home / "state.db", b"damage", 50)
    worse = support.contents(home)

    done = support.doctor("backup", "restore", archive, "env", "history", "--yes", "--home", home)

    assert done.code == 0, done.err
    now = support.contents(home)
    for name in (".env", "state.db"):
        assert now[name] == saved[name]
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == worse


def test_restore_from_a_snapshot(home: Path) -> None:
    """By its name; a log that was beside the database belongs to it, today's does not."""
    folder = snapshot(home, "20260102-000000-pre-update")
    saved = (home / "state.db").read_bytes()
    support.put(home / "state.db-wal", "of today")
    support.clobber(home / "state.db", b"damage", 50)

    done = support.doctor("backup", "restore", folder.name, "state.db", "--yes", "--home", home)

    assert done.code == 0, done.err
    assert (home / "state.db").read_bytes() == saved
    assert not (home / "state.db-wal").exists()


def test_what_tells_of_processes_of_then_is_not_taken(home: Path, tmp_path: Path) -> None:
    """As Hermes' own import does it."""
    support.put(home / "gateway_state.json", "{}")
    support.put(home / "processes.json", "[]")
    archive = zipped(home, tmp_path / "a.zip", (*NAMES, "gateway_state.json", "processes.json"))
    store = Vault(Home(home))
    copy = hermes_backups.find_named(Home(home), str(archive))
    assert copy is not None

    made = hermes_backups.import_backup(store, copy)

    assert {entry.path for entry in made.entries} == set(NAMES)
    assert not made.whole
    assert store.verify(made) == []


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "a\\b", ""])
def test_names_that_lead_out(home: Path, tmp_path: Path, name: str) -> None:
    """Nothing is taken from an archive that names files outside."""
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("config.yaml", "a: 1\n")
        info = zipfile.ZipInfo("x")
        info.filename = name or "."
        file.writestr(info, "evil")

    done = support.doctor("backup", "restore", archive, "--yes", "--home", home)

    if name:
        assert done.code == 2
        assert "outside of a home" in done.err
    assert not (home.parent / "evil").exists()


@pytest.mark.parametrize("more", ["./config.yaml", "a//b", "d", "d/e/f", "n" * 256])
def test_names_that_cannot_be_beside_each_other(home: Path, more: str) -> None:
    """Such a zip is not whole; and the others are judged all the same."""
    bad = zipped(home, home / "backups" / "pre-update-bad.zip")
    with zipfile.ZipFile(bad, "a") as archive:
        for name in ("a/b", "d/e", more):
            archive.writestr(name, "x")
    zipped(home, home / "backups" / "pre-update-good.zip")

    found = verified(home, "--hermes")

    assert found["pre-update-good.zip"] == []
    assert len(found["pre-update-bad.zip"]) == 1


def test_who_may_read_what_comes_back(home: Path, tmp_path: Path) -> None:
    """A zip that was packed anew elsewhere knows nothing of secrets; we do."""
    for name in NAMES:
        (home / name).chmod(0o644)
    archive = zipped(home, tmp_path / "hermes-backup-1.zip")
    for name in NAMES:
        (home / name).chmod(0o600)

    assert support.doctor("backup", "restore", archive, "--yes", "--home", home).code == 0

    modes = {name: (home / name).stat().st_mode & 0o777 for name in NAMES}
    assert modes == dict.fromkeys(NAMES, 0o600) | {"config.yaml": 0o644}


def test_a_secret_by_an_odd_name(home: Path) -> None:
    """A snapshot may list `./.env`: that is the file with the secrets, too."""
    folder = snapshot(home, "20260102-000000-pre-update", (".env",))
    (folder / ".env").chmod(0o644)
    listed = folder / "manifest.json"
    listed.write_text(listed.read_text().replace('".env"', '"./.env"'))
    store, copy = Vault(Home(home)), hermes_backups.find_named(Home(home), folder.name)
    assert copy is not None

    [entry] = hermes_backups.import_backup(store, copy).entries

    assert (entry.path, entry.mode) == (".env", 0o600)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another user")
def test_root_is_not_led_to_another_s_zip(home: Path, tmp_path: Path) -> None:
    """A symlink in a user's home does not have root read what only root may."""
    secret = zipped(home, tmp_path / "roots" / "secret.zip")
    secret.chmod(0o600)
    (tmp_path / "roots").chmod(0o700)
    (home / "backups").mkdir(exist_ok=True)
    (home / "backups" / "pre-update-1.zip").symlink_to(secret)
    for path in (home, *home.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    assert stat.S_ISLNK((home / "backups" / "pre-update-1.zip").lstat().st_mode)

    found = verified(home, "--hermes")

    assert found["pre-update-1.zip"], "it was read"
    link = home / "backups" / "pre-update-1.zip"
    done = support.doctor("backup", "restore", link, "--yes", "--home", home)
    assert done.code == 2
