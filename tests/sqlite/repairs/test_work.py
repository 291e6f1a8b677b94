"""The rungs of repair one by one, and the ladder that climbs them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hermes_doctor.core.file_copies import DatabaseCopy
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.knowledge import atlas
from hermes_doctor.repair.planning import database_repair
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.examine.soundness import require_sound
from hermes_doctor.sqlite.repairs import in_place, rebuild_search, rescue, work
from hermes_doctor.sqlite.schema import SHADOWS
from tests.helpers import damage, fix_cycle, support
from tests.helpers.fix_cycle import SECRET


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A history at rest."""
    (tmp_path / "work").mkdir()
    return fix_cycle.history(tmp_path / "work" / "state.db", 200)


def plan(version: str = "0.19.0") -> Blueprint:
    """What that release makes a history of."""
    found = atlas.blueprint("state.db", version)
    assert found
    return found


# -- the ladder ------------------------------------------------------------------------------------


def _fails(copy: Path) -> Sequence[str]:
    copy.write_bytes(b"spoilt by this rung")
    raise CannotFix("it cannot")


def _spoils(copy: Path) -> None:
    damage.zero(copy, 2, 3, 4)


def _sound(copy: Path) -> Sequence[str]:
    damage.execute(copy, "INSERT INTO sessions (id, source, started_at) VALUES ('new', 'cli', 1)")
    return ["Done."]


def test_a_rung_that_fails_leaves_the_next_an_untouched_copy(copy: Path) -> None:
    """Neither what refuses nor what makes it worse is seen by the one after it."""
    before = copy.read_bytes()
    seen = []

    def looks(attempt: Path) -> Sequence[str]:
        seen.append(attempt.read_bytes())
        return _sound(attempt)

    said = work.try_methods(copy, [("one", _fails), ("two", _spoils), ("three", looks)])

    assert seen == [before]
    assert said[0] == "Not enough: one: it cannot."
    assert said[1].startswith("Not enough: two: SQLite cannot open the repaired copy ")
    assert said[2:] == ["Done."]
    assert os.listdir(copy.parent) == ["state.db"]
    require_sound(copy)


def test_no_rung_leads_up(copy: Path) -> None:
    """Then the copy is as it was, nothing lies about, and each is named with its reason."""
    before = copy.read_bytes()

    with pytest.raises(CannotFix, match=r"^No repair worked \(one: it cannot; two: it cannot\)$"):
        work.try_methods(copy, [("one", _fails), ("two", _fails)])

    assert copy.read_bytes() == before
    assert os.listdir(copy.parent) == ["state.db"]


def test_the_log_comes_along(copy: Path) -> None:
    """A rung sees what SQLite would see, and what it makes has no old log beside it."""
    damage.with_log(copy, rows=5, index=False)
    late = "SELECT count(*) FROM messages WHERE timestamp >= 10000"

    def counts(attempt: Path) -> Sequence[str]:
        with work.open_copy(attempt) as db:
            return [str(db.execute(late).fetchone()[0])]

    assert work.try_methods(copy, [("one", counts)]) == ["5"]
    assert os.listdir(copy.parent) == ["state.db"]
    assert fix_cycle.rows(copy, late) == [(5,)]


def test_a_crash_of_a_rung_leaves_nothing(copy: Path) -> None:
    """Also what nobody expected does not leave its attempt behind."""

    def crashes(attempt: Path) -> Sequence[str]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work.try_methods(copy, [("one", crashes)])

    assert os.listdir(copy.parent) == ["state.db"]


