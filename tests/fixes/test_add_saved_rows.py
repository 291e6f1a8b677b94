"""add-saved-rows: messages that only the backup of a deleted log has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helpers import budget, crash_server, damage, fix_cycle, support
from tests.helpers.fix_contract import Planted
from tests.helpers.saved_log_home import lose, message, session
from tests.repair.planning.test_deleted_logs import holding, run
from tests.scenarios.test_crash import killed, rehearse

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs /proc")
ALL = "SELECT * FROM messages ORDER BY id"
SAVED = "SELECT content FROM messages WHERE content LIKE 'saved %' ORDER BY id"
ROWS = [message(n, "s1") for n in range(12)]


@pytest.fixture
def path(home: Path) -> Path:
    """A sound history."""
    return fix_cycle.history(home / "state.db")


def cure(home: Path, backup: str) -> fix_cycle.Cured:
    """Cured, twice is once, and nothing is left lying about."""
    cured = fix_cycle.cure(home, "DB-SAVED-ROWS", "add-saved-rows", f"{backup}/state.db")
    assert crash_server.leftovers(home) == []
    return cured


def saved(*numbers: int) -> list[tuple[str]]:
    """The contents of such messages."""
    return [(f"saved {n}",) for n in numbers]


def test_they_are_added(home: Path, path: Path) -> None:
    """Every message comes with its number and its session, and no other row changes."""
    long = message(77, "new").replace("'saved 77'", f"'saved 77 {'long ' * 5000}'")
    backup = lose(path, *ROWS, session("new"), message(70, "new"), long)
    before = fix_cycle.rows(path, ALL)
    count = "SELECT message_count FROM sessions WHERE id = 's1'"
    [(old,)] = fix_cycle.rows(path, count)

    cured = cure(home, backup)

    after = fix_cycle.rows(path, ALL)
    assert after[: len(before)] == before
    assert [row[0] for row in after[len(before) :]] == list(
        range(after[len(before)][0], after[len(before)][0] + 14)
    )
    assert fix_cycle.rows(path, SAVED)[:13] == saved(*range(12), 70)
    assert fix_cycle.rows(path, "SELECT max(length(content)) FROM messages")[0][0] >= 25_000
    assert fix_cycle.rows(path, "SELECT message_count FROM sessions WHERE id = 'new'") == [(3,)]
    assert fix_cycle.rows(path, count) == [(old + 12,)]
    assert fix_cycle.rows(path, "PRAGMA foreign_key_check") == []
    assert damage.sound(path)
    assert fix_cycle.found_by_search(path, "saved") == 14
    assert "14 messages and 1 session of the backup were added" in " ".join(cured.notes)
    cured.undo()
    assert "DB-SAVED-ROWS" in support.check(home).codes, "what is undone is missing again"


def test_numbers_that_are_in_use(home: Path, path: Path) -> None:
    """Messages whose numbers others took get new ones, in the same order."""
    backup = lose(path, *ROWS)
    damage.execute(path, *[message(100 + n, "s2") for n in range(5)])
    mine = fix_cycle.rows(path, ALL)

    cured = cure(home, backup)

    assert fix_cycle.rows(path, ALL)[: len(mine)] == mine
    assert fix_cycle.rows(path, SAVED) == saved(*range(100, 105), *range(12))
    assert "12 messages got new numbers" in " ".join(cured.notes)
    cured.undo()


def test_a_conversation_that_went_on(home: Path, path: Path) -> None:
    """Its messages stay in the backup, which is said; those of other sessions are added."""
    backup = lose(path, *ROWS, message(50, "s2"))
    damage.execute(path, message(900, "s1"))

    done = fix_cycle.apply(home, "DB-SAVED-ROWS")

    [run] = done.json["repair"]["runs"]
    assert [item["outcome"] for item in run["items"]] == ["verified"]
    assert "12 messages cannot be added" in " ".join(run["items"][0]["notes"])
    assert fix_cycle.rows(path, SAVED) == saved(900, 50)
    [left] = [one for one in done.json["findings"] if one["code"] == "DB-SAVED-ROWS"]
    assert left["subject"] == f"{backup}/state.db (cannot be added)"


def test_titles_stay_unique(home: Path, path: Path) -> None:
    """A session whose title another one has comes without it; a parent that is gone is left out."""
    backup = lose(
        path,
        session("new", "the same"),
        "UPDATE sessions SET parent_session_id = 's5' WHERE id = 'new'",
        message(1, "new"),
    )
    damage.execute(
        path,
        "UPDATE sessions SET title = 'the same' WHERE id = 's1'",
        "DELETE FROM messages WHERE session_id = 's5'",
        "DELETE FROM sessions WHERE id = 's5'",
    )

    cured = cure(home, backup)

    new = "SELECT title, parent_session_id FROM sessions WHERE id = 'new'"
    assert fix_cycle.rows(path, new) == [(None, None)]
    assert fix_cycle.rows(path, "SELECT id FROM sessions WHERE title = 'the same'") == [("s1",)]
    assert "got no title" in " ".join(cured.notes)


def test_deleted_after_they_were_added(home: Path, path: Path) -> None:
    """The receipt knows that they were added, so a later deletion is not reported."""
    backup = lose(path, session("new"), message(1, "new"))
    cure(home, backup)
    damage.execute(path, "DELETE FROM messages WHERE session_id = 'new'")
    assert "DB-SAVED-ROWS" not in support.check(home).codes


def test_only_when_it_is_named(home: Path, path: Path) -> None:
    """The operator may have deleted them on purpose, so they are added only on request."""
    lose(path, *ROWS)
    before = path.read_bytes()
    done = support.doctor("fix", "--apply", "--yes", "--json", "--home", str(home))
    assert done.json["repair"]["runs"] == []
    assert path.read_bytes() == before


def test_a_damaged_backup(home: Path, path: Path) -> None:
    """A copy that is not what was saved is not used."""
    backup = lose(path, *ROWS)
    log = home / "backups" / "doctor" / backup / "files" / "state.db-wal"
    with log.open("r+b") as file:
        file.write(log.read_bytes() + b"\0")
    assert f"Backup {backup} is damaged" in fix_cycle.refused(home, "DB-SAVED-ROWS")


def test_a_column_that_the_database_lacks(home: Path, path: Path) -> None:
    """A value that would be lost is a reason to refuse."""
    lose(path, "ALTER TABLE messages ADD COLUMN later TEXT", *ROWS)
    assert "an unknown column: later" in fix_cycle.refused(home, "DB-SAVED-ROWS")


def test_another_process_has_it_open(home: Path, path: Path) -> None:
    """Nothing is done while another process writes."""
    lose(path, *ROWS)
    with damage.opened(path) as db:
        db.execute("BEGIN IMMEDIATE")
        assert fix_cycle.apply(home, "DB-SAVED-ROWS").code != 0
    assert fix_cycle.rows(path, SAVED) == []


def test_after_a_restart_of_the_gateway(home: Path, path: Path) -> None:
    """A run that compared the file itself settles its backup."""
    with holding(path, "killed") as service:
        done = run(home, service)
    assert (done.state, done.settled) == ("done", done.saved)
    damage.execute(path, "DELETE FROM messages WHERE content LIKE 'late%'")
    assert "DB-SAVED-ROWS" not in support.check(home).codes


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_works_for_the_owner(home: Path, path: Path) -> None:
    """The home belongs to another user, and so does what root leaves in it."""
    crash_server.chown(home)
    backup = lose(path, *ROWS)

    cure(home, backup)

    assert fix_cycle.rows(path, SAVED) == saved(*range(12))
    assert path.stat().st_uid == crash_server.STRANGER


def test_a_newer_hermes(home: Path, path: Path) -> None:
    """On a database of an unknown release the rows are reported and nothing is changed."""
    damage.execute(path, "UPDATE schema_version SET version = 9999")
    lose(path, *ROWS)
    assert "newer" in fix_cycle.refused(home, "DB-SAVED-ROWS")


def test_killed_at_some_moments(tmp_path: Path) -> None:
    """The history has all of the saved messages or none, and the next command finishes the run."""
    sick, home = tmp_path / "sick", tmp_path / "home"
    sick.mkdir()
    lose(fix_cycle.history(sick / "state.db"), *ROWS)
    server = crash_server.serving(alone=True)
    scene = rehearse(server, sick, home, "fix", "DB-SAVED-ROWS", "--apply", "--yes")
    kills = [one for one in scene.cuts if one.how == "kill"][::5]
    for cut in budget.sample(kills, 5):
        killed(scene, cut)
        with damage.opened(home / "state.db") as db:
            assert len(db.execute(SAVED).fetchall()) in (0, 12)
    ended = scene.again()
    assert ended.code == 0, ended.said
    assert crash_server.leftovers(home) == []


PLANTED = Planted("DB-SAVED-ROWS", lambda home: lose(fix_cycle.history(home / "state.db"), *ROWS))
