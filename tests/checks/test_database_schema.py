"""KANBAN-SCHEMA, DB-SCHEMA, DB-NEWER: what is missing, by release and by who would heal it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CheckResult, CouldNotLook, Finding, Gateway, Severity, Status
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.hermes.knowledge import atlas, parse_release
from hermes_doctor.sqlite import completion
from tests.helpers import damage, support
from tests.helpers.given_answers import GivenAnswers

NEWEST = support.RELEASE
PLAN = support.plan("kanban.db")
RELEASES = tuple(
    one for one in atlas.releases("kanban.db") if parse_release(one) <= parse_release(NEWEST)
)
COLUMNS = [
    (table.name, column.name, column) for table in PLAN.tables.values() for column in table.columns
]


class World(GivenAnswers):
    """Probes with a Hermes and a gateway as the test wants them."""

    version: str | None = None
    running = False

    def hermes_installation(self) -> Installation | None:
        """The release that the test names."""
        return Installation(self.version, Path("/x"), False) if self.version else None

    def gateway_running(self) -> list[Gateway]:
        """One, or none."""
        return [Gateway(4711, datetime.now(UTC))] if self.running else []


def look(
    home: Path, version: str | None = None, *, running: bool = False
) -> tuple[CheckResult, list[Finding]]:
    """What this one check says about a home under this Hermes."""
    world = World(Home(home))
    world.version, world.running = version, running
    checks = [check for check in load.load().checks if check.id == "database-schema"]
    [result], findings = examine(world, checks)
    return result, findings


def board(home: Path, *missing: tuple[str, str]) -> Path:
    """A fresh kanban database that lacks these columns."""
    path = home / "kanban.db"
    path.unlink(missing_ok=True)
    return support.board(path, missing)


def test_healthy(home: Path) -> None:
    """A database with every part is fine under every release and without one."""
    for version in (None, *RELEASES):
        result, findings = look(home, version)

        assert (result.status, findings) == (Status.OK, [])


def test_session_id(home: Path) -> None:
    """The owner's case: tasks.session_id is missing and nobody knows which Hermes runs."""
    board(home, ("tasks", "session_id"))

    result, [finding] = look(home)

    assert result.status is Status.PROBLEM
    assert (finding.code, finding.severity) == ("KANBAN-SCHEMA", Severity.ERROR)
    assert (finding.subject, finding.fix) == ("kanban.db", "complete-schema")
    assert finding.evidence[0].what == "missing column: tasks.session_id"
    assert finding.title == "kanban.db lacks the column tasks.session_id"


HEALED = next((t, c) for t, c, f in COLUMNS if f.if_missing == "healed")
UNHEALED = next((t, c) for t, c, f in COLUMNS if f.if_missing == "crash" and not f.key)
KEY = next((t, c) for t, c, f in COLUMNS if f.key)


def test_healed_at_the_next_start(home: Path) -> None:
    """A column that the installed release adds itself is a warning while no gateway runs."""
    board(home, HEALED)

    result, [finding] = look(home, NEWEST)

    assert result.status is Status.PROBLEM
    assert (finding.severity, finding.fix) == (Severity.WARNING, "complete-schema")
    assert "next start" in finding.detail


def test_healed_but_running(home: Path) -> None:
    """The same column is an error under a running gateway, which looks only at its start."""
    board(home, HEALED)

    _, [finding] = look(home, NEWEST, running=True)

    assert finding.severity is Severity.ERROR
    assert "no such column" in finding.detail


def test_never_healed(home: Path) -> None:
    """A column that no release adds is an error, running or not."""
    board(home, UNHEALED)

    for running in (False, True):
        _, [finding] = look(home, NEWEST, running=running)

        assert finding.severity is Severity.ERROR
        assert "does not add it" in finding.detail
        assert finding.fix == "complete-schema"


def test_one_healed_one_not(home: Path) -> None:
    """One column that nobody heals makes the whole finding an error; both are named."""
    board(home, HEALED, UNHEALED)

    _, [finding] = look(home, NEWEST)

    assert finding.severity is Severity.ERROR
    assert finding.title == "kanban.db lacks 2 columns"
    for table, column in (HEALED, UNHEALED):
        assert f"{table}.{column}" in finding.evidence[0].what


def test_key_column(home: Path) -> None:
    """A key column cannot be added afterwards: reported, not offered."""
    board(home, KEY)

    _, findings = look(home, NEWEST)

    assert [finding.fix for finding in findings] == [None]


