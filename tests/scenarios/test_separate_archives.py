"""As root in a home of another user, full of traps: archives and copies that the operator names."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.backup.vault import age_of_root, copy_of_root
from hermes_doctor.backup.vault.age import ArchiveKeys, NamedCopy
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import privileges
from tests.backup.vault.test_archive import Key, key
from tests.cli.test_separate_look import opened_by_root
from tests.cli.test_separate_work import sick
from tests.helpers import crash_server, support
from tests.helpers.crash_server import STRANGER

pytestmark = [
    pytest.mark.needs("age", "age-keygen"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else"),
]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can get to."""
    with support.reachable_folder() as folder:
        yield folder


@pytest.fixture
def mine(place: Path) -> Path:
    """A folder of root's that nobody else can get to, with a key and a passphrase."""
    folder = place / "mine"
    folder.mkdir(0o700)
    key(folder)
    support.put(folder / "passphrase", "correct horse battery\n", 0o600)
    return folder


def public(mine: Path) -> str:
    """The public key."""
    words = (mine / "key.txt").read_text().split()
    return Key(mine / "key.txt", next(word for word in words if word.startswith("age1"))).public


def names_in(archive: Path, mine: Path) -> list[str]:
    """What is in an archive."""
    words = ["age", "-d", "-i", str(mine / "key.txt"), str(archive)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as age:
        assert age.stdout is not None
        with tarfile.open(fileobj=age.stdout, mode="r|") as tar:
            return tar.getnames()


EXPORTS = (
    ("backup", "create", "--to", "MINE", "--encrypt-to", "PUBLIC"),
    ("backup", "create", "--encrypt-to", "PUBLIC"),
    ("backup", "export", "--to", "MINE", "--encrypt-to", "@MINE/key.pub"),
    *(
        ("backup", word, "--to", "MINE", "--encrypt-to", "passphrase", "--passphrase-file", "FILE")
        for word in ("create", "export")
    ),
)


@pytest.mark.needs("strace")
@pytest.mark.parametrize("command", EXPORTS, ids=" ".join)
def test_root_opens_nothing_for_an_archive(
    place: Path, mine: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """The owner's process reads the backup; root's age encrypts it with root's keys."""
    home = sick(place, traps=True)
    support.put(mine / "key.pub", public(mine))
    if command[1] == "export":
        assert support.doctor("backup", "create", "--home", home).code in (0, 1)
    values = {"PUBLIC": public(mine), "FILE": str(mine / "passphrase")}
    words = tuple(values.get(word, word.replace("MINE", str(mine))) for word in command)

    by_root, by_others = opened_by_root(words, home, tmp_path / "log")

    tops = (str(home), str(place / "secret"))
    assert [path for path in by_root if path.startswith(tops)] == []
    assert [path for path in by_others if path.startswith(str(home))], "nothing was looked at"
    assert [path for path in by_others if path.startswith(str(mine))] == []
    folder = mine if "--to" in command else home / "backups" / "doctor"
    [archive] = folder.glob("*.tar.age")
    st = archive.stat()
    owner = 0 if folder == mine else STRANGER
    assert (st.st_uid, stat.S_IMODE(st.st_mode)) == (owner, 0o600)
    assert [path for path in folder.iterdir() if path.name.startswith(".")] == []
    if "passphrase" not in command:
        assert "manifest.json" in names_in(archive, mine)


@pytest.mark.parametrize("command", ["create", "export"])
def test_an_archive_is_complete_or_not_there(place: Path, mine: Path, command: str) -> None:
    """Also if age refuses the key; the message is that of age."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    assert support.doctor("backup", "create", "--home", home).code == 0

    options = ("--to", mine, "--encrypt-to", "nonsense", "--home", home)
    done = support.doctor("backup", command, *options)

    assert (done.code, "age failed" in done.err) == (2, True), done.err
    assert sorted(os.listdir(mine)) == ["key.txt", "passphrase"]
    assert crash_server.strangers(home) == []


def test_an_archive_that_is_cut_off(mine: Path) -> None:
    """If the owner's process ends too early, nothing is left; nothing else has its own name."""
    with age_of_root.actions(ArchiveKeys((public(mine),)), to=mine) as actions:
        content = actions["encrypt"]("20261115-031500-1234f")
        os.write(content.fd, b"the beginning")
        os.close(content.fd)
        assert [path.suffix for path in mine.glob(".*")] == [".new"]
        with pytest.raises(CouldNotLook):
            actions["encrypt"]("../20261115-031500-1234f")

    assert sorted(os.listdir(mine)) == ["key.txt", "passphrase"]


def test_the_size_of_an_archive(place: Path, mine: Path) -> None:
    """It is told by root, because the owner's process cannot see the file."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    assert support.doctor("backup", "create", "--home", home).code == 0

    options = ("--to", mine / "a.tar.age", "--encrypt-to", public(mine), "--json")
    done = support.doctor("backup", "export", *options, "--home", home)

    assert done.code == 0, done.err
    assert done.json["archive"] == str(mine / "a.tar.age")
    assert done.json["bytes"] == (mine / "a.tar.age").stat().st_size
    again = support.doctor("backup", "export", *options, "--home", home)
    assert again.code == 2


def copies(place: Path, mine: Path) -> dict[str, Path]:
    """An archive, a zip and a snapshot of a healthy home, which only root can get to."""
    source = support.healthy(place / "source")
    for name, to in (("key", public(mine)), ("passphrase", "passphrase")):
        options = ("--passphrase-file", mine / "passphrase") if name == "passphrase" else ()
        target = mine / f"{name}.tar.age"
        words = ("backup", "create", "--home", source, "--to", target, "--encrypt-to", to)
        assert support.doctor(*words, *options).code == 0
    with zipfile.ZipFile(mine / "hermes.zip", "w") as file:
        file.writestr("config.yaml", support.CONFIG)
        file.write(source / "state.db", "state.db")
    snapshot = mine / "snapshot"
    support.put(snapshot / "config.yaml", support.CONFIG)
    support.put(snapshot / "secret", "a secret of root's")
    size = len(support.CONFIG)
    support.put(snapshot / "manifest.json", json.dumps({"files": {"config.yaml": size}}))
    return {
        "ARCHIVE": mine / "key.tar.age",
        "LOCKED": mine / "passphrase.tar.age",
        "ZIP": mine / "hermes.zip",
        "SNAPSHOT": snapshot,
        "KEY": mine / "key.txt",
        "FILE": mine / "passphrase",
    }


COPIES = (
    ("ARCHIVE", "--identity", "KEY"),
    ("LOCKED", "--passphrase-file", "FILE"),
    ("OWN", "--identity", "KEY"),
    ("ZIP",),
    ("SNAPSHOT",),
)


@pytest.mark.needs("strace")
@pytest.mark.parametrize("command", ["verify", "restore"])
@pytest.mark.parametrize("copy", COPIES, ids=" ".join)
def test_root_opens_nothing_for_a_copy(
    place: Path, mine: Path, tmp_path: Path, copy: tuple[str, ...], command: str
) -> None:
    """Root opens and decrypts what the operator has named; the owner's process reads it."""
    home = sick(place, traps=True)
    values = copies(place, mine)
    values["OWN"] = home / "own.tar.age"
    shutil.copy(values["ARCHIVE"], values["OWN"])
    os.chown(values["OWN"], STRANGER, STRANGER)
    more = ("config.yaml", "--other-home", "--yes") if command == "restore" else ()
    words = ("backup", command, *(str(values.get(word, word)) for word in copy), *more)

    by_root, by_others = opened_by_root(words, home, tmp_path / "log")

    tops = (str(home), str(place / "secret"))
    assert [path for path in by_root if path.startswith(tops)] == []
    assert [path for path in by_others if path.startswith(str(home))], "nothing was looked at"
    keys = (str(values["KEY"]), str(values["FILE"]), str(mine / "snapshot" / "secret"))
    assert [path for path in by_others if path.startswith(keys)] == []
    if command == "restore":
        traps = copy[0] in ("ZIP", "SNAPSHOT")  # a trap is in the place of a file that they lack
        assert traps or (home / "config.yaml").read_text() == support.CONFIG
        assert {*crash_server.strangers(home)} <= {"auth.json"}


@pytest.mark.parametrize("name", ["ZIP", "SNAPSHOT"])
def test_a_copy_that_hermes_made(place: Path, mine: Path, name: str) -> None:
    """It is restored; what else is in the folder of a snapshot is not opened."""
    home = sick(place)
    copy = copies(place, mine)[name]

    options = ("config.yaml", "--yes", "--home", home)
    done = support.doctor("backup", "restore", copy, *options)

    assert done.code == 0, done.err
    assert (home / "config.yaml").read_text() == support.CONFIG
    assert {*crash_server.strangers(home)} <= {"auth.json"}


def test_of_a_snapshot_only_what_is_listed(place: Path, mine: Path) -> None:
    """The process cannot make root open anything else."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    owner = privileges.owner_of_home(home)
    named = NamedCopy(str(copies(place, mine)["SNAPSHOT"]))
    assert owner is not None

    with copy_of_root.opened(named, Home(home), owner) as (_, actions):
        for name in ("manifest.json", "config.yaml"):
            os.close(actions["open_in_copy"](name).fd)
        for name in ("secret", "../key.txt", "/etc/shadow", "config.yaml/../secret"):
            with pytest.raises(CouldNotLook):
                actions["open_in_copy"](name)


def test_a_wrong_key(place: Path, mine: Path) -> None:
    """The message is that of age."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    archive = copies(place, mine)["ARCHIVE"]
    other = key(mine, "other.txt")

    for word, more in (("verify", ()), ("restore", ("--yes",))):
        options = ("--identity", other.file, "--home", home)
        done = support.doctor("backup", word, archive, *more, *options)

        assert (done.code, "age failed: no identity matched" in done.err) == (2, True), done.err
    assert crash_server.strangers(home) == []


def test_a_damaged_archive(place: Path, mine: Path) -> None:
    """Wherever it lies, it is said to be so, and nothing is imported."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    archive = copies(place, mine)["ARCHIVE"]
    data = archive.read_bytes()
    archive.write_bytes(data[: len(data) // 2])
    own = home / "own.tar.age"
    shutil.copy(archive, own)
    os.chown(own, STRANGER, STRANGER)

    for path in (archive, own):
        options = ("--identity", mine / "key.txt", "--home", home)
        done = support.doctor("backup", "restore", path, "--other-home", "--yes", *options)

        assert done.code == 2 and "bug" not in done.err, done.err
    assert not list((home / "backups" / "doctor").glob("2*"))


def test_links_and_second_names_are_not_opened(place: Path, mine: Path) -> None:
    """Of another user, in a folder in which all may write; that would give root's files away."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    secret = copies(place, mine)["ZIP"]
    shared = place / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "link.zip").symlink_to(secret)
    os.lchown(shared / "link.zip", STRANGER, STRANGER)
    os.link(secret, shared / "name.zip")

    for name, why in (("link", "belongs to another user"), ("name", "has a second name")):
        path = shared / f"{name}.zip"
        done = support.doctor("backup", "restore", path, "--yes", "--home", home)

        assert (done.code, why in done.err) == (2, True), done.err


def test_a_copy_of_the_owner(place: Path) -> None:
    """Beside the home, the owner's process opens it itself."""
    top = place / "user"
    home = support.healthy(top / "home")
    with zipfile.ZipFile(top / "hermes.zip", "w") as file:
        file.writestr("config.yaml", "model: zipped\n")
    crash_server.chown(top)
    (top / "hermes.zip").chmod(0o600)

    options = ("config.yaml", "--yes", "--home", home)
    done = support.doctor("backup", "restore", top / "hermes.zip", *options)

    assert done.code == 0, done.err
    assert (home / "config.yaml").read_text() == "model: zipped\n"
