"""A disk that is full or read-only: nothing is changed, and one line says so."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import budget, crash_server, requirements
from tests.helpers.crash_server import NEEDS_ROOM, Cut, Ended, Server
from tests.helpers.warm_server import ROOT

CHUNKS = 2
"""A command's calls are shared out over this many tests, so that they run side by side."""
LEVELS = (0, 4, 16, 40, 64, 88, 112, 136, 160, 200, 260, 340, 500, 4000, 4200, 5000)
"""Kilobytes that are free when the repair begins."""


@pytest.fixture(scope="module")
def server() -> Server:
    """The warm process."""
    return crash_server.serving(alone=True)


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a fault of every kind."""
    return crash_server.sick(tmp_path_factory.mktemp("sick") / "home")


def clear(ended: Ended) -> None:
    """One line says it, and it is no traceback and no bug."""
    assert "Traceback" not in ended.said and "bug" not in ended.said, ended.said
    assert "space" in ended.said.lower(), ended.said
    if ended.code == 2:
        assert len(ended.err.splitlines()) <= 3 and ended.err.count("hermes-doctor:") == 1


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_fix_on_a_disk_that_fills(
    chunk: int, lasting: bool, server: Server, sick: Path, tmp_path: Path
) -> None:
    """No space at any call that needs some: as before, one line, and later the fix still works."""
    before = crash_server.state(sick)
    home = crash_server.clone(sick, tmp_path / "home")
    rehearsal = server("fix", "--apply", "--yes", "--home", home)
    assert rehearsal.code == 0, rehearsal.said
    after = crash_server.state(home)
    needy = [call for call in rehearsal.calls if call.name in NEEDS_ROOM]
    numbers = [
        n for n, call in enumerate(needy) if not lasting or call.name in crash_server.LASTING
    ]
    chosen = budget.sample(numbers, 6 if lasting else 8, lambda n: needy[n].name)
    for n in chosen[chunk::CHUNKS]:
        shutil.rmtree(home)
        crash_server.clone(sick, home)
        where = f"{needy[n]} ({n})"
        full = Cut(n, "ENOSPC", only=NEEDS_ROOM, lasting=lasting)
        ended = server("fix", "--apply", "--yes", "--home", home, cuts=(full,))
        if ended.code == 0:  # it found a way that needs no room
            assert crash_server.state(home) == after, where
        else:
            assert ended.code in (1, 2), f"{where}: {ended.said}"
            assert crash_server.state(home) == before, f"{where}: {ended.said}"
            assert crash_server.modified(home) == crash_server.modified(sick), where
            clear(ended)
        assert crash_server.leftovers(home) == [], f"{where}: {ended.said}"
        again = server("fix", "--apply", "--yes", "--home", home)
        assert again.code == 0, f"{where}: {again.said}"
        assert crash_server.state(home) == after, where
        assert crash_server.leftovers(home) == [], where


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["ENOSPC", "EDQUOT", "EIO"])
def test_undo_on_a_disk_that_fails(how: str, server: Server, sick: Path, tmp_path: Path) -> None:
    """No space, no quota or a broken disk during an undo: the fix stays as it was."""
    home = crash_server.clone(sick, tmp_path / "home")
    assert server("fix", "--apply", "--yes", "--home", home).code == 0
    fixed = crash_server.clone(home, tmp_path / "fixed")
    calls = server("undo", "--yes", "--home", home).calls
    needy = [call for call in calls if call.name in NEEDS_ROOM]
    numbers = range({"ENOSPC": 0, "EDQUOT": 1, "EIO": 2}[how], len(needy), 5)
    for n in budget.sample(numbers, 6, lambda n: needy[n].name):
        shutil.rmtree(home)
        crash_server.clone(fixed, home)
        ended = server("undo", "--yes", "--home", home, cuts=(Cut(n, how, only=NEEDS_ROOM),))
        where = f"{needy[n]} ({n}): {ended.said}"
        now = crash_server.state(home)
        assert "Traceback" not in ended.said and "bug" not in ended.said, where
        assert crash_server.leftovers(home) == [], where
        assert now == crash_server.state(fixed if ended.code else sick), where
        server("undo", "--yes", "--home", home)
        assert crash_server.state(home) == crash_server.state(sick), where


WRITE = "INSERT INTO tasks (id, title, status, created_at) VALUES ('t2', 'since', 'todo', 2)"


@pytest.mark.sampled
@pytest.mark.parametrize("command", ["fix", "undo", "restore"])
def test_a_roll_back_that_cannot_be_recorded(command: str, server: Server, home: Path) -> None:
    """The disk is full in the middle of the switch, then there is room and Hermes writes a row.

    The next command knows that nothing was changed: it claims no success and no damage.
    """
    board = home / "kanban.db"
    board.unlink()
    crash_server.lacking(board)
    words: tuple[str, ...] = ("fix", "KANBAN-SCHEMA", "--apply", "--yes")
    if command == "undo":
        assert server(*words, "--home", home).code == 0
        words = ("undo", "--yes")
    elif command == "restore":
        made = server("backup", "create", "--json", "--home", home).json["id"]
        words = ("backup", "restore", made, "kanban.db", "--yes")
    template = crash_server.clone(home, home.with_name("template"))
    calls = server(*words, "--home", home).calls
    first = next(n for n, call in enumerate(calls) if call.name == "exchange")
    last = max(n for n, call in enumerate(calls) if "/.run.json.hermes-doctor-" in call.path)
    moments = [n for n in range(first, last) if calls[n].effect]
    for n in budget.sample([moments[0], *moments[2::4]], 4):
        shutil.rmtree(home)
        crash_server.clone(template, home)
        failed = server(*words, "--home", home, cuts=(Cut(n, "ENOSPC", lasting=True),))
        if crash_server.journals(home)[-1]["state"] not in ("committing", "verifying"):
            continue
        assert failed.code == 2 and "Nothing was changed." in failed.said, failed.said
        assert board.read_bytes() == (template / "kanban.db").read_bytes()
        with contextlib.closing(sqlite3.connect(board)) as db, db:
            db.execute(WRITE)
        written = board.read_bytes()

        again = server("fix", "CFG-YAML", "--apply", "--yes", "--home", home)

        assert again.code == 0, again.said
        assert "failed earlier and was rolled back" in again.said, again.said
        assert "interrupted" not in again.said and "only in part" not in again.said, again.said
        receipt = crash_server.journals(home)[-1]
        assert receipt["state"] == "rolled-back"
        folder = home / "backups" / "doctor" / "runs" / receipt["id"]
        assert [one.name for one in folder.iterdir()] == ["run.json"]
        assert board.read_bytes() == written
        assert crash_server.leftovers(home) == []
        if command == "undo":
            assert crash_server.journals(home)[0]["state"] == "done"


def test_backup_on_a_disk_that_fills(server: Server, sick: Path, tmp_path: Path) -> None:
    """No space during a backup: there is none, the older one is whole, and one line says it."""
    home = crash_server.clone(sick, tmp_path / "home")
    assert server("backup", "create", "--home", home).code == 0
    calls = server("backup", "create", "--home", home).calls
    needy = [call for call in calls if call.name in NEEDS_ROOM]
    for n in budget.sample(range(0, len(needy), 3), 6):
        listed = server("backup", "list", "--json", "--home", home).json["backups"]
        full = Cut(n, "ENOSPC", only=NEEDS_ROOM)
        ended = server("backup", "create", "--home", home, cuts=(full,))
        assert ended.code == 2, f"{needy[n]}: {ended.said}"
        clear(ended)
        assert crash_server.leftovers(home) == []
        if needy[n].name != "fsync":  # the last one comes after the rename: it may have worked
            assert server("backup", "list", "--json", "--home", home).json["backups"] == listed
        assert server("backup", "verify", "--all", "--home", home).code == 0


# -- real disks ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mounting() -> None:
    """Skip where no disk can be mounted; in CI that is a failure."""
    probe = ["unshare", "-m", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
    able = os.geteuid() == 0 and shutil.which("unshare") is not None
    if not able or subprocess.run(probe, capture_output=True, check=False).returncode:
        requirements.missing("mounting a disk of its own needs root")


PRELUDE = """
import json, os, subprocess, sys
from pathlib import Path
from tests.helpers import crash_server
from tests.helpers.crash_server import state, modified, leftovers, clone

