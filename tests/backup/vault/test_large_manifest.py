"""Homes of so many files that their entries stay on the disk; and how much memory they take."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import memory
from hermes_doctor.backup.vault import save, source_list, unchanged, vault
from hermes_doctor.backup.vault.large_manifest import PagedEntries
from hermes_doctor.backup.vault.manifest import parse
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.repair.transaction import undo
from hermes_doctor.repair.transaction.run import Run
from tests.helpers import support
from tests.helpers.database_writer import back_up

FILES = 150


@pytest.fixture
def large(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that counts as large early, with files that were left alone for long."""
    for module in (save, source_list):
        monkeypatch.setattr(module, "AT_ONCE", 64)
    monkeypatch.setattr(unchanged, "MANY", 16)
    monkeypatch.setattr(source_list, "KEPT", 1024)
    monkeypatch.setattr(vault, "SMALL", 0)
    monkeypatch.setattr(unchanged, "SETTLED", 0)
    for number in range(FILES):
        name = f"{number}\n'\"é" if number % 7 == 0 else str(number)
        support.put(home / "sessions" / f"{number % 5}" / name, f"session {number}")
    (home / "link").symlink_to("nowhere")
    return home


def test_a_large_run(large: Path) -> None:
    """A run over many files knows of each path what that very path was before."""
    made = back_up(large)
    (large / "sessions" / "1" / "1").write_text("changed")
    (large / "sessions" / "2" / "2").unlink()
    home = Home(large)
    items = undo.items_for(home, made, list(made.entries), "restore")

    done = Run(home, Vault(home), "restore", "test", of=made.id).apply(
        items, undo.restore_verifier(home, made.entries)
    )

    assert done.state == "done", done.note
    before = {record.path: record.before.kind for record in done.paths}
    assert before["sessions/2/2"] == "absent"
    assert before["sessions/1/1"] == "file"
    assert before["link"] == "symlink"
    assert (large / "sessions" / "1" / "1").read_text() == "session 1"
    assert (large / "sessions" / "2" / "2").read_text() == "session 2"


def test_a_large_home(large: Path) -> None:
    """Everything is saved, verified, shared with the next backup, and restored."""
    first = back_up(large)
    second = back_up(large)

    for made in (first, second):
        assert isinstance(made.entries, PagedEntries)
        names = [entry.path for entry in made.entries]
        assert len(names) == len(set(names)) == len(made.entries) > FILES
        assert made.whole
        assert made.sound
        assert made.size == sum(entry.size for entry in made.entries if entry.kind == "file")
        assert made.entry("no such") is None
        for number in (0, 5, len(names) - 1):
            assert made.entries[number].path == names[number]
            assert made.entry(names[number]) == made.entries[number]
        assert Vault(Home(large)).verify(made) == []
        extra = {path.name for path in made.folder.iterdir()} - {"files", "blocks"}
        assert extra == {"manifest.json", "home"}
    assert second.shares == first.id
    copies = [
        {made.copy_of(entry).stat().st_ino for entry in made.entries if entry.kind == "file"}
        for made in (first, second)
    ]
    assert len(copies[0] & copies[1]) > FILES * 0.9
    (large / "sessions" / "1" / "1").write_text("changed")
    (large / "link").unlink()
    done = support.doctor("backup", "restore", second.id, "--yes", "--json", "--home", large)
    assert done.code == 0, done.err
    assert (large / "sessions" / "1" / "1").read_text() == "session 1"
    assert os.readlink(large / "link") == "nowhere"


def test_the_manifest_is_one_document_as_ever(large: Path) -> None:
    """What reads a manifest as a whole reads this one, with the same entries."""
    made = back_up(large)
    data = (made.folder / "manifest.json").read_bytes()

    whole = parse(made.folder, data)

    assert tuple(whole.entries) == tuple(made.entries)
    assert whole.created_at == made.created_at
    assert len(json.loads(data)["entries"]) == len(made.entries)


def test_every_copy_has_its_turn(large: Path) -> None:
    """Those that were read longest ago are read again, about a thirty-second each time."""
    made = back_up(large)
    entries = made.entries
    assert isinstance(entries, PagedEntries)
    files = [entry for entry in entries if entry.kind == "file"]
    due = entries.longest_ago(32)

    oldest = sorted(entry.read_at for entry in files if entry.path in due)
    others = sorted(entry.read_at for entry in files if entry.path not in due)
    assert 0 < len(due) < len(files)
    assert oldest[-1] <= others[0]
    total = sum(entry.size for entry in files)
    assert sum(entry.size for entry in files if entry.path in due) >= total / 32


def test_flipped_bits(large: Path) -> None:
    """A large manifest is sealed like a small one."""
    made = back_up(large)
    path = made.folder / "manifest.json"
    data = path.read_bytes()
    chance = random.Random(1)
    places = [0, len(data) - 1, len(data) // 2, *(chance.randrange(len(data)) for _ in range(40))]
    for place in places:
        spoilt = bytearray(data)
        spoilt[place] ^= 1 << chance.randrange(8)
        path.write_bytes(spoilt)
        with pytest.raises(Trouble, match="is damaged"):
            Vault(Home(large)).load(made.id)
    for end in (10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:end])
        with pytest.raises(Trouble, match="is damaged"):
            Vault(Home(large)).load(made.id)
    path.write_bytes(data)
    backup = Vault(Home(large)).load(made.id)
    path.write_bytes(data + b" ")  # somebody writes to it after it was checked
    with pytest.raises(Trouble, match="is damaged"):
        list(backup.entries)


@pytest.mark.wide
@pytest.mark.disk
def test_memory_of_many_files(tmp_path: Path) -> None:
    """The memory of a backup hardly grows with the number of files; that takes a while to see."""
    peaks = []
    for files in (2_000, 20_000):
        home = tmp_path / f"home-{files}"
        memory.fill(home, files)
        for _ in range(2):
            done = memory.doctor(home, "backup", "create", "--vault", str(tmp_path / "vault"))
            assert done.code == 0
        peaks.append(done)

    assert peaks[-1].one < 100 << 20
    assert peaks[-1].all < 150 << 20
    assert (peaks[-1].all - peaks[0].all) / 18_000 < 4096


@pytest.mark.wide
def test_memory_of_a_large_database(tmp_path: Path) -> None:
    """Nor with the size of a database, at rest or in use, copied whole or in part."""
    home = tmp_path / "home"
    memory.fill(home, 5)
    memory.database(home / "state.db", 160)
    peaks = [memory.doctor(home, "backup", "create")]
    with memory.writing(home / "state.db"):
        peaks.append(memory.doctor(home, "backup", "create", "--full"))
        peaks.append(memory.doctor(home, "backup", "create"))

    assert [peak.code for peak in peaks] == [0, 0, 0]
    assert max(peak.one for peak in peaks) < 120 << 20
    assert max(peak.all for peak in peaks) < 150 << 20


def test_the_benchmark_sees_memory() -> None:
    """Of a command and of what it starts."""
    inner = "x = bytearray(90 << 20); import time; time.sleep(0.5)"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    ran = subprocess.run([sys.executable, "-c", "pass"], check=False)
    assert ran.returncode == 0

    peak = memory.measured([sys.executable, "-c", outer])

    assert peak.one > 90 << 20
    assert peak.all > 90 << 20
