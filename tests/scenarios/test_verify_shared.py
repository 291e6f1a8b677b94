"""What several backups have in common is read once when they are verified, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.backup.vault import blocks
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.system import digests
from hermes_doctor.core.system.digests import CHUNK
from tests.helpers import support
from tests.helpers.database_writer import back_up
from tests.helpers.wrong_backups import entry, forge, unseen

LONG = "sessions/long.jsonl"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose files have been left alone for long."""
    monkeypatch.setattr("hermes_doctor.backup.vault.unchanged.SETTLED", 0)
    home = support.healthy(tmp_path / "home")
    support.put(home / LONG, os.urandom(2 * CHUNK))
    return home


def test_read_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two that share everything costs no reading."""
    backups = [back_up(home), back_up(home)]
    known: dict[bytes, str] = {}
    store = Vault(Home(home))
    assert store.verify(backups[0], known=known) == []
    monkeypatch.setattr(blocks, "digest_of", lambda *_: pytest.fail("it is read again"))
    assert store.verify(backups[1], known=known) == []


def test_written_to_after_it_was_read(home: Path) -> None:
    """The same file by number, length and time is another: it is read again."""
    first, second = back_up(home), back_up(home)
    known: dict[bytes, str] = {}
    store = Vault(Home(home))
    assert store.verify(first, known=known) == []
    unseen(first.copy_of(entry(first, "config.yaml")), b"other")

    assert store.verify(second, known=known) == ["config.yaml: the copy is damaged"]


def test_the_same_number_on_another_device(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies that only their devices tell apart are read each for itself."""
    for name in ("one", "two"):
        support.put(home / "memories" / name, name)
    made = back_up(home)
    devices: dict[str, int] = {}

    def alike(path: Path) -> os.stat_result:
        device = devices.setdefault(str(path), len(devices))
        return os.stat_result((0o100600, 7, device, 1, 0, 0, 3, 0, 0, 0))

    unseen(made.copy_of(entry(made, "memories/two")), b"tow")
    with monkeypatch.context() as patch:
        patch.setattr("hermes_doctor.backup.vault.vault.os.lstat", alike)
        wrong = Vault(Home(home)).verify(made)

    assert wrong == ["memories/two: the copy is damaged"]


def test_summed_up_in_two_ways(home: Path) -> None:
    """A copy that one backup knows by its pieces, and another plainly, is whole in both."""
    first, second = back_up(home), back_up(home)
    known: dict[bytes, str] = {}
    data = (home / LONG).read_bytes()
    each = [digests.of(data[at : at + CHUNK]) for at in range(0, len(data), CHUNK)]
    forge(home, LONG, lambda one: one._replace(sha256=digests.combine(each)))
    store = Vault(Home(home))

    for backup in (first, store.load(second.id)):
        assert store.verify(backup, known=known) == []
