"""Backups as one encrypted file, by the real `age`: written, verified, taken in, restored."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hermes_doctor.backup.vault.manifest import BackupEntry, place_of, seal
from tests.helpers import support
from tests.helpers.database_writer import back_up

pytestmark = pytest.mark.needs("age", "age-keygen")
SECRET = "zQcanary-of-a-secret"


class Key(NamedTuple):
    """A key of age's."""

    file: Path
    public: str


def key(folder: Path, name: str = "key.txt") -> Key:
    """A new one."""
    file = folder / name
    subprocess.run(["age-keygen", "-o", file], check=True, capture_output=True)
    public = next(word for word in file.read_text().split() if word.startswith("age1"))
    return Key(file, public)


@pytest.fixture
def home(home: Path) -> Path:
    """A home with a secret in it."""
    support.put(home / ".env", f"TOKEN={SECRET}\n")
    return home


def create(home: Path, *args: str | Path) -> support.Done:
    """`backup create`."""
    return support.doctor("backup", "create", "--json", "--home", home, *args)


def test_there_and_back(home: Path, tmp_path: Path) -> None:
    """To a recipient: nothing can be read of it without the key, and everything with it."""
    mine, other = key(tmp_path), key(tmp_path, "other.txt")
    (tmp_path / "usb").mkdir()
    made = create(home, "--to", tmp_path / "usb", "--encrypt-to", mine.public)
    assert made.code == 0, made.err
    archive = Path(made.json["archive"])
    assert archive == tmp_path / "usb" / f"{made.json['id']}.tar.age"
    assert SECRET.encode() not in archive.read_bytes()
    assert archive.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "usb") == [archive.name]
    saved = support.contents(home)
    shutil.rmtree(home / "backups")
    support.put(home / ".env", "gone\n")
    (home / "state.db").unlink()

    options = ("--home", home, "--identity", mine.file)
    assert "is intact" in support.doctor("backup", "verify", archive, *options).out
    refused = support.doctor("backup", "verify", archive, "--home", home, "--identity", other.file)
    assert refused.code == 2
    assert "age failed: no identity matched" in refused.err
    done = support.doctor("backup", "restore", archive, "--yes", *options)

    assert done.code == 0, done.err
    assert support.contents(home) == saved
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert (home / ".env").read_text() == "gone\n"


@pytest.mark.needs("ssh-keygen")
def test_an_ssh_key(home: Path, tmp_path: Path) -> None:
    """A key of ssh does as well, out of its file."""
    file = tmp_path / "id"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)]
    subprocess.run(words, check=True)
    made = create(home, "--to", tmp_path / "a.tar.age", "--encrypt-to", f"@{file}.pub")
    assert made.code == 0, made.err

    done = support.doctor(
        "backup", "verify", tmp_path / "a.tar.age", "--identity", file, "--home", home
    )

    assert done.code == 0, done.err


def test_a_passphrase(home: Path, tmp_path: Path) -> None:
    """Out of a private file, through a terminal, and in no argument."""
    right = support.put(tmp_path / "right", "correct horse battery\n")
    wrong = support.put(tmp_path / "wrong", "staple\n")
    archive = tmp_path / "a.tar.age"
    words = ("--encrypt-to", "passphrase", "--passphrase-file")
    made = create(home, "--to", archive, *words, right)
    assert made.code == 0, made.err

    def verify(file: Path) -> support.Done:
        options = ("--passphrase-file", file, "--home", home)
        return support.doctor("backup", "verify", archive, *options)

    assert verify(right).code == 0
    assert "age failed: incorrect passphrase" in verify(wrong).err
    right.chmod(0o644)
    assert "Other users may read" in verify(right).err


@pytest.mark.parametrize("how", ["cut", "flipped", "end", "empty"])
def test_damage(home: Path, tmp_path: Path, how: str) -> None:
    """An archive that is not what was written is said to be so, and nothing is taken in."""
    mine = key(tmp_path)
    archive = tmp_path / "a.tar.age"
    assert create(home, "--to", archive, "--encrypt-to", mine.public).code == 0
    data = archive.read_bytes()
    middle = len(data) // 2
    spoilt = {
        "cut": data[:middle],
        "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "end": data[:-1],
        "empty": data[:200],
    }[how]
    archive.write_bytes(spoilt)
    known = sorted(os.listdir(home / "backups" / "doctor"))
    options = ("--identity", mine.file, "--home", home)

    assert support.doctor("backup", "verify", archive, *options).code in (1, 2)
    done = support.doctor("backup", "restore", archive, "--yes", *options)

    assert done.code == 2
    assert "hermes-doctor: " in done.err
    assert "bug" not in done.err
    assert [n for n in sorted(os.listdir(home / "backups" / "doctor")) if n != "runs"] == known


def test_refusals(home: Path, tmp_path: Path) -> None:
    """One clear line each, and nothing is written."""
    mine = key(tmp_path)
    there = support.put(tmp_path / "there", "x")
    refused = support.doctor("backup", "create", "--to", tmp_path / "a", "--home", home)
    assert "needs --encrypt-to" in refused.err
    assert create(home, "--to", there, "--encrypt-to", mine.public).code == 2
    assert there.read_text() == "x"
    bad = create(home, "--to", tmp_path / "a", "--encrypt-to", "nonsense")
    assert bad.code == 2
    assert "age failed" in bad.out
    assert not (tmp_path / "a").exists()
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == []


def test_no_age(home: Path, tmp_path: Path) -> None:
    """Where it is not installed one line says so, before anything is done."""
    (tmp_path / "bin").mkdir()
    done = support.doctor(
        "backup", "create", "--encrypt-to", "age1x", "--home", home,
        env={"PATH": str(tmp_path / "bin")},
    )  # fmt: skip

    assert done.code == 2
    assert "age is needed but not installed" in done.err
    assert not (home / "backups" / "doctor").exists()


