"""Backups: made, listed, verified to the bit, restored as a run, pruned with care."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.backup.vault import free_space, manifest, vault as vaults, whole_backup
from hermes_doctor.backup.vault.manifest import MANIFEST, Backup, BackupSource, seal
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.files import snapshot
from tests.helpers import support


def create(home: Path, *args: str | Path) -> dict[str, Any]:
    """`backup create --json`."""
    done = support.doctor("backup", "create", "--json", "--home", home, *args)
    assert done.code == 0, done.err
    made: dict[str, Any] = done.json
    return made


def backup_of(home: Path, *names: str, id: str | None = None) -> Backup:
    """A small backup made in this process."""
    where = Home(home)
    sources = [BackupSource(name, str(home / name), snapshot(home / name)) for name in names]
    return Vault(where).create(sources, reason="a test", hermes="0.19.0", id=id)


def aged(home: Path, days: int, suffix: str = "aaaa") -> str:
    """A whole backup that was made so many days ago."""
    then = datetime.now(UTC) - timedelta(days=days)
    made = backup_of(home, "config.yaml", id=f"{then:%Y%m%d-%H%M%S}-{suffix}")
    (made.folder / "manifest.json").write_bytes(manifest.seal(made._replace(created_at=then)))
    return made.id


def test_create(home: Path) -> None:
    """Everything that nothing can make anew is saved; logs, caches and lock files are not."""
    support.put(home / "cron" / "jobs.json", "[]")
    support.put(home / "logs" / "gateway.log", "x")
    support.put(home / "cache" / "x", "x")
    support.put(home / "gateway.pid", "1")
    support.put(home / "profiles" / "coder" / ".env", "A=1\n")
    support.put(home / "profiles" / "coder" / "logs" / "x", "x")
    (home / "link").symlink_to("config.yaml")
    before = support.contents(home)

    made = create(home, "--reason", "before the update")

    assert support.contents(home) == before, "making a backup changes nothing else"
    folder = Path(made["folder"])
    manifest = json.loads((folder / "manifest.json").read_text())
    saved = {entry["path"]: entry for entry in manifest["entries"]}
    assert {".env", "auth.json", "config.yaml", "state.db", "kanban.db"} <= saved.keys()
    assert {"cron/jobs.json", "profiles/coder/.env", "link"} <= saved.keys()
    assert not [name for name in saved if name.startswith(("logs", "cache", "backups"))]
    assert not saved.keys() & {"gateway.pid", "profiles/coder/logs/x"}
    assert manifest["reason"] == "before the update"
    assert saved["link"]["target"] == "config.yaml"
    assert saved[".env"]["mode"] == 0o600
    assert saved["state.db"]["size"] == (home / "state.db").stat().st_size
    assert (folder / "files" / "state.db").read_bytes() == (home / "state.db").read_bytes()


def test_private(home: Path) -> None:
    """Files are 0600 and folders 0700, whatever the umask and the originals' modes."""
    (home / "config.yaml").chmod(0o666)
    create(home)

    for path in (home / "backups" / "doctor").rglob("*"):
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    assert stat.S_IMODE((home / "backups" / "doctor").stat().st_mode) == 0o700


def test_sidecars_at_rest(home: Path) -> None:
    """A database at rest is copied byte for byte with the sidecars that lie beside it."""
    for suffix in ("-wal", "-shm", "-journal"):
        support.put(home / f"state.db{suffix}", f"bytes of {suffix}")

    folder = Path(create(home)["folder"])

    for suffix in ("", "-wal", "-shm", "-journal"):
        saved = folder / "files" / f"state.db{suffix}"
        assert saved.read_bytes() == (home / f"state.db{suffix}").read_bytes()


