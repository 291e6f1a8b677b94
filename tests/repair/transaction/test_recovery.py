"""After a run was cut off: the next command says what happened, and does no more than that."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import crash_server, support
from tests.helpers.crash_server import Call, Cut, Server

MOMENTS = ("backing-up", "staging", "committing", "verifying")


@pytest.fixture(scope="module")
def server() -> Server:
    """The warm process."""
    return crash_server.serving()


@pytest.fixture
def sick(tmp_path: Path) -> Path:
    """A home with a fault of every kind."""
    return crash_server.sick(tmp_path / "home")


REHEARSED: dict[str, tuple[Call, ...]] = {}


def rehearsed(server: Server, home: Path, *codes: str) -> tuple[Call, ...]:
    """The calls of a whole fix of such a home; each kind of home is rehearsed once."""
    kind = repr((codes, sorted(crash_server.state(home).items())))
    if kind not in REHEARSED:
        copy = crash_server.clone(home, home.with_name("rehearsal"))
        REHEARSED[kind] = server("fix", *codes, "--apply", "--yes", "--home", copy).calls
        shutil.rmtree(copy)
    return REHEARSED[kind]


def cut_off(server: Server, home: Path, moment: str, *codes: str) -> str:
    """Kill a fix in the middle of what it does; the run's id."""
    calls = rehearsed(server, home, *codes)
    saves = [n for n, c in enumerate(calls) if c.name == "rename" and "run.json" in c.path]
    swaps = [n for n, c in enumerate(calls) if c.name == "exchange"]
    at = {
        "backing-up": saves[0] + 12,
        "staging": saves[1] + 6,
        "committing": swaps[-1],
        "verifying": next(n for n in saves if n > swaps[-1]) + 1,
    }[moment]
    ended = server("fix", *codes, "--apply", "--yes", "--home", home, cuts=(Cut(at, "kill"),))
    assert ended.code == -9, ended.said
    last = crash_server.journals(home)[-1]
    assert last["state"] == moment
    return str(last["id"])


@pytest.mark.sampled
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    "command",
    [("fix", "--apply", "--yes"), ("undo", "--yes"), ("backup", "restore", "none", "--yes")],
    ids=["fix", "undo", "restore"],
)
def test_the_next_command_says_what_happened(
    command: tuple[str, ...], moment: str, server: Server, sick: Path
) -> None:
    """Whichever command comes next names the run, also when it then has nothing to do itself."""
    run = cut_off(server, sick, moment)
    ended = server(*command, "--home", sick)
    assert run in ended.said and "was interrupted" in ended.said, ended.said


@pytest.mark.sampled
@pytest.mark.parametrize("moment", MOMENTS)
def test_the_plan_tells_of_it(moment: str, server: Server, sick: Path) -> None:
    """`fix` without --apply tells of the run that was cut off, and leaves it as it is."""
    run = cut_off(server, sick, moment)
    frozen = crash_server.state(sick, times=True, vault=True)
    shown = server("fix", "--home", sick)
    assert run in shown.said
    assert crash_server.state(sick, times=True, vault=True) == frozen


@pytest.mark.sampled
@pytest.mark.parametrize("moment", ["staging", "committing"])
def test_undo_takes_back_no_more_than_was_cut_off(moment: str, server: Server, sick: Path) -> None:
    """An undo that ends a run which was cut off does not go on to undo the run before it."""
    assert server("fix", "ENV-BOM", "--apply", "--yes", "--home", sick).code == 0
    between = crash_server.state(sick)
    cut_off(server, sick, moment, "CFG-YAML", "KANBAN-SCHEMA")
    ended = server("undo", "--yes", "--home", sick)
    assert crash_server.state(sick) == between, ended.said


def test_edited_after_it_was_cut_off(server: Server, sick: Path) -> None:
    """What somebody edited since is left alone and named; the rest is taken back."""
    before = crash_server.state(sick)
    run = cut_off(server, sick, "committing")
    (sick / "config.yaml").write_text("edited: since\n")
    ended = server("undo", "--yes", "--home", sick)
    assert (sick / "config.yaml").read_text() == "edited: since\n"
    now = crash_server.state(sick)
    assert {n for n in now if now[n] != before.get(n)} == {"config.yaml"}
    assert_partial(ended, sick, run, "config.yaml")