def test_export_of_what_is_shared_and_in_blocks(home: Path, tmp_path: Path) -> None:
    """An archive holds whole files, whatever the vault keeps them as."""
    from hermes_doctor.backup.vault import archive, blocks, unchanged
    from hermes_doctor.backup.vault.age import ArchiveKeys, NamedCopy
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.core.home import Home
    from tests.helpers.database_writer import back_up

    mine = key(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "MIN_SIZE", 65536)
        patch.setattr(unchanged, "SETTLED", 0)
        support.put(home / "long", os.urandom(200_000))
        back_up(home)
        support.clobber(home / "long", b"changed", 100_000)
        made = back_up(home)
    assert any(entry.blocks for entry in made.entries)
    lock = ArchiveKeys((mine.public,), identity=mine.file)
    archive.write(made, tmp_path / "a.tar.age", lock)

    named = NamedCopy(str(tmp_path / "a.tar.age"), lock)
    assert archive.verify(named) == []
    store = Vault(Home(home), tmp_path / "other")
    taken = archive.import_archive(store, named)
    entry = taken.entry("long")
    assert entry is not None
    assert taken.copy_of(entry).read_bytes() == (home / "long").read_bytes()
    assert store.verify(taken) == []


# -- made by others: a public key is public ------------------------------------------------------


def forged(
    home: Path, target: Path, public: str, *more: BackupEntry, content: bytes = b"x"
) -> Path:
    """An archive whose manifest is in order, and names what its maker likes."""
    sealed = seal(back_up(home)._replace(entries=more))
    parts = [("manifest.json", sealed)]
    parts += [(str(place_of(Path(), e.path)), content) for e in more if e.kind == "file"]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in parts:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    command = ["age", "-r", public, "-o", str(target)]
    subprocess.run(command, input=out.getvalue(), check=True, capture_output=True)
    return target


def entry(path: str, **more: Any) -> BackupEntry:
    """A file of one letter."""
    owner = {"uid": os.getuid(), "gid": os.getgid(), "mode": 0o600}
    known = {"kind": "file", "size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    return BackupEntry(path, **{**known, **owner, **more})


def test_nothing_is_put_where_nobody_asked(home: Path, tmp_path: Path) -> None:
    """Neither outside of the home, nor among our own receipts."""
    mine, runs = key(tmp_path), "backups/doctor/runs/20200101-000000-00000/journal.json"
    keep = support.put(tmp_path / "keep", "precious")
    evil = [
        entry(f"{tmp_path}/evil"),
        entry(runs),
        BackupEntry(str(keep), "absent"),
        entry("SOUL.md"),
    ]
    archive = forged(home, tmp_path / "a.age", mine.public, *evil)

    done = support.doctor(
        "backup", "restore", archive, "--yes", "--identity", mine.file, "--home", home
    )

    assert done.code == 0, done.err
    assert "outside of the home" in done.out
    assert (home / "SOUL.md").read_text() == "x"
    assert keep.read_text() == "precious"
    assert not (tmp_path / "evil").exists()
    assert not (home / runs).exists()


@pytest.mark.parametrize(
    "more",
    [
        [{"mtime_ns": 10**30}],
        [{"uid": 10**12}],
        [{"size": -1}],
        [{"size": 5}],
        [{"xattrs": {"user.a": "%"}}],
        [{"kind": "symlink", "target": "a\0b"}],
        [{"path": "./a"}],
        [{"path": "a/"}],
        [{"path": "a"}, {"path": "a"}],
    ],
)
def test_what_cannot_be(home: Path, tmp_path: Path, more: list[dict[str, Any]]) -> None:
    """It is damaged, not a bug; and nothing of it stays."""
    mine = key(tmp_path)
    odd = [entry(**{"path": "odd", **one}) for one in more]
    archive = forged(home, tmp_path / "a.age", mine.public, *odd)
    known, words = (
        os.listdir(home / "backups" / "doctor"),
        ("--identity", mine.file, "--home", home),
    )

    done = support.doctor("backup", "restore", archive, "--yes", *words)

    assert done.code == 2
    assert "is damaged" in done.err, done.err
    assert support.doctor("backup", "verify", archive, *words).code in (1, 2)
    assert [n for n in os.listdir(home / "backups" / "doctor") if n != "runs"] == known


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_number_for_the_owner(home: Path, tmp_path: Path) -> None:
    """What was made as one user is restored as another, whose it is then."""
    mine = key(tmp_path)
    tmp_path.chmod(0o755)
    archive = forged(home, tmp_path / "a.age", mine.public, entry("SOUL.md", uid=4242, gid=4243))
    words = ("backup", "restore", archive, "--yes", "--identity", mine.file, "--home", home)

    assert support.doctor(*words).code == 0

    st = (home / "SOUL.md").stat()
    assert (st.st_uid, st.st_gid) == (os.getuid(), home.stat().st_gid)


@pytest.mark.parametrize("text", [b"ab\x04cd", b"\x15", b"a\x7f", b"x" * 5000])
def test_a_passphrase_that_cannot_be_typed(home: Path, tmp_path: Path, text: bytes) -> None:
    """A terminal would take a part of it, or nothing at all; then nobody could read the archive."""
    file = support.put(tmp_path / "file", text + b"\n")
    words = ("--encrypt-to", "passphrase", "--passphrase-file", file)

    done = create(home, "--to", tmp_path / "a", *words)

    assert done.code == 2
    assert "is too long or not text" in done.out