def test_live_database(home: Path) -> None:
    """A database in use goes through SQLite, with what its log holds, and is checked."""
    db = sqlite3.connect(home / "state.db")
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA wal_autocheckpoint=0")
        support.say(db, "in the log")
        db.commit()

        folder = Path(create(home)["folder"])
    finally:
        db.close()

    saved = {e["path"]: e for e in json.loads((folder / "manifest.json").read_text())["entries"]}
    assert (saved["state.db"]["method"], saved["state.db"]["integrity"]) == ("sqlite", "ok")
    assert "state.db-wal" not in saved
    with contextlib.closing(sqlite3.connect(folder / "files" / "state.db")) as copy:
        assert copy.execute("SELECT content FROM messages ORDER BY id DESC").fetchone() == (
            "in the log",
        )


def test_list(home: Path) -> None:
    """Oldest first; a damaged one is shown as such and does not hide the others."""
    assert "No backup exists yet" in support.doctor("backup", "list", "--home", home).out
    old, bad, new = aged(home, 3), aged(home, 2), aged(home, 1)
    support.clobber(home / "backups" / "doctor" / bad / "manifest.json", b"X", 5)

    text = support.doctor("backup", "list", "--home", home)
    document = support.doctor("backup", "list", "--json", "--home", home)

    assert text.code == 0
    assert [line.split()[0] for line in text.out.splitlines()] == [old, bad, new]
    assert "damaged" in text.out.splitlines()[1]
    assert "a test" in text.out
    assert [one["id"] for one in document.json["backups"]] == [old, bad, new]
    assert document.json["backups"][1] == {"id": bad, "damaged": True}


def test_hint_of_an_empty_vault(home: Path) -> None:
    """The hint to make one names the home that was asked about, and works when pasted."""
    for args in (["list"], ["verify"]):
        done = support.doctor("backup", *args, "--home", home)

        assert f"hermes-doctor backup create --home {home}" in done.out + done.err


@pytest.mark.parametrize("kind", ["folder", "fifo", "dangling", "empty", "list", "deep"])
def test_odd_manifests(home: Path, kind: str) -> None:
    """Whatever lies in the place of a manifest is one damaged backup, and stops no other."""
    bad, good = aged(home, 2), aged(home, 1)
    path = home / "backups" / "doctor" / bad / "manifest.json"
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "dangling":
        path.symlink_to("nowhere")
    else:
        path.write_text({"empty": "", "list": "[]", "deep": "[" * 9999}[kind])

    listed = support.doctor("backup", "list", "--json", "--home", home)
    verified = support.doctor("backup", "verify", "--all", "--json", "--home", home)

    assert listed.code == 0
    assert [one["id"] for one in listed.json["backups"]] == [bad, good]
    assert listed.json["backups"][0].get("damaged")
    assert verified.code == 1
    assert [one["whole"] for one in verified.json["backups"]] == [False, True]


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_names_that_no_disk_has(home: Path, text: str) -> None:
    """A manifest with one was not written by us, however well it is sealed."""
    made = backup_of(home, "config.yaml")
    for forged in (made.entries[0]._replace(path=text), made.entries[0]._replace(target=text)):
        (made.folder / MANIFEST).write_bytes(seal(made._replace(entries=(forged,))))

        with pytest.raises(Trouble, match="is damaged"):
            Vault(Home(home)).load(made.id)


def test_verify_command(home: Path) -> None:
    """Whole is exit 0, one flipped bit is exit 1 with the file's name; --all covers all."""
    first, second = aged(home, 1), create(home)["id"]
    options = ("--home", home)
    assert "is intact" in support.doctor("backup", "verify", *options).out
    copy = home / "backups" / "doctor" / first / "files" / "config.yaml"
    support.clobber(copy, bytes([copy.read_bytes()[3] ^ 1]), 3)

    assert support.doctor("backup", "verify", *options).code == 0, "the newest is whole"
    done = support.doctor("backup", "verify", first, *options)
    assert done.code == 1
    assert "config.yaml" in done.out
    done = support.doctor("backup", "verify", "--all", "--json", *options)
    assert done.code == 1
    assert {one["id"]: one["whole"] for one in done.json["backups"]} == {first: False, second: True}
    assert support.doctor("backup", "verify", "nonsense", *options).code != 0