@pytest.mark.sampled
@pytest.mark.parametrize("command", ["undo", "fix"])
def test_a_database_used_after_it_was_cut_off(command: str, server: Server, sick: Path) -> None:
    """A database with new pages and a new log stays; what it was before is in the backup."""
    database, log = sick / "state.db", sick / "state.db-wal"
    before = {path.name: path.read_bytes() for path in (database, log)}
    copy = crash_server.clone(sick, sick.with_name("rehearsal"))
    calls = server("fix", "--apply", "--yes", "--home", copy).calls
    shutil.rmtree(copy)
    swaps = [n for n, call in enumerate(calls) if call.name == "exchange"]
    switched = max(n for n in swaps if "state.db" in calls[n].path)
    later = next(n for n in swaps if n > switched)  # so the run has not made all its changes
    killed = server("fix", "--apply", "--yes", "--home", sick, cuts=(Cut(later, "kill"),))
    assert killed.code == -9, killed.said
    run = str(crash_server.journals(sick)[-1]["id"])
    use = (
        "import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "db.execute('PRAGMA journal_mode=WAL'); db.execute(\"INSERT INTO notes VALUES ('page')\");"
        "db.execute('PRAGMA wal_checkpoint(TRUNCATE)');"
        "db.execute(\"INSERT INTO notes VALUES ('log')\"); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", use, str(database)], check=True)
    assert log.stat().st_size

    ended = server(command, *(["--apply"] if command == "fix" else []), "--yes", "--home", sick)

    assert_partial(ended, sick, run, "state.db")
    with contextlib.closing(sqlite3.connect(database)) as db:
        rows = {text for (text,) in db.execute("SELECT content FROM notes")}
    assert rows >= {"only in the log", "page", "log"}
    saved = sick / "backups" / "doctor" / run / "files"
    assert {name: (saved / name).read_bytes() for name in before} == before


def assert_partial(ended: crash_server.Ended, home: Path, run: str, name: str) -> None:
    """The command says what is left and where the rest is, exits with 1, and leaves no files."""
    assert ended.code == 1, ended.said
    assert "only in part" in ended.said, ended.said
    assert name in ended.said and f"in backup {run}" in ended.said, ended.said
    assert (home / "backups" / "doctor" / run / "manifest.json").exists()
    assert crash_server.leftovers(home) == []


@pytest.mark.sampled
@pytest.mark.parametrize("command", ["restore", "undo", "fix"])
def test_in_part_and_then_nothing_can_be_done(command: str, server: Server, sick: Path) -> None:
    """The command cannot do what it was asked for: it exits with 1 all the same."""
    run = cut_off(server, sick, "committing")
    (sick / "config.yaml").write_text("edited: since\n")
    words = {
        "restore": ("backup", "restore", "no-such-backup"),
        "undo": ("undo", "no-such-run"),
        "fix": ("fix", "CFG-YAML", "--subject", "no-such-file", "--apply"),
    }[command]

    ended = server(*words, "--yes", "--home", sick)

    assert_partial(ended, sick, run, "config.yaml")


def test_a_failing_run_that_can_be_undone_only_in_part(server: Server, home: Path) -> None:
    """The disk fails after somebody edited the new file: that edit stays, and it exits with 1."""
    env = home / ".env"
    env.write_bytes(b"\xef\xbb\xbf" + env.read_bytes())
    words = ("fix", "ENV-BOM", "--apply", "--yes", "--home")
    calls = server(*words, crash_server.clone(home, home.with_name("rehearsal"))).calls
    swap = [c.name for c in calls if c.name in ("exchange", "open")].index("exchange")
    cuts = (
        Cut(swap + 1, f"edit:{env}", only=("exchange", "open")),
        Cut(swap + 1, "EIO", only=("exchange", "open")),
    )

    ended = server(*words, home, cuts=cuts)

    assert env.read_bytes().endswith(crash_server.EDIT)
    assert crash_server.journals(home)[-1]["state"] == "partly"
    assert ended.code == 1, ended.said


def test_a_file_that_was_never_reached(server: Server, sick: Path) -> None:
    """A file that was edited before the run came to it is not blamed on the run."""
    run = cut_off(server, sick, "staging")
    (sick / "config.yaml").write_text("edited: since\n")
    server("fix", "ENV-BOM", "--apply", "--yes", "--home", sick)
    journal = next(one for one in crash_server.journals(sick) if one["id"] == run)
    assert journal["state"] == "abandoned"


def test_a_receipt_that_is_gone(server: Server, sick: Path) -> None:
    """The receipt of an undone run may be removed; later commands work on."""
    assert server("fix", "ENV-BOM", "--apply", "--yes", "--home", sick).code == 0
    assert server("undo", "--yes", "--home", sick).code == 0
    (first, _) = crash_server.journals(sick)
    shutil.rmtree(sick / "backups" / "doctor" / "runs" / first["id"])
    done = server("fix", "--apply", "--yes", "--home", sick)
    assert done.code == 0, done.said


def test_a_receipt_that_is_damaged(server: Server, sick: Path) -> None:
    """A receipt that cannot be read is one line where it is needed and no obstacle elsewhere."""
    assert server("fix", "ENV-BOM", "--apply", "--yes", "--home", sick).code == 0
    (first,) = crash_server.journals(sick)
    receipt = sick / "backups" / "doctor" / "runs" / first["id"] / "run.json"
    receipt.write_bytes(receipt.read_bytes()[:100])
    wanted = server("undo", first["id"], "--yes", "--home", sick)
    assert wanted.code == 2 and "damaged" in wanted.said and "Traceback" not in wanted.said
    assert server("fix", "--apply", "--yes", "--home", sick).code == 0