server = crash_server.serving()

sick, work = Path(sys.argv[1]), Path(sys.argv[2])
before, results = state(sick), []

def mount(name, size):
    place = work / name
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
    return place

def fill(disk, free):
    st = os.statvfs(disk)
    with open(disk / "ballast", "wb") as file:
        file.write(bytes(max(0, st.f_bavail * st.f_frsize - free)))

def doctor(*args):
    limit = {"hermes_doctor.backup.vault.free_space.MARGIN": margin}
    done = server(*args, env={"COLUMNS": "200"}, settings=limit)
    return {"code": done.code, "said": done.said, "err": done.err}

def report(home, done, **more):
    same = state(home) == before and modified(home) == modified(sick)
    results.append(done | {"same": same, "leftovers": leftovers(home)} | more)

margin = 0
"""
ENDING = "\nprint(json.dumps(results))"


def inside(script: str, sick: Path, work: Path) -> list[dict[str, Any]]:
    """Run a script in a mount namespace of its own; what it mounts ends with it."""
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", PRELUDE + script + ENDING, str(sick), str(work)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return results


def whole(result: dict[str, Any]) -> bool:
    """Whether all was done; that the disk is nearly full is then still told."""
    left = result["code"] == 1 and "DISK-FULL" in result["said"] and not result["same"]
    return result["code"] == 0 or left


def honest(results: list[dict[str, Any]]) -> None:
    """Either all was done, or nothing was changed and one line says that there is no room."""
    for result in results:
        assert "Traceback" not in result["said"] and "bug" not in result["said"], result
        assert result["leftovers"] == [], result
        if whole(result):
            assert not result["same"], result
        else:
            assert result["code"] in (1, 2) and result["same"], result
            assert any(word in result["said"].lower() for word in ("space", "free", "full"))
            assert len(result["err"].splitlines()) <= 3, result


@pytest.mark.sampled
@pytest.mark.usefixtures("mounting")
@pytest.mark.parametrize("margin", [0, 4 * 1024 * 1024], ids=["no margin", "margin"])
def test_a_disk_that_is_really_full(margin: int, sick: Path, tmp_path: Path) -> None:
    """On real disks with less and more room left, a fix is done whole or not at all."""
    levels = tuple(budget.sample(LEVELS, 9)) if margin == 0 else LEVELS[::3]
    script = f"""