def test_flipped_bits_of_files(home: Path) -> None:
    """One flipped bit at every byte of every file is found, and so is a missing or longer one."""
    support.put(home / "empty", "")
    made = backup_of(home, ".env", "config.yaml", "auth.json", "empty")
    store = Vault(Home(home))
    assert store.verify(made) == []

    for entry in made.entries:
        copy = made.copy_of(entry)
        whole = copy.read_bytes()
        for at in range(len(whole)):
            copy.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
            assert store.verify(made) == [f"{entry.path}: the copy is damaged"]
        copy.write_bytes(whole + b"\0")
        assert len(store.verify(made)) == 1
        copy.unlink()
        assert store.verify(made) == [f"{entry.path}: the copy is missing"]
        copy.write_bytes(whole)
    assert store.verify(made) == []


def test_flipped_bits_of_a_database(home: Path) -> None:
    """In a larger file: the first, the last, and bytes on every page."""
    made = backup_of(home, "state.db")
    copy = made.copy_of(made.entries[0])
    size = copy.stat().st_size
    for at in {0, size - 1, *range(0, size, 1021)}:
        whole = copy.read_bytes()
        support.clobber(copy, bytes([whole[at] ^ 0x10]), at)
        assert Vault(Home(home)).verify(made)
        copy.write_bytes(whole)


def test_flipped_bits_of_the_manifest(home: Path) -> None:
    """Each bit of every byte of the manifest counts; so does its end."""
    made = backup_of(home, ".env")
    data = (made.folder / "manifest.json").read_bytes()
    assert manifest.parse(made.folder, data).entries == made.entries

    for at in range(len(data)):
        for bit in range(8):
            with pytest.raises(Trouble, match="manifest"):
                manifest.parse(
                    made.folder, data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
                )
    for cut in (b"", data[:-1], data + b"\n", data[:50]):
        with pytest.raises(Trouble, match="manifest"):
            manifest.parse(made.folder, cut)


def test_partial_never_counts(home: Path) -> None:
    """A backup that was not finished is no backup, even with a manifest in it."""
    made = backup_of(home, ".env")
    made.folder.rename(made.folder.with_name(made.id + ".partial"))

    store = Vault(Home(home))

    assert store.ids() == []
    with pytest.raises(Trouble, match="No backup"):
        store.load(made.id)
    assert (
        json.loads(support.doctor("backup", "list", "--json", "--home", home).out)["backups"] == []
    )


