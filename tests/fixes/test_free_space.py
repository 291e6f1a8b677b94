"""A full disk is freed without a copy, without a restart, and only with a yes to this code."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import disk, mounts
from hermes_doctor.core.system.mounts import Space
from hermes_doctor.diagnosis.probes import large_files
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.steps.files import FreeSpace
from tests.helpers import support
from tests.helpers.fix_contract import ProvedBy
from tests.helpers.one_check import ask
from tests.helpers.planned_steps import Steady, finding, owned, sentences

MEGABYTE = 1024**2
FULL = Space(100 * 1024 * MEGABYTE, 0, 0, 0, read_only=False)
YESTERDAY = time.time() - 100_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with places for 2,100 files."""
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1g,nr_inodes=2100", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(words, check=False).returncode:
        pytest.skip("may not mount")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.wide
def test_a_full_disk(small_disk: Path) -> None:
    """Request dumps take all places for files; the fix removes them and nothing else."""
    home = support.healthy(small_disk / "home")
    (home / "sessions").mkdir()
    support.doctor("backup", "create", "--home", home)
    for n in range(os.statvfs(home).f_favail - 15):
        os.close(os.open(home / "sessions" / f"request_dump_{n:04}.json", os.O_CREAT, 0o600))
    before = support.contents(home)

    plan = support.doctor("fix", "--home", home)
    unnamed = support.doctor("fix", "--apply", "--yes", "--home", home)
    untouched = support.contents(home) == before
    done = support.doctor("fix", "DISK-FULL", "--apply", "--yes", "--home", home)

    assert "delete what is not needed: 2,0" in plan.out and "cannot be restored" in plan.out
    assert "no data is lost" not in plan.out
    assert unnamed.code == 1 and untouched
    assert "name the code: hermes-doctor fix DISK-FULL --apply --yes" in unnamed.out
    assert done.code == 0, done.out + done.err
    assert "DISK-FULL" not in support.check(home).codes
    gone = before.keys() - support.contents(home).keys()
    assert {name[:22] for name in gone} == {"sessions/request_dump_"}
    assert len(list((home / "sessions").iterdir())) == 20


def test_what_may_go(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest is named first; the end of a log, the newest dumps and new files stay."""
    log = support.put(home / "logs" / "agent.log", "one more line\n" * 300_000 + "the last line\n")
    for name, when in (("old.png", YESTERDAY), ("new.png", time.time())):
        os.utime(support.put(home / "image_cache" / name, b"0" * 2_000_000), (when, when))
    (home / "cache").symlink_to(home / "logs")
    for n in range(22):
        path = support.put(home / "sessions" / f"request_dump_{n:02}.json", "{}")
        os.utime(path, (YESTERDAY + n, YESTERDAY + n))
    monkeypatch.setattr(mounts, "free_space", lambda _: FULL)
    inode = log.stat().st_ino

    _, [found] = ask("disk-space", home)
    FreeSpace(Home(home), tuple(Probes(Home(home)).files.removable_files())).do()

    assert [one.where for one in found.evidence[1:]] == ["logs/agent.log", "image_cache/old.png"]
    assert found.fix == "free-space"
    kept = log.read_text()
    assert log.stat().st_ino == inode and 0 < len(kept) <= MEGABYTE
    assert kept.startswith("one more line\n") and kept.endswith("the last line\n")
    assert [path.name for path in (home / "image_cache").iterdir()] == ["new.png"]
    dumps = sorted(path.name for path in (home / "sessions").iterdir())
    assert (len(dumps), dumps[0]) == (20, "request_dump_02.json")


def test_dumps_behind_a_link_stay(home: Path, tmp_path: Path) -> None:
    """The folder may be another home's, or anybody's."""
    elsewhere = tmp_path / "elsewhere"
    for n in range(22):
        path = support.put(elsewhere / f"request_dump_{n:02}.json", "{}")
        os.utime(path, (YESTERDAY + n, YESTERDAY + n))
    shutil.rmtree(home / "sessions", ignore_errors=True)
    (home / "sessions").symlink_to(elsewhere)

    assert Probes(Home(home)).files.removable_files() == []


def test_a_vault_of_very_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many are measured, whatever folders they are in, and the result says so."""
    for backup in range(3):
        for folder in range(4):
            for n in range(5):
                name = f"2026111{backup}-010203-abc/files/{folder}/{n}"
                support.put(tmp_path / name, "0123456789")

    assert large_files.backups_size(tmp_path) == (3, 600, False)

    monkeypatch.setattr(large_files, "MOST", 30)
    found = large_files.backups_size(tmp_path)

    assert found.more
    assert (found.backups, found.size <= 300) == (3, True)


def test_a_cache_of_very_many_folders(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as there is time for."""
    for n in range(100):
        path = support.put(home / "cache" / str(n % 5) / f"file{n}", "0123456789")
        os.utime(path, (YESTERDAY, YESTERDAY))
    monkeypatch.setattr(large_files, "MOST", 30)

    assert 0 < len(Probes(Home(home)).files.removable_files()) < 30


def test_a_file_that_cannot_be_deleted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are deleted all the same, and the result says so."""
    for name in ("a.png", "b.png"):
        path = support.put(home / "cache" / name, b"0" * 2_000)
        os.utime(path, (YESTERDAY, YESTERDAY))
    remove = disk.remove

    def refuse(path: Path) -> None:
        if path.name == "a.png":
            raise PermissionError(1, "Operation not permitted")
        remove(path)

    monkeypatch.setattr(disk, "remove", refuse)
    step = FreeSpace(Home(home), tuple(Probes(Home(home)).files.removable_files()))
    step.do()

    assert [path.name for path in (home / "cache").iterdir()] == ["a.png"]
    assert step.notes()[1:] == ["1 file could not be deleted, such as cache/a.png."]


@pytest.mark.parametrize(
    ("code", "fix", "pid"),
    [("GW-DOWN", "start-gateway", None), ("GW-LOOP-BLOCKED", "restart-gateway", 7)],
)
def test_no_start_before_there_is_room(
    home: Path, monkeypatch: pytest.MonkeyPatch, code: str, fix: str, pid: int | None
) -> None:
    """A gateway that cannot save anything is neither started nor restarted."""
    owned(monkeypatch, Steady(home, pid, home.parent))
    assert sentences(Probes(Home(home)), finding(code, fix))
    monkeypatch.setattr(mounts, "free_space", lambda _: FULL)

    with pytest.raises(CannotFix, match="The disk is full"):
        sentences(Probes(Home(home)), finding(code, fix))


PROVED_BY = ProvedBy(
    "fixes/test_free_space.py::test_a_full_disk",
    why="It needs a full disk, and what it deletes cannot be restored.",
    undoes=False,
)
