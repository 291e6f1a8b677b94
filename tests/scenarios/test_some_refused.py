"""One of several faults cannot be repaired: it is named, the others are, and the exit code tells.

And what was hidden behind a fault is looked for again once that fault is gone.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import crash_server, support
from tests.helpers.support import Done

# -- refused -------------------------------------------------------------------------------

CHECK = '''\
from hermes_doctor.api import Finding, Severity, check


@check(id="notes", group="test", codes=["NOTE"])
def notes(probes):
    """Are all notes friendly?"""
    for path in sorted(probes.home.path.glob("note-*")):
        if path.read_text() == "rude":
            yield Finding("NOTE", Severity.ERROR, f"{path.name} is rude", path.name, fix="be-kind")
'''
FIX = '''\
import os
from hermes_doctor.api import CannotFix, ReplaceDatabase, ReplaceFile, Safety, fix, snapshot


@fix(id="be-kind", codes=["NOTE"], safety=Safety.SAFE)
def be_kind(probes, finding):
    """Make the note friendly."""
    path = probes.home / finding.subject
    seen = snapshot(path.resolve())
    if "changed" in path.name:  # somebody writes it right after it was planned for
        os.utime(path)
    if "impossible" in path.name:
        def rebuild(copy):
            raise CannotFix("this one is beyond repair")
        yield ReplaceDatabase(path, rebuild, "a test", seen)
    else:
        yield ReplaceFile(path, b"kind", why="be kind", expect=seen, before=b"rude")
'''


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A plugin folder for notes of all kinds."""
    folder = tmp_path / "mine"
    support.put(folder / "checks" / "notes.py", CHECK, 0o644)
    support.put(folder / "fixes" / "be_kind.py", FIX, 0o644)
    for place in (folder, folder / "checks", folder / "fixes"):
        place.chmod(0o755)
    return folder


def repair(home: Path, mine: Path, *args: str) -> Done:
    """Repair what can be repaired."""
    options = ("--apply", "--yes", "--home", home, "--plugins", mine)
    done = support.doctor("fix", *options, *args)
    assert "bug in" not in done.out + done.err, done.err
    assert crash_server.leftovers(home) == []
    return done


def outcomes(done: Done) -> dict[str, tuple[str, str | None]]:
    """How each note ended, by the last run that had to do with it."""
    found: dict[str, tuple[str, str | None]] = {}
    for run in done.json["repair"]["runs"]:
        for item in run["items"]:
            found[item["subject"]] = item["outcome"], item["reason"]
    return found


