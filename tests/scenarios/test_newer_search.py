"""The search index of releases newer than this tool knows, on homes that the real code made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import damage, fix_cycle, recorded_homes, support
from tests.helpers.recorded_homes import Source

SOUND = {"done": True, "file": "ok", "left": []}
TRIGRAM = "messages_fts_trigram"
INDEXES = ("messages_fts", TRIGRAM)
DECLARED = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
RANKS = {"critical": 0, "error": 1, "warning": 2, "info": 3}


@pytest.fixture(
    params=[
        *(pytest.param(one, marks=pytest.mark.wide) for one in recorded_homes.VERSIONS[:-1]),
        recorded_homes.VERSIONS[-1],
    ]
)
def version(request: pytest.FixtureRequest) -> str:
    """A release that this tool does not know."""
    return str(request.param)


@pytest.fixture(params=recorded_homes.ORIGINS)
def source(request: pytest.FixtureRequest, version: str, tmp_path: Path) -> Source:
    """Its homes: those in the repository, and those that its code makes now."""
    return Source(version, str(request.param), tmp_path)


def alarms(done: support.Done) -> list[str]:
    """The findings at warning or above; that no gateway runs is true of every home here."""
    return [
        f"{one['code']}: {one['title']} {one['evidence']}"
        for one in done.json["findings"]
        if RANKS[one["severity"]] < RANKS["info"] and one["code"] != "GW-DOWN"
    ]


@pytest.mark.sampled
def test_a_healthy_home_raises_no_alarm(source: Source) -> None:
    """Tool results are left out of one index by design."""
    home = source.home("plain")

    for how in ((), ("--deep",)):
        assert alarms(support.check(home, *how)) == []


@pytest.mark.sampled
def test_an_interrupted_rebuild_is_left_to_hermes(source: Source) -> None:
    """It is reported as a state of its own, and `fix` changes nothing."""
    home = source.home("interrupted")
    before = support.contents(home)

    for how in ((), ("--deep",)):
        checked = support.check(home, *how)

        [alarm] = alarms(checked)
        assert alarm.startswith("DB-FTS-UNFINISHED")
        found = support.finding(checked, "DB-FTS-UNFINISHED")
        assert (found["severity"], found["fix"]) == ("warning", None)
        assert "20 of 60" in found["evidence"][0]["what"]
    done = support.doctor("fix", "--apply", "--yes", "--json", "--home", home)
    assert "DB-FTS-CORRUPT" not in done.codes
    assert support.contents(home) == before


def rows_gone(path: Path) -> None:
    """The index does not know two messages that it should."""
    damage.execute(path, "DELETE FROM messages_fts_docsize WHERE id IN (7, 9)")


FAULTS = (damage.search_structure, damage.search_zeroed, damage.search_table_gone, rows_gone)


@pytest.mark.sampled
@pytest.mark.parametrize("variant", ["plain", "interrupted"])
@pytest.mark.parametrize("fault", FAULTS, ids=damage.called)
def test_damage_is_repaired(source: Source, variant: str, fault: damage.Fault) -> None:
    """The repair changes no declaration, and ends a rebuild that was interrupted."""
    if source.version != recorded_homes.VERSIONS[-1] and fault is not FAULTS[0]:
        pytest.skip("one fault is enough for each older release")
    home = source.home(variant)
    path = home / "state.db"
    kept, declared = fix_cycle.messages(path), fix_cycle.rows(path, DECLARED)
    fault(path)

    cured = fix_cycle.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")

    assert (fix_cycle.messages(path), fix_cycle.rows(path, DECLARED)) == (kept, declared)
    assert fix_cycle.rows(path, "SELECT * FROM state_meta WHERE key LIKE 'fts_rebuild%'") == []
    assert fix_cycle.found_by_search(path, "message") == len(kept)
    assert alarms(support.check(home, "--deep")) == []
    if source.origin == "real":
        after = support.copy_home(home, home.with_name("after"))
        for part in ("resume", "write"):
            said = source.run(after, part)
            assert said == SOUND | {"messages_fts": 60, "messages_fts_trigram": said[TRIGRAM]}
        assert said[TRIGRAM] == 41, "40 messages that are not of tools, and the one written now"
    cured.undo()


SALVAGED = (damage.rows_zeroed, damage.cut_off)


@pytest.mark.sampled
@pytest.mark.parametrize("variant", ["plain", "interrupted"])
@pytest.mark.parametrize("fault", SALVAGED, ids=damage.called)
def test_salvaged_rows_open(source: Source, variant: str, fault: damage.Fault) -> None:
    """The new database has the structure of the release, and its code goes on with it."""
    if source.version != recorded_homes.VERSIONS[-1] and fault is not SALVAGED[0]:
        pytest.skip("one fault is enough for each older release")
    home = source.home(variant)
    path = home / "state.db"
    declared = {row[:2] for row in fix_cycle.rows(path, DECLARED)}
    fault(path)

    done = support.doctor("fix", "--apply", "--yes", "--json", "--home", home)

    assert done.json["summary"]["counts"]["critical"] == 0, done
    assert {row[:2] for row in fix_cycle.rows(path, DECLARED)} == declared
    assert fix_cycle.rows(path, "SELECT * FROM state_meta WHERE key LIKE 'fts_rebuild%'") == []
    assert alarms(support.check(home, "--deep")) == []
    if source.origin == "real":
        said = source.run(home, "write")
        assert (said["done"], said["file"], said["left"]) == (True, "ok", [])


def test_hermes_finishes_alone(source: Source) -> None:
    """The control: without any repair Hermes resumes, and both indexes are sound."""
    if source.origin == "recorded":
        pytest.skip("only real code can resume")
    home = source.home("interrupted")

    said = source.run(home, "resume")

    assert said == SOUND | {"messages_fts": 60, TRIGRAM: 40}
    assert alarms(support.check(home, "--deep")) == []


@pytest.mark.sampled
def test_an_index_that_an_older_repair_filled(source: Source) -> None:
    """Earlier versions of this tool filled the index and kept both numbers of Hermes."""
    home = source.home("interrupted")
    path = home / "state.db"
    damage.execute(
        path, *(f"INSERT INTO {index} ({index}) VALUES ('rebuild')" for index in INDEXES)
    )

    cured = fix_cycle.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")

    assert "The rebuild that Hermes had not finished is complete." in cured.notes
    if source.origin == "real":
        said = source.run(support.copy_home(home, home.with_name("after")), "resume")
        assert said == SOUND | {"messages_fts": 60, TRIGRAM: 40}
    cured.undo()
