"""An edit that somebody makes while a run replaces the file is never lost, and clean-up is honest.

The run compares a file, replaces it, and removes the replaced file in the end. Somebody may edit
the file between any two of these steps.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.helpers import crash_server
from tests.helpers.crash_server import EDIT, Call, Cut, Ended, Server
from tests.scenarios.test_crash import NO_EXCHANGE

FIX = ("fix", "CFG-YAML", "--apply", "--yes")
BOARD = ("fix", "KANBAN-SCHEMA", "--apply", "--yes")


@pytest.fixture(scope="module")
def server() -> Server:
    """The warm process."""
    return crash_server.serving(alone=True)


@pytest.fixture
def sick(tmp_path: Path) -> Path:
    """A home whose config.yaml has a tab in it."""
    return crash_server.sick(tmp_path / "home")


def cut_at(
    server: Server, home: Path, command: tuple[str, ...], wanted: Callable[[Call], bool], how: str
) -> Ended:
    """Run the command; something happens right before the first call that is wanted."""
    copy = crash_server.clone(home, home.with_name("rehearsal"))
    calls = server(*command, "--home", copy).calls
    at = next(n for n, call in enumerate(calls) if wanted(call))
    return server(*command, "--home", home, cuts=(Cut(at, how),))


def test_replaced_before_the_exchange(server: Server, sick: Path) -> None:
    """An editor that saves in the last instant wins: its file stays, and nothing is changed."""
    config = sick / "config.yaml"
    before = config.read_bytes()
    ended = cut_at(server, sick, FIX, lambda c: c.name == "exchange", f"replace:{config}")
    assert ended.code == 1, ended.said
    assert "another program changed config.yaml during the run" in ended.said
    assert config.read_bytes() == before + EDIT
    assert crash_server.leftovers(sick) == []


def test_edited_before_the_exchange(server: Server, sick: Path) -> None:
    """The same for an editor that writes into the file itself."""
    config = sick / "config.yaml"
    before = config.read_bytes()
    ended = cut_at(server, sick, FIX, lambda c: c.name == "exchange", f"edit:{config}")
    assert ended.code == 1, ended.said
    assert config.read_bytes() == before + EDIT
    assert crash_server.leftovers(sick) == []


SAME_TIME = """
import os, sys
path = sys.argv[1]
before = os.stat(path)
fd = os.open(path, os.O_RDWR)
text = os.pread(fd, before.st_size, 0)
os.pwrite(fd, b"BBBB", text.index(b"AAAA"))
os.close(fd)
os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
"""


@pytest.mark.sampled
@pytest.mark.parametrize("exchange", [True, False])
def test_an_edit_of_the_same_size_and_time(
    server: Server, sick: Path, tmp_path: Path, exchange: bool
) -> None:
    """An editor that restores the time of the file: its version is kept and named."""
    config = sick / "config.yaml"
    with config.open("a") as file:
        file.write("# note AAAA\n")
    before = config.read_bytes()
    others = () if exchange else NO_EXCHANGE
    calls = server(
        *FIX, "--home", crash_server.clone(sick, tmp_path / "rehearsal"), cuts=others
    ).calls
    name = "exchange" if exchange else "link"
    at = next(n for n, c in enumerate(calls) if c.name == name and "config.yaml" in c.path)
    words = json.dumps([sys.executable, "-I", "-S", "-c", SAME_TIME, str(config)])

    ended = server(*FIX, "--home", sick, cuts=(Cut(at, f"run:{words}"), *others))

    [kept] = sick.glob("config.yaml.kept-*")
    assert ended.code == 1, ended.said
    assert kept.read_bytes() == before.replace(b"AAAA", b"BBBB")
    assert kept.name in ended.said.replace(" ", "")
    assert crash_server.leftovers(sick) == []


def test_edited_without_exchange(server: Server, sick: Path, tmp_path: Path) -> None:
    """Where names cannot be exchanged, the file is compared once more right before."""
    config = sick / "config.yaml"
    before = config.read_bytes()
    copy = crash_server.clone(sick, tmp_path / "rehearsal")
    calls = server(*FIX, "--home", copy, cuts=NO_EXCHANGE).calls
    at = next(n for n, c in enumerate(calls) if c.name == "link" and c.path.endswith("config.yaml"))
    for how in ("edit", "replace"):
        home = crash_server.clone(sick, tmp_path / how)
        cuts = (Cut(at, f"{how}:{home / 'config.yaml'}"), *NO_EXCHANGE)
        ended = server(*FIX, "--home", home, cuts=cuts)
        assert ended.code == 1, ended.said
        assert (home / "config.yaml").read_bytes() == before + EDIT
        assert crash_server.leftovers(home) == []


def test_killed_right_after_a_foreign_edit(server: Server, sick: Path, tmp_path: Path) -> None:
    """A kill between the exchange and its reversal: the next command puts the edit back."""
    config = sick / "config.yaml"
    before = config.read_bytes()
    calls = server(*FIX, "--home", crash_server.clone(sick, tmp_path / "rehearsal")).calls
    at = next(n for n, call in enumerate(calls) if call.name == "exchange")
    cuts = (Cut(at, f"replace:{config}"), Cut(at + 1, "kill"))
    assert server(*FIX, "--home", sick, cuts=cuts).code == -9
    ended = server("undo", "--yes", "--home", sick)
    assert config.read_bytes() == before + EDIT, ended.said
    assert crash_server.leftovers(sick) == []


def test_edited_after_the_exchange(server: Server, sick: Path) -> None:
    """A program that had the old file open writes into it: that version is kept and named."""
    config = sick / "config.yaml"
    before = config.read_bytes()
    pattern = f"{sick}/.config.yaml.hermes-doctor-*.old"
    ended = cut_at(server, sick, FIX, After("config.yaml"), f"edit:{pattern}")
    [kept] = sick.glob("config.yaml.kept-*")
    assert ended.code == 1, ended.said
    assert kept.read_bytes() == before + EDIT
    assert str(kept) in ended.said.replace(" ", "") or kept.name in ended.said.replace(" ", "")
    assert "not in the backup" in ended.said
    assert crash_server.leftovers(sick) == []
    assert server(*FIX, "--home", sick).code == 0
    assert kept.exists()


def test_rows_written_to_a_log_that_was_moved_away(server: Server, home: Path) -> None:
    """A log that grew after it was replaced is kept with its database, so it can be opened."""
    (home / "kanban.db").unlink()
    board = crash_server.lacking(home / "kanban.db")
    crash_server.logged(board, "UPDATE tasks SET title = 'only in the log'")
    pattern = f"{home}/.kanban.db-wal.hermes-doctor-*.old"
    ended = cut_at(server, home, BOARD, After("kanban.db"), f"edit:{pattern}")
    assert ended.code == 1, ended.said
    [kept] = [one for one in home.glob("kanban.db.kept-*") if not one.name.endswith("-wal")]
    assert Path(f"{kept}-wal").read_bytes().endswith(EDIT)
    with closing(sqlite3.connect(kept)) as db:
        assert db.execute("SELECT title FROM tasks").fetchall() == [("only in the log",)]
    with closing(sqlite3.connect(board)) as db:
        assert db.execute("SELECT title FROM tasks").fetchall() == [("only in the log",)]


def test_a_kept_file_is_named_after_a_kill(server: Server, sick: Path, tmp_path: Path) -> None:
    """Killed right after an edited file got its visible name, the next command still names it."""
    pattern = ".config.yaml.hermes-doctor-*.old"
    copy = crash_server.clone(sick, tmp_path / "rehearsal")
    calls = server(*FIX, "--home", copy).calls
    wanted = After("config.yaml")
    at = next(n for n, call in enumerate(calls) if wanted(call))
    copy = crash_server.clone(sick, tmp_path / "second")
    edit = Cut(at, f"edit:{copy}/{pattern}")
    calls = server(*FIX, "--home", copy, cuts=(edit,)).calls
    named = next(n for n, c in enumerate(calls) if c.name == "rename" and c.path.endswith(".old"))
    cuts = (Cut(at, f"edit:{sick}/{pattern}"), Cut(named + 1, "kill"))
    assert server(*FIX, "--home", sick, cuts=cuts).code == -9
    [kept] = sick.glob("config.yaml.kept-*")

    again = server(*FIX, "--home", sick)

    assert again.code == 1, again.said
    assert kept.exists()
    assert kept.name in again.said.replace(" ", "")


def test_without_its_backup_a_replaced_file_is_kept(
    server: Server, sick: Path, tmp_path: Path
) -> None:
    """A run is cut off in its clean-up and its backup is lost: the old file is the only copy."""
    before = (sick / "config.yaml").read_bytes()
    calls = server(*FIX, "--home", crash_server.clone(sick, tmp_path / "rehearsal")).calls
    at = next(
        n
        for n, call in enumerate(calls)
        if call.name == "unlink" and ".config.yaml" in call.path and call.path.endswith(".old")
    )
    assert server(*FIX, "--home", sick, cuts=(Cut(at, "kill"),)).code == -9
    [run] = [run["id"] for run in crash_server.journals(sick)]
    shutil.rmtree(sick / "backups" / "doctor" / run)

    again = server(*FIX, "--home", sick)

    [kept] = sick.glob("config.yaml.kept-*")
    assert kept.read_bytes() == before
    assert again.code == 1, again.said


class After:
    """Whether a call is the next one after a file was replaced."""

    def __init__(self, name: str) -> None:
        self.mark = f"/.{name}.hermes-doctor-"
        self.found = False

    def __call__(self, call: Call) -> bool:
        found, mine = self.found, call.name == "rename" and self.mark in call.path
        self.found = mine and call.path.endswith(".new")
        return found


def test_one_file_that_cannot_be_removed(server: Server, sick: Path, tmp_path: Path) -> None:
    """The others are removed all the same, it is named, and the next command removes it."""
    everything = ("fix", "--apply", "--yes")
    copy = crash_server.clone(sick, tmp_path / "rehearsal")
    calls = [c for c in server(*everything, "--home", copy).calls if c.name == "unlink"]
    at = next(n for n, c in enumerate(calls) if "/..env" in c.path and c.path.endswith(".old"))
    ended = server(*everything, "--home", sick, cuts=(Cut(at, "EIO", only=("unlink",)),))
    [left] = crash_server.leftovers(sick)
    assert left.startswith("..env") and left.endswith(".old")
    assert ended.code == 1, ended.said
    assert left in ended.said.replace(" ", "") and "may contain secrets" in ended.said
    [run] = [run for run in crash_server.journals(sick) if run["unremoved"]]
    assert run["state"] == "done"

    again = server(*everything, "--home", sick)
    assert again.code == 0, again.said
    assert crash_server.leftovers(sick) == []


def test_one_file_that_recovery_cannot_remove(server: Server, sick: Path, tmp_path: Path) -> None:
    """The same for a recovery: exit code 1, and the message says what is left."""
    calls = server(*FIX, "--home", crash_server.clone(sick, tmp_path / "rehearsal")).calls
    at = next(n for n, call in enumerate(calls) if call.name == "exchange")
    assert server(*FIX, "--home", sick, cuts=(Cut(at + 1, "kill"),)).code == -9
    template = crash_server.clone(sick, tmp_path / "cut-off")
    unlinks = [c for c in server("undo", "--yes", "--home", sick).calls if c.name == "unlink"]
    wrong = next(n for n, c in enumerate(unlinks) if crash_server.MARK in c.path and c.effect)
    home = crash_server.clone(template, tmp_path / "again")
    cut = Cut(wrong, "EIO", only=("unlink",))
    ended = server("undo", "--yes", "--home", home, cuts=(cut,))
    assert ended.code == 1, ended.said
    assert "could not be removed" in ended.said
    assert len(crash_server.leftovers(home)) == 1
