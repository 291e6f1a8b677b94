"""As root in a home of another user, full of traps: archives and copies that the operator names."""

from __future__ import annotations

import os
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.backup.vault import age_of_root
from hermes_doctor.backup.vault.age import ArchiveKeys
from hermes_doctor.core.model import CouldNotLook
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
    with age_of_root.actions(ArchiveKeys((public(mine),)), mine) as actions:
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