def board_of(home: Path, version: str, *extra: str) -> Path:
    """A kanban database as that release makes it, with columns of later ones if asked."""
    path = home / "kanban.db"
    path.unlink()
    support.board(path, version=version)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        for column in extra:
            db.execute(f"ALTER TABLE tasks ADD COLUMN {column} TEXT")
    return path


@pytest.mark.parametrize("version", RELEASES)
def test_columns_of_later_releases(home: Path, version: str) -> None:
    """An older Hermes does not miss what only a newer one has, and no Hermes at all neither."""
    board_of(home, version)

    for installed in (version, None):
        result, findings = look(home, installed)

        assert (result.status, findings) == (Status.OK, [])


def test_level_without_an_installation(home: Path) -> None:
    """Without Hermes at hand the newest column there tells which release worked on it last."""
    board_of(home, "0.13.0", "branch_name")

    _, [finding] = look(home)

    assert finding.data["plan"].release == "0.15.0"
    assert finding.evidence[0].what == "missing columns: tasks.model_override, tasks.session_id"
    assert look(home, "0.13.0")[1] == []


def test_upgraded_hermes_on_an_old_database(home: Path) -> None:
    """Under a newer Hermes an old database lacks columns; the release heals some by itself."""
    board_of(home, "0.13.0")

    _, [finding] = look(home, NEWEST)

    assert "tasks.session_id" in finding.evidence[1].what
    assert finding.evidence[0].what == "missing table: task_attachments"
    assert finding.severity is Severity.WARNING
    assert finding.detail == "Hermes adds what is missing at its next start, as after each update."


def test_newer_hermes_than_known(home: Path) -> None:
    """What a release newer than the knowledge declares is not known, so it is not judged."""
    board(home, HEALED)

    result, findings = look(home, "99.0.0")

    assert findings == []
    reason = "not judged: Hermes 99.0.0 is newer than hermes-doctor knows"
    assert (result.status, result.reason) == (Status.SKIPPED, reason)


def test_boards(home: Path) -> None:
    """Boards beside the default one are looked at too."""
    support.board(home / "kanban" / "boards" / "team" / "kanban.db", (("tasks", "session_id"),))

    _, [finding] = look(home)

    assert finding.subject == "kanban/boards/team/kanban.db"


def test_other_faults_are_left_to_other_checks(home: Path) -> None:
    """An empty file or one without its magic is not this check's to tell of."""
    for data in (b"", b"\0" * 4096):
        support.put(home / "kanban.db", data)

        result, findings = look(home)

        assert (result.status, findings) == (Status.OK, [])


def test_a_database_of_something_else(home: Path) -> None:
    """A database without Hermes' tables lacks no column."""
    (home / "kanban.db").unlink()
    support.database(home / "kanban.db", "CREATE TABLE notes (a)")

    result, findings = look(home)

    assert (result.status, findings) == (Status.OK, [])


def test_column_in_the_log(home: Path) -> None:
    """A column that only the write-ahead log holds is there."""
    path = board(home, ("tasks", "session_id"))
    writer = sqlite3.connect(path)
    try:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("PRAGMA wal_autocheckpoint=0")
        assert [f.code for f in look(home)[1]] == ["KANBAN-SCHEMA"]
        writer.execute("ALTER TABLE tasks ADD COLUMN session_id TEXT")
        writer.execute(PLAN.indexes["idx_tasks_session_id"])
        writer.commit()

        assert look(home)[1] == []
    finally:
        writer.close()


def test_damaged_schema(home: Path) -> None:
    """A schema that cannot be read is unknown, not fine; another board is still judged."""
    support.clobber(home / "kanban.db", b"\xff" * 3000, 104)
    support.board(home / "kanban" / "boards" / "team" / "kanban.db", (("tasks", "session_id"),))

    result, [finding] = look(home)

    assert finding.subject == "kanban/boards/team/kanban.db"
    assert "kanban.db" in (result.reason or "")
    (home / "kanban/boards/team/kanban.db").unlink()
    result, findings = look(home)
    assert (result.status, findings) == (Status.UNKNOWN, [])


def test_no_database(home: Path) -> None:
    """Without a database the question does not apply."""
    (home / "kanban.db").unlink()
    (home / "state.db").unlink()

    assert look(home)[0].status is Status.SKIPPED