def test_failure_leaves_no_partial(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a copy fails in the middle, nothing stays in the vault."""
    stale = BackupSource(".env", str(home / ".env"), snapshot(home / "config.yaml"))
    good = BackupSource("config.yaml", str(home / "config.yaml"), snapshot(home / "config.yaml"))

    with pytest.raises(Trouble, match="nother program changed"):
        Vault(Home(home)).create([good, stale], reason="x", hermes=None)

    assert list((home / "backups" / "doctor").iterdir()) == []


def test_no_room(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little space is said before anything is written."""
    monkeypatch.setattr(free_space, "MARGIN", 1 << 60)

    with pytest.raises(Trouble, match="Nothing was changed"):
        backup_of(home, ".env")

    assert not list((home / "backups").rglob("*.partial"))


def test_another_place(home: Path, tmp_path: Path) -> None:
    """--vault puts backups elsewhere, also through a path with spaces, for every command."""
    place = tmp_path / "my vault"
    options = ("--home", home, "--vault", place)

    made = create(home, "--vault", place)

    assert Path(made["folder"]).parent == place
    assert not (home / "backups" / "doctor" / made["id"]).exists()
    assert made["id"] in support.doctor("backup", "list", *options).out
    assert made["id"] not in support.doctor("backup", "list", "--home", home).out
    assert support.doctor("backup", "verify", *options).code == 0
    support.put(home / "config.yaml", "changed: true\n")
    assert support.doctor("backup", "restore", made["id"], "--yes", *options).code == 0
    assert (home / "config.yaml").read_text() == support.CONFIG
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert (home / "config.yaml").read_text() == "changed: true\n"


def test_a_vault_inside_the_home(home: Path) -> None:
    """A vault that lies inside the home is not copied into itself."""
    first = create(home, "--vault", home / "my-backups")
    second = create(home, "--vault", home / "my-backups")

    assert second["files"] == first["files"]


def test_other_files_in_the_folder_of_a_vault(home: Path, tmp_path: Path) -> None:
    """Whatever else lies there is saved, and comes back; only the vault's own parts are not."""
    place = home / "memories"
    support.put(place / "mine.md", "mine")
    support.put(place / "more" / "20260101-000000-12345" / "mine.md", "mine, by an odd name")
    first = create(home, "--vault", place)
    (place / "20260101-000000-12345.partial").mkdir()
    support.put(place / "20260101-000000-12345.partial" / "half", "of one that was being removed")
    support.put(place / "20260101-000000-12345" / "files" / "half", "it has lost its manifest")
    support.put(place / f"{first['id']}.tar.age", "exported")
    support.put(place / "lost+found" / "of-the-disk", "")

    second = create(home, "--vault", place)

    store = Vault(Home(home), place)
    for made in (first, second):
        names = {entry.path for entry in store.load(made["id"]).entries if "memories" in entry.path}
        assert names == {
            "memories/mine.md",
            "memories/more/20260101-000000-12345/mine.md",
        }
    assert first["whole"]
    assert second["whole"]
    told = [f"memories/{first['id']}.tar.age", "memories/lost+found"]
    assert second["left_out"] == [*first["left_out"], *told]
    (place / "mine.md").unlink()
    options = ("--yes", "--home", home, "--vault", place)
    assert support.doctor("backup", "restore", second["id"], "memories/mine.md", *options).code == 0
    assert (place / "mine.md").read_text() == "mine"
    asked = create(home, "--vault", place, "--include", "memories/*.tar.age")
    assert f"memories/{first['id']}.tar.age" not in asked["left_out"]


def test_the_home_is_the_vault(home: Path) -> None:
    """Odd, but nothing is lost by it, and nothing is doubled."""
    first = create(home, "--vault", home)
    second = create(home, "--vault", home)

    assert second["files"] == first["files"] == create(home)["files"]


def test_a_vault_by_a_symlink(home: Path, tmp_path: Path) -> None:
    """The folder that it leads to is saved but for the vault's own parts."""
    (tmp_path / "disk").mkdir()
    support.put(tmp_path / "disk" / "mine.md", "mine")
    (home / "linked").symlink_to(tmp_path / "disk")
    first = create(home, "--vault", home / "linked")
    support.put(tmp_path / "disk" / f"{first['id']}.tar.age", "exported")

    second = create(home, "--vault", home / "linked")

    store = Vault(Home(home), home / "linked")
    names = [entry.path for entry in store.load(second["id"]).entries]
    assert str(tmp_path / "disk" / "mine.md") in names
    assert second["files"] == first["files"]


def test_fix_into_another_vault(home: Path, tmp_path: Path) -> None:
    """A run's backup can lie elsewhere, and undo finds it there."""
    support.put(home / ".env", b"\xef\xbb\xbfA=1\n")

    done = support.doctor("fix", "--apply", "--home", home, "--vault", tmp_path / "v")

    assert done.code == 0
    assert list((tmp_path / "v").glob("*/manifest.json"))
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert (home / ".env").read_bytes() == b"\xef\xbb\xbfA=1\n"


# -- restore -----------------------------------------------------------------------------------


def test_restore_everything_and_undo(home: Path) -> None:
    """Changed, removed and re-moded files come back; undo gives back what was there before."""
    (home / "link").symlink_to("config.yaml")
    saved = support.contents(home)
    id = create(home)["id"]
    support.put(home / "config.yaml", "changed: true\n", 0o644)
    (home / "auth.json").unlink()
    (home / "link").unlink()
    (home / ".env").chmod(0o640)
    support.clobber(home / "state.db", b"damage", 50)
    worse = support.contents(home)

    done = support.doctor("backup", "restore", id, "--yes", "--home", home)

    assert done.code == 0, done.out + done.err
    assert support.contents(home) == saved
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == worse


def test_restore_one_file(home: Path) -> None:
    """Only the named file comes back."""
    id = create(home)["id"]
    support.put(home / "config.yaml", "changed: true\n")
    support.put(home / ".env", "CHANGED=1\n")

    done = support.doctor("backup", "restore", id, "config.yaml", "--yes", "--json", "--home", home)

    assert done.code == 0
    assert done.json["kind"] == "restore"
    assert [item["subject"] for item in done.json["items"]] == ["config.yaml"]
    assert (home / "config.yaml").read_text() == support.CONFIG
    assert (home / ".env").read_text() == "CHANGED=1\n"


def test_restore_into_a_missing_folder(home: Path) -> None:
    """A file whose folder is gone comes back with the folder, and undo takes it away again."""
    support.put(home / "cron" / "output" / "jobs.json", "[1]")
    id = create(home)["id"]
    (home / "cron" / "output" / "jobs.json").unlink()
    (home / "cron" / "output").rmdir()
    (home / "cron").rmdir()

    done = support.doctor("backup", "restore", id, "--yes", "--home", home)

    assert done.code == 0, done.err
    assert (home / "cron" / "output" / "jobs.json").read_text() == "[1]"


@pytest.mark.sampled
@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_restore_brings_the_saved_sidecars(home: Path, suffix: str) -> None:
    """A database comes with the sidecars that were saved with it: they are part of it."""
    support.put(home / f"state.db{suffix}", "saved sidecar")
    id = create(home)["id"]
    (home / f"state.db{suffix}").unlink()

    done = support.doctor("backup", "restore", id, "state.db", "--yes", "--home", home)

    assert done.code == 0, done.err
    assert (home / f"state.db{suffix}").read_text() == "saved sidecar"


@pytest.mark.sampled
@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_restore_takes_newer_sidecars_away(home: Path, suffix: str) -> None:
    """A log of today would be replayed over the database of then: it goes, and undo returns it."""
    id = create(home)["id"]
    support.put(home / f"state.db{suffix}", "of today")
    support.clobber(home / "state.db", b"damage", 50)
    worse = support.contents(home)

    assert support.doctor("backup", "restore", id, "state.db", "--yes", "--home", home).code == 0

    assert not (home / f"state.db{suffix}").exists()
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == worse


def test_restore_refusals(home: Path) -> None:
    """Unknown backups and files, damaged backups, and nobody's consent change nothing."""
    id = create(home)["id"]
    support.put(home / "config.yaml", "changed: true\n")
    before = support.contents(home)

    def refused(*args: str) -> str:
        done = support.doctor("backup", "restore", *args, "--home", home)
        assert done.code == 2
        assert support.contents(home) == before
        return done.err

    assert "No backup" in refused("nonsense", "--yes")
    assert "No backup" in refused("../../..", "--yes")
    assert "does not contain 'nonsense'" in refused(id, "nonsense", "--yes")
    assert "add --yes" in refused(id)
    copy = home / "backups" / "doctor" / id / "files" / ".env"
    support.clobber(copy, b"X", 2)
    assert "damaged" in refused(id, "--yes")


def test_restore_what_is_whole(home: Path) -> None:
    """Damage of one copy does not keep another file from being restored by its name."""
    id = create(home)["id"]
    support.clobber(home / "backups" / "doctor" / id / "files" / "kanban.db", b"X", 2)
    support.put(home / "config.yaml", "changed: true\n")

    done = support.doctor("backup", "restore", id, "config.yaml", "--yes", "--home", home)

    assert done.code == 0
    assert (home / "config.yaml").read_text() == support.CONFIG


def test_restore_in_use(home: Path) -> None:
    """A database that somebody has open is not swapped."""
    id = create(home)["id"]
    support.clobber(home / "state.db", b"damage", 50)
    before = support.contents(home)
    with (home / "state.db").open("rb"):
        done = support.doctor("backup", "restore", id, "--yes", "--home", home)

    assert done.code == 2
    assert "in use" in done.err
    assert support.contents(home) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another user")
def test_entries_cannot_lead_out(home: Path, tmp_path: Path) -> None:
    """Root copies nobody's file into another user's vault, wherever a symlink leads."""
    support.put(tmp_path / "outside" / "secret", "x")
    (home / "skills").symlink_to(tmp_path / "outside")
    for path in (home, *home.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)

    names = [Home(home).name_of(source.path) for source in whole_backup.list_sources(Home(home))]

    assert "skills" in names
    assert not [name for name in names if "secret" in name]


# -- prune -------------------------------------------------------------------------------------


def prune(home: Path, *args: str) -> dict[str, Any]:
    """`backup prune --yes --json`."""
    done = support.doctor("backup", "prune", "--yes", "--json", "--home", home, *args)
    assert done.code == 0, done.err
    made: dict[str, Any] = done.json
    return made


def damage(home: Path, id: str, *, manifest: bool = False) -> None:
    """Flip a bit of a backup."""
    folder = home / "backups" / "doctor" / id
    path = folder / ("manifest.json" if manifest else "files/config.yaml")
    support.clobber(path, bytes([path.read_bytes()[9] ^ 1]), 9)


def test_prune_keep(home: Path) -> None:
    """The newest N stay."""
    ids = [aged(home, days) for days in (5, 4, 3, 2, 1)]

    assert prune(home, "--keep", "2") == {
        "schema": "hermes-doctor/prune/1",
        "removed": ids[:3],
        "kept": ids[3:],
        "protected": [],
        "lost": [],
    }
    assert not (home / "backups" / "doctor" / ids[0]).exists()
    assert prune(home, "--keep", "2")["removed"] == []


@pytest.mark.parametrize(("age", "gone"), [("3d", 2), ("0d", 4), ("1w", 0), ("50h", 3), ("99w", 0)])
def test_prune_older_than(home: Path, age: str, gone: int) -> None:
    """Only what is old enough goes; both conditions must hold."""
    ids = [aged(home, days) for days in (5, 4, 3, 2, 1)]
    shift = 0 if age != "3d" else 1  # the one of three days ago is a moment older than that

    removed = prune(home, "--keep", "1", "--older-than", age)["removed"]

    assert removed == ids[: gone + shift]


@pytest.mark.parametrize("manifest", [False, True])
def test_prune_keeps_the_newest_verified(home: Path, manifest: bool) -> None:
    """When the newer ones are damaged, the newest whole one stays, however old."""
    old, good, bad, worse = (aged(home, days) for days in (9, 8, 2, 1))
    damage(home, bad, manifest=manifest)
    damage(home, worse, manifest=manifest)

    prune(home, "--keep", "1")

    kept = Vault(Home(home)).ids()
    assert good in kept
    assert old not in kept


def test_prune_keeps_the_newest_of_the_whole_home(home: Path) -> None:
    """What a run kept of one file does not push out the last backup of everything."""
    whole = create(home)["id"]
    runs = [backup_of(home, "config.yaml").id for _ in range(3)]

    assert prune(home, "--keep", "1")["removed"] == runs[:-1]
    assert Vault(Home(home)).ids() == [whole, runs[-1]]


def test_the_newest_is_the_newest_although_the_clock_was_set_back(home: Path) -> None:
    """A name always sorts after those that are there, of backups and of runs."""
    ahead = datetime.now(UTC) + timedelta(days=400)
    future = backup_of(home, "config.yaml", id=f"{ahead:%Y%m%d-%H%M%S}-123ab").id
    run = home / "backups" / "doctor" / "runs" / f"{ahead:%Y%m%d-%H%M%S}-456ab"
    support.put(run / "run.json", "{}")

    second, third = create(home)["id"], create(home)["id"]

    assert [future, run.name, second, third] == sorted([future, run.name, second, third])
    assert (
        support.doctor("backup", "verify", "--json", "--home", home).json["backups"][0]["id"]
        == third
    )


@pytest.mark.parametrize("name", ["x", "99999999-999999-999zz", "00000000-000000-000aa"])
def test_names_that_are_no_time(name: str) -> None:
    """A stranger's folder in the vault does not stop a new backup."""
    assert vaults.new_id([name]) >= f"{datetime.now(UTC):%Y%m%d}"


def test_left_out_is_said(home: Path) -> None:
    """A backup names the folders that it passes over."""
    support.put(home / "logs" / "gateway.log", "x")
    support.put(home / "checkpoints" / "x", "x")

    assert create(home)["left_out"] == ["checkpoints", "logs"]
    assert ": checkpoints, logs" in support.doctor("backup", "create", "--home", home).out


def test_backups_of_another_home_are_named(home: Path, tmp_path: Path) -> None:
    """In a vault that several homes share, the list says whose a backup is."""
    other = support.healthy(tmp_path / "other")
    shared = tmp_path / "shared"
    create(home, "--vault", shared)

    listed = support.doctor("backup", "list", "--home", other, "--vault", shared).out

    assert f"(of {home})" in listed


def test_prune_with_nothing_whole(home: Path) -> None:
    """When no backup is whole, none is removed."""
    ids = [aged(home, days) for days in (3, 2, 1)]
    for id in ids:
        damage(home, id)

    assert prune(home, "--keep", "1") == {
        "schema": "hermes-doctor/prune/1",
        "removed": [],
        "kept": ids,
        "protected": [{"id": id, "why": "no backup of this home is intact"} for id in ids[:2]],
        "lost": [],
    }
    shown = support.doctor("backup", "prune", "--keep", "1", "--home", home).out
    assert "No backup was removed." in shown


def test_prune_asks(home: Path) -> None:
    """Without --yes nothing goes, and what would go is shown."""
    ids = [aged(home, days) for days in (2, 1)]

    done = support.doctor("backup", "prune", "--keep", "1", "--home", home)

    assert done.code == 2
    assert ids[0] in done.out
    assert "add --yes" in done.err
    assert Vault(Home(home)).ids() == ids


@pytest.mark.parametrize("args", [["--keep", "0"], ["--keep", "-1"], ["--older-than", "3"]])
def test_prune_usage(home: Path, args: list[str]) -> None:
    """Nonsense is refused: never all, never without a unit."""
    aged(home, 1)

    done = support.doctor("backup", "prune", "--yes", "--home", home, *args)

    assert done.code == 2
    assert len(Vault(Home(home)).ids()) == 1


def test_prune_leaves_cut_off_runs_their_backup(home: Path) -> None:
    """The backup that a cut-off run needs to be taken back is not removed."""
    needed, _ = aged(home, 9), aged(home, 1)
    support.put(home / ".env", b"\xef\xbb\xbfA=1\n")
    assert support.doctor("fix", "--apply", "--home", home).code == 0
    [receipt] = (home / "backups" / "doctor" / "runs").glob("*/run.json")
    journal = json.loads(receipt.read_text()) | {"id": needed, "state": "committing"}
    support.put(receipt.parent.parent / needed / "run.json", json.dumps(journal))

    assert needed in prune(home, "--keep", "1")["kept"]


def test_what_symlinks_lead_to_is_saved(home: Path, tmp_path: Path) -> None:
    """A database and a folder on another disk are part of the home, and come back from there."""
    disk = tmp_path / "disk"
    disk.mkdir()
    (home / "state.db").rename(disk / "state.db")
    (home / "state.db").symlink_to(disk / "state.db")
    talk = support.put(disk / "sessions" / "talk.json", "{}")
    (home / "sessions").symlink_to(disk / "sessions")
    rows = (disk / "state.db").read_bytes()
    made = support.doctor("backup", "create", "--json", "--home", home)
    assert made.code == 0, made

    talk.unlink()
    (disk / "state.db").write_bytes(b"gone")
    restored = support.doctor("backup", "restore", made.json["id"], "--yes", "--home", home)

    assert restored.code == 0, restored
    assert (home / "state.db").is_symlink()
    assert (disk / "state.db").read_bytes() == rows
    assert talk.read_text() == "{}"
