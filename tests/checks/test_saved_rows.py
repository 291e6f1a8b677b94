"""Rows that a fix saved from a deleted log and that are not in the database are reported."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Finding, Severity
from tests.cli.test_commands import imported, not_loaded
from tests.helpers import damage, fix_cycle, saved_log_home, support
from tests.helpers.one_check import ask
from tests.helpers.saved_log_home import lose, message, session

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs /proc")
ROWS = [message(n, "s1") for n in range(12)]


@pytest.fixture
def path(home: Path) -> Path:
    """A sound history."""
    return fix_cycle.history(home / "state.db")


def found(home: Path) -> list[Finding]:
    """What the check reports."""
    return ask("saved-rows", home)[1]


def test_rows_that_are_not_in_the_database(home: Path, path: Path) -> None:
    """Number, backup and both ways out are named, and looking changes nothing."""
    backup = lose(path, *ROWS)
    before = support.tree(home, vault=True)

    [finding] = found(home)

    assert support.tree(home, vault=True) == before
    assert (finding.code, finding.severity) == ("DB-SAVED-ROWS", Severity.WARNING)
    assert finding.title == "state.db lacks 12 messages saved in a backup"
    assert (finding.subject, finding.fix) == (f"{backup}/state.db", "add-saved-rows")
    assert f"hermes-doctor backup prune {backup}" in finding.next
    assert finding.evidence[0].where == f"backup {backup}"
    assert support.check(home, "--only", "saved-rows").code == 0, "a warning"


def test_a_healthy_home(home: Path, path: Path) -> None:
    """Without such a receipt nothing is compared."""
    result, findings = ask("saved-rows", home)
    assert (result.status, findings) == ("skipped", [])


def test_a_home_with_other_receipts(home: Path, path: Path) -> None:
    """Receipts that name no saved log load nothing to compare with."""
    support.put(home / ".env", b"\xef\xbb\xbfA=1\n")
    assert fix_cycle.apply(home, "ENV-BOM").code == 0
    quiet = "import hermes_doctor.hermes.processes.gateway_processes as p; assert p.all_pids; "
    quiet += "p.all_pids = lambda: []"
    loaded = imported("check", "--home", str(home), patch=quiet)
    assert "hermes_doctor.backup.records.receipts" in loaded
    not_loaded(
        loaded, "hermes_doctor.diagnosis.probes.missing_rows", "hermes_doctor.backup.vault.vault"
    )


def test_the_process_still_runs(home: Path, path: Path) -> None:
    """As long as a process holds the deleted log, only that is reported."""
    with saved_log_home.holding(path, *ROWS):
        saved_log_home.save(home)
        assert found(home) == []


def test_rows_that_the_process_wrote_into_the_file(home: Path, path: Path) -> None:
    """The same rows are there, also under other numbers."""
    lose(path, *ROWS)
    damage.execute(path, message(99, "s2"), *ROWS)
    assert found(home) == []


def test_numbers_that_others_use(home: Path, path: Path) -> None:
    """A new message with the number of a saved one does not hide that the saved one is missing."""
    lose(path, *ROWS)
    damage.execute(path, *[message(100 + n, "s2") for n in range(30)])
    [finding] = found(home)
    assert finding.title == "state.db lacks 12 messages saved in a backup"


def test_two_backups_of_one_log(home: Path, path: Path) -> None:
    """Rows that two backups have are reported once, with the newer backup."""
    with saved_log_home.holding(path, *ROWS):
        saved_log_home.save(home)
        newer = saved_log_home.save(home)
    assert [one.subject for one in found(home)] == [f"{newer}/state.db"]


def test_a_session_that_somebody_deleted(home: Path, path: Path) -> None:
    """The saved file has the session without its log, so it was not lost together with the log."""
    lose(path, *ROWS, message(50, "s2"))
    damage.execute(
        path, "DELETE FROM messages WHERE session_id = 's1'", "DELETE FROM sessions WHERE id = 's1'"
    )
    [finding] = found(home)
    assert finding.title == "state.db lacks 1 message saved in a backup"


def test_a_session_that_hermes_would_prune(home: Path, path: Path) -> None:
    """A session that exists only in the log and is older than the retention is not missed."""
    lose(path, session("only"), message(1, "only"))
    assert len(found(home)) == 1
    support.put(home / "config.yaml", "sessions: {auto_prune: true, retention_days: 30}\n")
    assert found(home) == []


def test_a_conversation_that_went_on(home: Path, path: Path) -> None:
    """Such messages cannot be added in order; the finding says so and names the command."""
    backup = lose(path, *ROWS, message(50, "s2"))
    damage.execute(path, message(900, "s1"))

    first, second = found(home)

    assert ("1 message " in first.title, first.fix) == (True, "add-saved-rows")
    assert ("12 messages " in second.title, second.fix) == (True, None)
    assert f"hermes-doctor backup restore {backup} state.db" in second.next


def test_restored_and_undone(home: Path, path: Path) -> None:
    """After a restore even later deletions are the operator's; an undone restore does not count."""
    backup = lose(path, *ROWS)
    words = ("--yes", "--home", str(home))
    assert support.doctor("backup", "restore", backup, "state.db", *words).code == 0
    assert found(home) == []
    kept = path.read_bytes()
    damage.execute(path, "DELETE FROM messages WHERE content LIKE 'saved%'")
    assert found(home) == []
    path.write_bytes(kept)
    assert support.doctor("undo", *words, "--force").code == 0
    assert len(found(home)) == 1


def test_a_backup_that_somebody_removed(home: Path, path: Path) -> None:
    """Then the operator does not want the rows."""
    backup = lose(path, *ROWS)
    words = ("--yes", "--home", str(home))
    assert support.doctor("backup", "prune", backup, *words).code == 0
    assert found(home) == []


def test_a_vault_elsewhere(home: Path, path: Path, tmp_path: Path) -> None:
    """It is read where the run left it; if it is missing, the check says what it did not see."""
    vault = tmp_path / "vault"
    backup = lose(path, *ROWS, vault=vault)
    [finding] = found(home)
    assert f"--vault {vault}" in finding.next
    shutil.rmtree(vault)

    result, findings = ask("saved-rows", home)

    assert (result.status, findings) == ("unknown", [])
    assert f"could not compare backup {backup}: the vault {vault} is missing" in str(result.reason)


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["manifest.json", "files/state.db"])
def test_a_damaged_backup(home: Path, path: Path, name: str) -> None:
    """What cannot be read is named."""
    backup = lose(path, *ROWS)
    file = Vault(Home(home)).root / backup / name
    file.write_bytes(b"\0" * 4096)
    result, findings = ask("saved-rows", home)
    assert (result.status, findings) == ("unknown", [])
    assert f"could not compare backup {backup}" in str(result.reason)


def test_the_history_cannot_be_read(home: Path, path: Path) -> None:
    """Nothing is claimed of a history that is gone."""
    lose(path, *ROWS)
    path.unlink()
    result, findings = ask("saved-rows", home)
    assert (result.status, findings) == ("unknown", [])
    assert "state.db is missing" in str(result.reason)


def test_a_board(home: Path) -> None:
    """Tasks are compared by their ids; none is added, because Hermes might run it again."""
    path = support.board(home / "kanban.db")
    insert = "INSERT INTO tasks (id, title, status, created_at) VALUES ('t-new', 'x', 'todo', 1)"
    lose(path, insert)
    [finding] = found(home)
    assert finding.title == "kanban.db lacks 1 task saved in a backup"
    assert finding.fix is None
    damage.execute(path, insert)
    assert found(home) == []