@pytest.mark.sampled
@pytest.mark.parametrize("moment", ["committing", "verifying"])
def test_a_backup_that_is_gone(moment: str, server: Server, sick: Path) -> None:
    """A cut-off run whose backup is gone: the kept files still take it back, or one line tells."""
    before = crash_server.state(sick)
    run = cut_off(server, sick, moment, "CFG-YAML")
    shutil.rmtree(sick / "backups" / "doctor" / run)
    ended = server("fix", "--apply", "--yes", "--home", sick)
    assert "Traceback" not in ended.said and "bug" not in ended.said, ended.said
    assert run in ended.said, ended.said
    assert ended.code == 0 or crash_server.state(sick, leftovers=False).keys() == before.keys()


def test_a_home_that_was_moved(server: Server, sick: Path, tmp_path: Path) -> None:
    """After the home has moved to another place, undo works from the vault inside it."""
    before = crash_server.state(sick)
    assert server("fix", "--apply", "--yes", "--home", sick).code == 0
    moved = sick.rename(tmp_path / "moved")
    undone = server("undo", "--yes", "--home", moved)
    assert undone.code == 0, undone.said
    assert crash_server.state(moved) == before


def test_a_home_that_was_copied(server: Server, sick: Path, tmp_path: Path) -> None:
    """A command on a copy of a home never touches the vault of the original."""
    cut_off(server, sick, "backing-up")
    copied = crash_server.clone(sick, tmp_path / "copied")
    frozen = crash_server.state(sick, times=True, vault=True)
    server("fix", "--apply", "--yes", "--home", copied)
    assert crash_server.state(sick, times=True, vault=True) == frozen


def test_a_restore_into_a_folder_that_is_gone(server: Server, home: Path) -> None:
    """A backup brings back files whose folder was removed as well."""
    support.put(home / "cron" / "jobs" / "jobs.json", "[]\n")
    support.put(home / "memories" / "MEMORY.md", "remember\n")
    before = crash_server.state(home)
    made = server("backup", "create", "--json", "--home", home).json["id"]
    shutil.rmtree(home / "cron")
    shutil.rmtree(home / "memories")
    done = server("backup", "restore", made, "--yes", "--home", home)
    assert done.code == 0, done.said
    files = {
        name: facts for name, facts in crash_server.state(home).items() if facts[3] is not None
    }
    assert files == {name: facts for name, facts in before.items() if facts[3] is not None}


def test_what_was_cut_off_is_in_the_document(server: Server, sick: Path) -> None:
    """`--json` carries the sentences as well, for fix and for undo."""
    run = cut_off(server, sick, "committing")
    copy = json.loads(server("fix", "--json", "--home", sick).out)
    assert run in " ".join(copy["repair"]["recovered"])
    done = server("fix", "--apply", "--yes", "--json", "--home", sick)
    assert run in " ".join(done.json["repair"]["recovered"])


@pytest.mark.skipif(os.geteuid() != 0, reason="a home of another user needs root")
def test_root_hands_over_what_it_left(server: Server, sick: Path, tmp_path: Path) -> None:
    """What root had made and not yet given away when it was killed is given away later."""
    crash_server.chown(sick)
    template = crash_server.clone(sick, tmp_path / "template")
    calls = server("fix", "--apply", "--yes", "--home", sick).calls
    for n in [n for n, call in enumerate(calls) if call.name == "chown"]:
        shutil.rmtree(sick)
        crash_server.clone(template, sick)
        server("fix", "--apply", "--yes", "--home", sick, cuts=(Cut(n, "kill"),))
        assert server("fix", "--apply", "--yes", "--home", sick).code == 0
        assert crash_server.strangers(sick) == [], f"killed before {calls[n]}"


def test_leftover_that_is_a_symlink(home: Path, tmp_path: Path) -> None:
    """What looks like half a backup and leads elsewhere is unlinked, never followed."""
    treasure = support.put(tmp_path / "elsewhere" / "treasure", "gold")
    (home / "backups" / "doctor").mkdir(parents=True)
    link = home / "backups" / "doctor" / "20261115-044916-51325.partial"
    link.symlink_to(treasure.parent)

    assert support.doctor("backup", "create", "--home", home).code == 0
    assert treasure.read_text() == "gold"
    assert not link.is_symlink()


def test_rows_written_since_are_not_undone(home: Path) -> None:
    """Rows that lie only in the log of a killed writer are a change like any other."""
    (home / "kanban.db").unlink()
    support.board(home / "kanban.db", without=(("tasks", "session_id"),))
    with contextlib.closing(sqlite3.connect(home / "kanban.db")) as db:
        db.execute("PRAGMA journal_mode=WAL")
    assert support.doctor("fix", "--apply", "--yes", "--home", home).code == 0
    script = (
        "import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1]);"
        "db.execute(\"UPDATE tasks SET title = 'new'\"); db.commit(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(home / "kanban.db")], check=True)
    assert (home / "kanban.db-wal").stat().st_size

    refused = support.doctor("undo", "--yes", "--home", home)
    assert refused.code == 2
    assert "kanban.db changed since" in refused.err
    with contextlib.closing(sqlite3.connect(home / "kanban.db")) as db:
        assert db.execute("SELECT title FROM tasks").fetchall() == [("new",)]