REFUSED = {
    "note-changed": "Another program changed note-changed just now",
    "note-impossible": "this one is beyond repair",
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", REFUSED)
def test_the_others_are_repaired(home: Path, mine: Path, name: str) -> None:
    """One is refused: it stays byte for byte, is named with the reason, and the others are done."""
    for note in ("note-a", name, "note-z"):
        support.put(home / note, "rude")

    done = repair(home, mine, "--json")

    assert done.code == 1
    ended = outcomes(done)
    assert (ended["note-a"], ended["note-z"]) == (("verified", None), ("verified", None))
    assert ended[name][0] == "refused"
    assert REFUSED[name] in (ended[name][1] or "")
    assert [(home / note).read_text() for note in ("note-a", name, "note-z")] == [
        "kind",
        "rude",
        "kind",
    ]
    left = [one["subject"] for one in done.json["findings"] if one["code"] != "CFG-FALLBACK-NONE"]
    assert left == [name]


@pytest.mark.sampled
@pytest.mark.parametrize("name", REFUSED)
def test_the_refused_one_is_named_on_the_screen(home: Path, mine: Path, name: str) -> None:
    """A person reads which one is left, and why."""
    for note in ("note-a", name):
        support.put(home / note, "rude")

    done = repair(home, mine)

    assert done.code == 1
    said = " ".join(done.out.split())
    assert f"NOTE {name} is rude. {REFUSED[name]}" in said
    assert "NOTE note-a" in said
    assert "repaired and checked" in said


def test_several_are_refused(home: Path, mine: Path) -> None:
    """Two of four are refused, for different reasons: the other two are done all the same."""
    for note in ("note-a", "note-changed", "note-impossible", "note-z"):
        support.put(home / note, "rude")

    done = repair(home, mine, "--json")

    assert done.code == 1
    assert {note: outcome for note, (outcome, _) in outcomes(done).items()} == {
        "note-a": "verified",
        "note-changed": "refused",
        "note-impossible": "refused",
        "note-z": "verified",
    }
    undone = support.doctor("undo", "--yes", "--home", home)
    assert undone.code == 0, undone.out + undone.err
    assert {path.read_text() for path in home.glob("note-*")} == {"rude"}


@pytest.mark.sampled
@pytest.mark.parametrize("name", REFUSED)
def test_all_are_refused(home: Path, mine: Path, name: str) -> None:
    """Where nothing else is to be done, nothing is changed, and the one is named."""
    support.put(home / name, "rude")
    before = support.contents(home)

    done = repair(home, mine)

    assert done.code in (1, 2)
    assert REFUSED[name] in " ".join((done.out + done.err).split())
    assert support.contents(home) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another user")
def test_a_file_of_somebody_else(home: Path, mine: Path) -> None:
    """A note that leads out of the home to a file of root's is refused; its neighbour is done."""
    with support.reachable_folder() as place:
        victim = support.put(place / "victim", "rude", 0o644)
        support.put(home / "note-a", "rude")
        (home / "note-link").symlink_to(victim)
        crash_server.chown(home)

        done = repair(home, mine, "--json")

        assert done.code == 1
        ended = outcomes(done)
        assert ended["note-a"] == ("verified", None)
        assert ended["note-link"][0] == "refused"
        assert "not to the owner of the home" in (ended["note-link"][1] or "")
        assert victim.read_text() == "rude"


def test_a_database_in_use(home: Path, mine: Path) -> None:
    """A database that a process has open is left; a file beside it is done."""
    support.put(home / "note-a", "rude")
    (home / "kanban.db").unlink()
    crash_server.lacking(home / "kanban.db")
    before = (home / "kanban.db").read_bytes()
    script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('SELECT * FROM "
    script += "tasks').fetchall(); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(home / "kanban.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout and holder.stdout.readline() == b"open\n"
        done = repair(home, mine, "--json")
        assert holder.stdin
        holder.stdin.close()
        holder.wait(10)

    assert done.code == 1
    ended = outcomes(done)
    assert ended["note-a"] == ("verified", None)
    assert ended["kanban.db"][0] == "refused"
    assert f"in use by process {holder.pid}" in (ended["kanban.db"][1] or "")
    assert (home / "kanban.db").read_bytes() == before


# -- hidden --------------------------------------------------------------------------------


def columns(path: Path) -> list[str]:
    """The columns of the tasks."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return [row[1] for row in db.execute("PRAGMA table_info(tasks)")]


def test_a_column_behind_a_damaged_header(home: Path) -> None:
    """Nobody can see a missing column in a file that is no database: one command repairs both.

    One undo restores the bytes before the first of its two runs.
    """
    (home / "kanban.db").unlink()
    crash_server.lacking(home / "kanban.db")
    support.clobber(home / "kanban.db")
    assert support.check(home).codes == ["DB-NOTADB"]
    before = support.contents(home)

    done = support.doctor("fix", "--apply", "--yes", "--json", "--home", home)

    assert done.code == 0, done.out
    codes = [[item["code"] for item in run["items"]] for run in done.json["repair"]["runs"]]
    assert codes == [["DB-NOTADB"], ["KANBAN-SCHEMA"]]
    assert "session_id" in columns(home / "kanban.db")
    assert done.codes == []
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == before


HIDING = '''\
from hermes_doctor.api import Finding, Severity, check


@check(id="layers", group="test", codes=["LAYER"])
def layers(probes):
    """Is the onion peeled?"""
    left = len((probes.home / "onion").read_text())
    if left:
        yield Finding("LAYER", Severity.{severity}, f"{{left}} layers", f"layer {{left}}",
                      fix={fix})
'''
PEEL = '''\
from hermes_doctor.api import ReplaceFile, Safety, fix, snapshot


@fix(id="peel", codes=["LAYER"], safety=Safety.{safety})
def peel(probes, finding):
    """Take one layer off."""
    path = probes.home / "onion"
    text = path.read_bytes()
    yield ReplaceFile(path, text[1:], why="peel", expect=snapshot(path), before=text)
'''


def onion(folder: Path, *, fix: str = '"peel"', safety: str = "SAFE", **words: Any) -> Path:
    """A plugin folder whose fault has another one behind it, for as many letters as there are."""
    words = {"severity": "ERROR", "fix": fix} | words
    support.put(folder / "checks" / "layers.py", HIDING.format(**words), 0o644)
    support.put(folder / "fixes" / "peel.py", PEEL.format(safety=safety), 0o644)
    for place in (folder, folder / "checks", folder / "fixes"):
        place.chmod(0o755)
    return folder


@pytest.mark.sampled
@pytest.mark.parametrize(("layers", "left"), [(1, 0), (3, 0), (5, 0), (8, 3)])
def test_faults_behind_faults(home: Path, tmp_path: Path, layers: int, left: int) -> None:
    """One after the other shows and is repaired; what is too deep for one call is left."""
    mine = onion(tmp_path / "mine")
    support.put(home / "onion", "x" * layers)

    done = repair(home, mine, "--json")

    assert len((home / "onion").read_text()) == left
    assert done.code == (1 if left else 0)
    assert done.codes == (["LAYER"] if left else [])


def test_a_hidden_fault_that_no_fix_can_cure(home: Path, tmp_path: Path) -> None:
    """It is named as left, with exit code 1, although everything that was planned is done."""
    fix = '"peel" if left == 2 else None'
    mine = onion(tmp_path / "mine", fix=fix)
    support.put(home / "onion", "xx")

    done = repair(home, mine)

    assert done.code == 1
    said = " ".join(done.out.split())
    assert "repaired and checked" in said
    assert "LAYER 1 layers." in said


def test_a_hidden_fault_that_asks_first(home: Path, tmp_path: Path) -> None:
    """Nothing is done about it that nobody agreed to."""
    mine = onion(tmp_path / "mine", safety="CONFIRM")
    support.put(home / "onion", "xx")

    done = support.doctor("fix", "--apply", "--home", home, "--plugins", mine)

    assert (home / "onion").read_text() == "xx"
    assert done.code == 1
    assert "asks first" in " ".join(done.out.split())


def test_a_fix_of_one_code_leaves_the_hidden_other(home: Path) -> None:
    """Asked for one code, only that one is repaired, also where another shows behind it."""
    (home / "kanban.db").unlink()
    crash_server.lacking(home / "kanban.db")
    support.clobber(home / "kanban.db")

    done = support.doctor("fix", "DB-NOTADB", "--apply", "--yes", "--home", home)

    assert done.code == 0, done.out
    assert "session_id" not in columns(home / "kanban.db")
    assert support.check(home).codes == ["KANBAN-SCHEMA"]