def test_killed_in_the_middle(home: Path) -> None:
    """After SIGKILL the next run removes what lay about, and the damage is as it was."""
    path = fix_cycle.history(home / "state.db")
    damage.rows_zeroed(path)
    sick = support.contents(home)
    script = (
        "import os, signal\n"
        "from hermes_doctor.sqlite.salvage import run\n"
        "whole = run.salvage\n"
        "def dies(*args, **more):\n"
        "    whole(*args, **more)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "run.salvage = dies\n"
        "from hermes_doctor.cli.main import main\n"
        "main()\n"
    )
    call = [sys.executable, "-c", script, "fix", "DB-MALFORMED", "--apply", "--yes"]
    done = subprocess.run([*call, "--home", str(home)], timeout=60, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done
    assert support.contents(home) != sick  # something lies about

    support.doctor("fix", "CFG-YAML", "--apply", "--home", home)

    assert support.contents(home).keys() == sick.keys()
    assert support.contents(home) == sick


# -- header ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [*range(0, 24), *range(28, 40), *range(44, 60), *range(92, 96)])
def test_every_byte_of_the_header(copy: Path, at: int) -> None:
    """Whatever one byte of a field became, the rows are the same afterwards."""
    kept = fix_cycle.messages(copy)
    old = copy.read_bytes()[at]
    damage.write(copy, bytes([old ^ 0x5A]), at)

    assert in_place.rewrite_header(copy) == ["The header was written again."]

    require_sound(copy)
    assert fix_cycle.messages(copy) == kept


@pytest.mark.sampled
@pytest.mark.parametrize("page_size", [512, 1024, 8192, 32768, 65536])
def test_page_sizes(tmp_path: Path, page_size: int) -> None:
    """The page size is found again by trying."""
    path = tmp_path / "a.db"
    with damage.opened(path) as db:
        db.execute(f"PRAGMA page_size={page_size}")
        db.execute("CREATE TABLE t (text)")
        db.executemany("INSERT INTO t VALUES (?)", [("word " * 50,)] * 2000)
    damage.write(path, bytes(100), 0)

    in_place.rewrite_header(path)

    assert fix_cycle.rows(path, "SELECT count(*) FROM t") == [(2000,)]
    assert fix_cycle.rows(path, "PRAGMA page_size") == [(page_size,)]


def test_a_lost_first_page(copy: Path) -> None:
    """That is no matter of the header."""
    damage.zero(copy, 1)

    with pytest.raises(CannotFix, match="first page is lost"):
        in_place.rewrite_header(copy)


def test_header_of_what_is_more_damaged(copy: Path) -> None:
    """A header alone does not make a damaged tree sound."""
    damage.rows_zeroed(copy)

    with pytest.raises(CannotFix, match="SQLite cannot open it with any header"):
        in_place.rewrite_header(copy)


# -- indexes ---------------------------------------------------------------------------------------


def test_reindex(copy: Path) -> None:
    """An index that lacks rows has them again."""
    damage.index_lacks_rows(copy)

    [said] = in_place.reindex(copy)

    assert said.endswith("indexes were rebuilt from the rows.")
    require_sound(copy)


def test_remake(copy: Path) -> None:
    """Indexes that are too damaged to be made anew are declared again."""
    declared = "SELECT name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name"
    before = fix_cycle.rows(copy, declared)
    hit = ("idx_messages_session", "idx_sessions_source")
    damage.zero(copy, *[damage.leaves(copy, name)[0] for name in hit])

    in_place.remake(copy)

    require_sound(copy)
    assert fix_cycle.rows(copy, declared) == before


@pytest.mark.parametrize("repair", [in_place.reindex, in_place.remake])
def test_indexes_of_damaged_rows(copy: Path, repair: Callable[[Path], Sequence[str]]) -> None:
    """No index is made of rows that cannot be read."""
    damage.rows_zeroed(copy)

    with pytest.raises(CannotFix):
        repair(copy)


# -- full text -------------------------------------------------------------------------------------


def _all_of_it(path: Path) -> None:
    """Every page of the search is zeroed."""
    tables = [f"messages_fts_{part}" for part in SHADOWS]
    damage.zero(path, *[page for table in tables for page in damage.owned(path, table)])


FAULTS = (*damage.SEARCH, damage.schema_doubled, _all_of_it)


@pytest.mark.parametrize("version", ["0.13.0", "0.16.0", "0.19.0"])
@pytest.mark.parametrize("fault", FAULTS, ids=damage.called)
def test_full_text(tmp_path: Path, version: str, fault: damage.Fault) -> None:
    """Whatever is wrong with it, it is made anew from the rows, in every release's shape."""
    path = fix_cycle.history(tmp_path / "state.db", 200, version)
    count = len(fix_cycle.messages(path))
    fault(path)

    said = rebuild_search.rebuild_tables(path, plan(version))

    require_sound(path)
    assert f"messages_fts was rebuilt from {count} rows." in said
    assert fix_cycle.found_by_search(path, "message") == count
    with work.open_copy(path) as db:
        for table in plan(version).virtual:
            db.execute(f"INSERT INTO {table}({table}) VALUES ('integrity-check')")
            settings = db.execute(f"SELECT k FROM {table}_config").fetchall()
            assert settings == [("version",)], "as Hermes makes it"


@pytest.mark.parametrize("version", ["0.13.0", "0.19.0"])
def test_lost_triggers_and_tables(tmp_path: Path, version: str) -> None:
    """A whole search table and the triggers of the other come back; what they missed is found."""
    path = fix_cycle.history(tmp_path / "state.db", 100, version)
    damage.execute(
        path,
        "DROP TRIGGER messages_fts_insert",
        "DROP TABLE messages_fts_trigram",
        *(f"DROP TRIGGER messages_fts_trigram_{way}" for way in ("insert", "delete", "update")),
        "INSERT INTO messages (session_id, role, content, timestamp) "
        "VALUES ('s1', 'user', 'never heard of', 1)",
    )

    said = rebuild_search.rebuild_tables(path, plan(version))

    assert "The trigger messages_fts_insert was rebuilt." in said
    assert fix_cycle.found_by_search(path, "heard") == 1
    names = {name for (name,) in fix_cycle.rows(path, "SELECT name FROM sqlite_master")}
    assert set(plan(version).triggers) <= names
    assert "messages_fts_trigram_data" in names


def test_a_search_of_somebody_elses(tmp_path: Path) -> None:
    """What nobody knows how to fill is left alone."""
    path = support.database(tmp_path / "a.db", "CREATE VIRTUAL TABLE mine USING fts5(text)")

    with pytest.raises(CannotFix, match="is unknown"):
        rebuild_search.rebuild_tables(path, None)


# -- rows ------------------------------------------------------------------------------------------


def test_a_version_in_a_text(tmp_path: Path) -> None:
    """A column without a type keeps a number as the text that it was written as."""
    path = support.database(
        tmp_path / "a.db",
        "CREATE TABLE schema_version (version)",
        "INSERT INTO schema_version VALUES (' 22 '), ('1e3'), ('999999999')",
    )

    assert in_place.correct_rows(path, "version") == ["The schema's version is a number again."]
    assert fix_cycle.rows(path, "SELECT version, typeof(version) FROM schema_version") == [
        (22, "integer")
    ]


@pytest.mark.parametrize("fault", in_place.FAULTS)
def test_sound_rows_stay(copy: Path, fault: str) -> None:
    """Where nothing is wrong nothing is said and no row changes."""
    kept = list(_everything(copy))

    assert in_place.correct_rows(copy, fault) == []
    assert list(_everything(copy)) == kept


def _everything(path: Path) -> list[object]:
    return [fix_cycle.rows(path, f"SELECT * FROM {t}") for t in ("messages", "sessions")]


def test_a_failure_changes_nothing(copy: Path) -> None:
    """All rows or none: a refusal in the middle leaves the copy as it was."""
    damage.execute(copy, "DROP TABLE schema_version")

    with pytest.raises(CannotFix, match=r"^SQLite refuses it \(SQLITE_ERROR\)$"):
        in_place.correct_rows(copy, "version")


def test_responses(tmp_path: Path) -> None:
    """Also a text that no UTF-8 reader takes, and nothing that is good."""
    path = tmp_path / "response_store.db"
    support.made("response_store.db", path).close()
    damage.execute(
        path,
        "INSERT INTO responses VALUES ('good', '{}', 1), ('cut', '{\"a', 1), "
        "('odd', CAST(x'ff7b7d' AS TEXT), 1), ('number', 7.5, 1), ('blob', x'7b7d', 1)",
        "INSERT INTO conversations VALUES ('a', 'good'), ('b', 'cut'), ('c', 'nothing')",
    )

    in_place.delete_bad_responses(path)

    kept = {one for (one,) in fix_cycle.rows(path, "SELECT response_id FROM responses")}
    assert kept == {"good", "number"}
    assert fix_cycle.rows(path, "SELECT name FROM conversations") == [("a",)]


def test_words_of_sqlite_are_not_passed_on(copy: Path) -> None:
    """Its errors quote what is in the file."""
    with pytest.raises(CannotFix) as caught, work.open_copy(copy) as db:
        db.execute(f"SELECT [{SECRET}]")

    assert SECRET not in str(caught.value)


# -- rescue, copies, planning ----------------------------------------------------------------------


def test_rescue_leaves_nothing_about(copy: Path) -> None:
    """Neither when it saves nor when there is nothing to save."""
    home = Home(copy.parent)
    damage.rows_zeroed(copy)

    assert rescue.save_rows(copy, plan(), home, [])
    assert os.listdir(copy.parent) == ["state.db"]
    require_sound(copy)

    spoilt = os.urandom(copy.stat().st_size)
    copy.write_bytes(spoilt)
    with pytest.raises(CannotFix):
        rescue.save_rows(copy, plan(), home, [])
    assert os.listdir(copy.parent) == ["state.db"]
    assert copy.read_bytes() == spoilt


def test_copies(copy: Path, tmp_path: Path) -> None:
    """The first that is sound, its log with it; with none the reason is told."""
    bad, good = tmp_path / "bad" / "state.db", tmp_path / "good" / "state.db"
    for one in (bad, good):
        one.parent.mkdir()
        damage.history(one, 100)
    damage.rows_zeroed(bad)
    damage.with_log(good, rows=3, index=False)
    found = [DatabaseCopy(one, one.stat().st_size, 1_800_000_000 * 10**9) for one in (bad, good)]
    before = fix_cycle.parts(good)

    [said] = rescue.restore_from_copy(copy, found)

    assert said.startswith("It is good/state.db of 2027-01-15")
    late = "SELECT count(*) FROM messages WHERE timestamp >= 10000"
    assert fix_cycle.rows(copy, late) == [(3,)]
    assert fix_cycle.parts(good) == before
    with pytest.raises(CannotFix, match="every older copy is damaged, too"):
        rescue.restore_from_copy(copy, found[:1])


def test_what_nobody_knows(home: Path) -> None:
    """A database of a name that the atlas does not have has no plan."""
    probes = Probes(Home(home))
    with contextlib.closing(probes), pytest.raises(CannotFix, match="is unknown"):
        database_repair.blueprint_of(probes, home / "retaindb_queue.db")


def test_plan_of_an_older_file(home: Path) -> None:
    """Without a Hermes to ask, what is there decides."""
    fix_cycle.history(home / "state.db", 60, "0.13.0")
    probes = Probes(Home(home))
    with contextlib.closing(probes):
        found = database_repair.blueprint_of(probes, home / "state.db")

    assert (found.database, found.version) == ("state.db", 11)