margin = {margin}
disk = mount("disk", "16m")
for free in {levels}:
    home = clone(sick, disk / "home")
    fill(disk, free * 1024)
    report(home, doctor("fix", "--apply", "--yes", "--home", home), free=free)
    subprocess.run(["rm", "-rf", home, disk / "ballast"], check=True)
"""
    results = inside(script, sick, tmp_path)
    honest(results)
    assert results[0]["code"] == 2
    enough = margin == 0 or results[-1]["free"] > 4900
    assert whole(results[-1]) if enough else results[-1]["code"] == 2


@pytest.mark.usefixtures("mounting")
def test_a_vault_on_another_disk(sick: Path, tmp_path: Path) -> None:
    """With the vault elsewhere a fix works and is undone; a full vault stops it."""
    script = """
disk, other = mount("disk", "16m"), mount("other", "16m")
home = clone(sick, disk / "home")
report(home, doctor("fix", "--apply", "--yes", "--home", home, "--vault", other / "vault"))
report(home, doctor("backup", "verify", "--all", "--home", home, "--vault", other / "vault"))
report(home, doctor("undo", "--yes", "--home", home))
fill(other, 8192)
report(home, doctor("fix", "--apply", "--yes", "--home", home, "--vault", other / "vault"))
subprocess.run(["rm", other / "ballast"], check=True)
fill(disk, 8192)
report(home, doctor("fix", "--apply", "--yes", "--home", home, "--vault", other / "vault"))
results.append({"wide": crash_server.wide(other / "vault")})
"""
    *results, wide = inside(script, sick, tmp_path)
    fixed, verified, undone, vault_full, home_full = results
    assert wide == {"wide": []}
    assert whole(fixed) and [verified["code"], undone["code"]] == [0, 0], results[:3]
    assert not fixed["same"] and not verified["same"] and undone["same"]
    honest([vault_full, home_full])
    assert vault_full["code"] == home_full["code"] == 2


@pytest.mark.usefixtures("mounting")
def test_a_disk_that_is_read_only(sick: Path, tmp_path: Path) -> None:
    """On a read-only disk check works, and what would write refuses in one line."""
    script = """
disk = mount("disk", "16m")
home = clone(sick, disk / "home")
made = doctor("backup", "create", "--home", home)
subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
report(home, doctor("check", "--home", home))
report(home, doctor("fix", "--apply", "--yes", "--home", home))
report(home, doctor("fix", "--apply", "--yes", "--home", home, "--vault", work / "vault"))
report(home, doctor("backup", "create", "--home", home))
report(home, doctor("backup", "create", "--home", home, "--vault", work / "vault"))
"""
    looked, fixed, elsewhere, made, saved = inside(script, sick, tmp_path)
    assert looked["code"] == 1 and "CFG-YAML" in looked["said"]
    for refused in (fixed, elsewhere, made):
        assert refused["code"] == 2, refused
        assert "Nothing was changed" in refused["said"] or "No backup" in refused["said"], refused
        assert refused["err"].count("hermes-doctor:") == 1 and refused["same"], refused
    assert saved["code"] == 0, saved