def test_unreadable(home: Path) -> None:
    """A FIFO in its place is unknown, and does not hang."""
    (home / "kanban.db").unlink()
    os.mkfifo(home / "kanban.db")

    result, findings = look(home)

    assert (result.status, findings) == (Status.UNKNOWN, [])


def test_unknown_gateways(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When processes cannot be looked at, the missing column is at least not reported as fine."""
    board(home, HEALED)

    def refuse(_: World) -> list[Gateway]:
        raise CouldNotLook("no /proc here")

    monkeypatch.setattr(World, "gateway_running", refuse)

    result, findings = look(home, NEWEST)

    assert result.status is Status.UNKNOWN or findings


# -- the other databases -------------------------------------------------------------------


def history(home: Path, version: str, *statements: str) -> None:
    """A state.db of that release after some statements."""
    (home / "state.db").unlink(missing_ok=True)
    support.history(home / "state.db", version)
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db, db:
        for statement in statements:
            db.execute(statement)


@pytest.mark.parametrize("version", atlas.releases("state.db"))
def test_lost_trigger(home: Path, version: str) -> None:
    """An error under the releases that never add it again; else a note while no gateway runs."""
    history(home, version, "DROP TRIGGER messages_fts_update")
    (home / "kanban.db").unlink()

    _, [finding] = look(home, version)

    assert (finding.code, finding.subject) == ("DB-SCHEMA", "state.db")
    assert finding.title == "state.db lacks the trigger messages_fts_update"
    if version < "0.16":
        assert (finding.severity, finding.fix) == (Severity.ERROR, "complete-schema")
        assert "Searching does not find new messages" in finding.detail
    else:
        assert (finding.severity, finding.fix) == (Severity.INFO, "complete-schema")
        _, [finding] = look(home, version, running=True)
        assert finding.severity is Severity.ERROR
        assert "Searching does not find new messages" in finding.detail


def test_lost_view(home: Path) -> None:
    """The search index of later releases reads its text from a view; an earlier index does not."""
    (home / "kanban.db").unlink()
    for version, told in (
        ("0.20.5", ["state.db lacks the view messages_fts_trigram_src"]),
        ("0.19.0", []),
    ):
        history(home, version, "DROP VIEW IF EXISTS messages_fts_trigram_src")

        titles = [one.title for one in look(home, version)[1]]

        assert titles == told


def test_an_earlier_search_index(home: Path) -> None:
    """0.19.1 and later keep it, with its triggers, when they upgrade a file."""
    (home / "kanban.db").unlink()
    plan = support.plan("state.db", "0.20.5")
    older = support.plan("state.db", "0.19.0")
    fitted = plan.fitted(older.virtual)
    (home / "state.db").unlink()
    completion.create(home / "state.db", fitted).close()

    assert fitted.views == {}
    assert fitted.virtual == older.virtual
    assert look(home, "0.20.5")[1] == []


def test_lost_full_text_table(home: Path) -> None:
    """Hermes creates it again with its triggers, which are not reported beside it."""
    triggers = [f"DROP TRIGGER messages_fts_{word}" for word in ("insert", "update", "delete")]
    history(home, "0.13.0", *triggers, "DROP TABLE messages_fts")

    _, [finding] = look(home, "0.13.0")

    assert finding.title == "state.db lacks the search index messages_fts"
    assert (finding.severity, finding.fix) == (Severity.INFO, "complete-schema")
    assert look(home, "0.13.0", running=True)[1][0].severity is Severity.ERROR


@pytest.mark.parametrize("running", [False, True])
def test_lost_index(home: Path, running: bool) -> None:
    """Hermes creates it again, and nothing fails without it: a note, but the fix can add it."""
    history(home, "0.19.0", "DROP INDEX idx_messages_session", "DROP INDEX idx_sessions_source")

    _, [finding] = look(home, "0.19.0", running=running)

    assert (finding.severity, finding.fix) == (Severity.INFO, "complete-schema")
    assert finding.evidence[0].what == "missing indexes: idx_messages_session, idx_sessions_source"


@pytest.mark.parametrize("running", [False, True])
def test_lost_table(home: Path, running: bool) -> None:
    """Hermes creates it again at a start, but not while the gateway is running."""
    history(home, "0.19.0", "DROP TABLE gateway_routing")

    _, [finding] = look(home, "0.19.0", running=running)

    assert finding.severity is (Severity.ERROR if running else Severity.WARNING)
    assert finding.evidence[0].what == "missing table: gateway_routing"


def test_several_kinds(home: Path) -> None:
    """One finding a database, with a line of evidence for each kind of part."""
    history(
        home,
        "0.19.0",
        "DROP TABLE gateway_routing",
        "DROP INDEX idx_sessions_source",
        "ALTER TABLE sessions DROP COLUMN cost_status",
    )

    _, [finding] = look(home, "0.19.0")

    assert finding.title == "state.db lacks 1 table, 1 column and 1 index"
    assert [one.what.partition(":")[0] for one in finding.evidence] == [
        "missing table",
        "missing column",
        "missing index",
    ]


def test_lazy_tables(home: Path) -> None:
    """What is made only when first needed is not missing, but where it is it must be whole."""
    history(home, "0.19.0")
    assert look(home, "0.19.0")[1] == []
    history(home, "0.19.0", "CREATE TABLE delivery_obligations (obligation_id TEXT PRIMARY KEY)")

    _, [finding] = look(home, "0.19.0")

    assert finding.severity is Severity.ERROR
    assert "delivery_obligations.content" in finding.evidence[0].what


def test_names_in_another_case(home: Path) -> None:
    """To SQLite a column is the same however it is written."""
    history(home, "0.19.0", "ALTER TABLE sessions RENAME COLUMN title TO Title")

    assert look(home, "0.19.0")[1] == []


def test_a_database_that_this_release_does_not_have(home: Path) -> None:
    """After a downgrade a database of the newer release is nobody's to judge."""
    support.database(home / "projects.db", "CREATE TABLE projects (id TEXT)")

    assert look(home, "0.13.0")[1] == []
    assert [one.subject for one in look(home, "0.19.0")[1]] == ["projects.db"]


def test_newer_than_the_atlas(home: Path) -> None:
    """Told of once, and whatever it lacks is not judged."""
    history(home, "0.19.0", "UPDATE schema_version SET version = 99", "DROP TABLE sessions")

    result, [finding] = look(home, "0.19.0")

    assert result.status is Status.PROBLEM
    assert (finding.code, finding.severity, finding.fix) == ("DB-NEWER", Severity.WARNING, None)
    assert "newer Hermes than 0.19.0" in finding.title
    assert "99" in finding.evidence[0].what


@pytest.mark.parametrize("mark", ["application_id = 7", "user_version = 7"])
def test_newer_by_another_mark(home: Path, mark: str) -> None:
    """Where a database keeps no version, a mark that no known release sets tells."""
    (home / "kanban.db").unlink()
    support.made("kanban.db", home / "kanban.db", "0.19.0").close()
    damage.execute(home / "kanban.db", f"PRAGMA {mark}", "DROP TABLE tasks")

    _, [finding] = look(home, "0.19.0")

    assert (finding.code, finding.subject) == ("DB-NEWER", "kanban.db")
    assert "7" in finding.evidence[0].what


def test_a_flipped_bit_is_no_newer_hermes(home: Path) -> None:
    """Where a database keeps its own version, that counts, and no release counts to millions."""
    history(home, "0.19.0", "PRAGMA user_version = 7")
    (home / "kanban.db").unlink()
    support.made("kanban.db", home / "kanban.db", "0.19.0").close()
    damage.execute(home / "kanban.db", f"PRAGMA user_version = {1 << 29}")

    assert look(home, "0.19.0")[1] == []


@pytest.mark.parametrize("running", [False, True])
def test_a_column_that_hermes_adds_when_it_needs_it(home: Path, running: bool) -> None:
    """A healthy file of 0.20 lacks it until a task is delegated, so it is not missing."""
    history(home, "0.20.5", "ALTER TABLE async_delegations DROP COLUMN origin_session_id")
    (home / "kanban.db").unlink()

    for installed in ("0.20.5", None):
        assert look(home, installed, running=running)[1] == []


def test_added_later_by_every_release_of_this_version(home: Path) -> None:
    """Without an installation, the schema version says which releases may run here."""
    history(home, "0.20.5", "ALTER TABLE sessions DROP COLUMN cost_status")

    result, [finding] = look(home)

    assert result.status is Status.PROBLEM
    assert (finding.severity, finding.fix) == (Severity.WARNING, "complete-schema")
