"""`backup prune` never removes silently what is still needed: receipts, and the last rows."""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hermes_doctor.backup.vault import manifest, row_comparison
from hermes_doctor.backup.vault.backup_rows import LastRows
from hermes_doctor.backup.vault.manifest import BackupSource
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.core.terminal import progress
from tests.conftest import need_release
from tests.helpers import damage, fix_cycle, support
from tools import releases


def create(home: Path, days: float, *args: str) -> str:
    """A backup of the whole home that was made so many days ago."""
    done = support.doctor("backup", "create", "--json", "--home", home, *args)
    assert done.code in (0, 1), done.err
    return age(home, done.json["id"], days)


def age(home: Path, id: str, days: float) -> str:
    """Make a backup, and the receipt of its run if there is one, so many days old; its new id."""
    then = datetime.now(UTC) - timedelta(days=days)
    new = f"{then:%Y%m%d-%H%M%S}-{then.microsecond // 1000:03d}aa"
    vault = Vault(Home(home))
    folder = (vault.root / id).rename(vault.root / new)
    backup = manifest.parse(folder, (folder / "manifest.json").read_bytes())
    sealed = manifest.seal(backup._replace(id=new, created_at=then))
    (folder / "manifest.json").write_bytes(sealed)
    receipt = vault.root / "runs" / id / "run.json"
    if receipt.exists():
        document = json.loads(receipt.read_text())
        times = {"started_at": then.isoformat(), "ended_at": then.isoformat()}
        receipt.write_text(json.dumps(document | {"id": new} | times))
        receipt.parent.rename(vault.root / "runs" / new)
    return new


def prune(home: Path, *args: str) -> dict[str, Any]:
    """`backup prune --yes --json`."""
    done = support.doctor("backup", "prune", "--yes", "--json", "--home", home, *args)
    assert done.code == 0, done.err
    found: dict[str, Any] = done.json
    return found


def reasons(found: dict[str, Any]) -> dict[str, str]:
    """Why backups were kept, by id."""
    return {one["id"]: one["why"] for one in found["protected"]}


def write(home: Path, *statements: str, name: str = "state.db") -> None:
    """Change rows of a database."""
    with contextlib.closing(sqlite3.connect(home / name)) as db, db:
        for statement in statements:
            db.execute(statement)


def repaired(home: Path, days: float) -> tuple[str, bytes]:
    """Repair a damaged state.db so many days ago; the run, and the damaged file."""
    support.clobber(home / "state.db")
    damaged = (home / "state.db").read_bytes()
    done = support.doctor("fix", "--apply", "--yes", "--home", home)
    [run] = [path.name for path in (home / "backups" / "doctor" / "runs").iterdir()]
    assert (home / "state.db").read_bytes() != damaged, done.out
    return age(home, run, days), damaged


# -- what receipts need ------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("rule", [("--keep", "1"), ("--keep", "1", "--older-than", "1d")])
def test_the_damaged_original_of_a_repair_stays_for_undo(home: Path, rule: tuple[str, ...]) -> None:
    """A rule keeps what the undo of a young run needs, says so, and the undo still works."""
    run, damaged = repaired(home, 20)
    newer = [create(home, days) for days in (15, 10, 5)]

    found = prune(home, *rule)

    assert found["removed"] == newer[:2]
    assert "undo of run" in reasons(found)[run]
    assert support.doctor("undo", run, "--yes", "--home", home).code == 0
    assert (home / "state.db").read_bytes() == damaged


def test_a_log_that_a_run_saved_stays(home: Path) -> None:
    """A backup that a run made before it stopped the gateway is kept like the run's own."""
    saved = create(home, 25)
    run, _ = repaired(home, 20)
    receipt = home / "backups" / "doctor" / "runs" / run / "run.json"
    receipt.write_text(json.dumps(json.loads(receipt.read_text()) | {"saved": [saved]}))
    create(home, 5)

    found = prune(home, "--keep", "1")

    assert reasons(found)[saved] == f"needed for the write-ahead log that run {run} saved"


def test_what_is_kept_is_said_in_text(home: Path) -> None:
    """The operator reads which backup stays, for what, and how to remove it all the same."""
    run, _ = repaired(home, 20)
    create(home, 5)

    said = support.doctor("backup", "prune", "--keep", "1", "--yes", "--home", home).out

    assert f"keep backup {run}: needed for the undo of run {run} (fix)" in " ".join(said.split())
    assert "hermes-doctor backup prune ID" in said


def test_the_backup_of_an_undone_run_may_go(home: Path) -> None:
    """After the undo only the undo's own backup is needed."""
    support.put(home / ".env", b"\xef\xbb\xbfA=1\n")
    assert support.doctor("fix", "--apply", "--yes", "--home", home).code == 0
    [fixed] = [path.name for path in (home / "backups" / "doctor" / "runs").iterdir()]
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    [undone] = {path.name for path in (home / "backups" / "doctor" / "runs").iterdir()} - {fixed}
    create(home, 0)

    found = prune(home, "--keep", "1")

    assert found["removed"] == [fixed]
    assert list(reasons(found)) == [undone]


def test_after_thirty_days_a_receipt_keeps_nothing(home: Path) -> None:
    """The backup of an old run goes by the rule."""
    support.put(home / ".env", b"\xef\xbb\xbfA=1\n")
    assert support.doctor("fix", "--apply", "--yes", "--home", home).code == 0
    [run] = [path.name for path in (home / "backups" / "doctor" / "runs").iterdir()]
    old = age(home, run, 31)
    create(home, 5)

    assert prune(home, "--keep", "1")["removed"] == [old]


def test_a_damaged_receipt_keeps_its_backup(home: Path) -> None:
    """What cannot be read may be needed."""
    support.put(home / ".env", b"\xef\xbb\xbfA=1\n")
    assert support.doctor("fix", "--apply", "--yes", "--home", home).code == 0
    [run] = [path.name for path in (home / "backups" / "doctor" / "runs").iterdir()]
    support.put(home / "backups" / "doctor" / "runs" / run / "run.json", "{")
    create(home, 0)

    found = prune(home, "--keep", "1")

    assert found["removed"] == []
    assert "receipt is damaged" in reasons(found)[run]


def test_rollback_of_an_update_keeps_its_backup(home: Path) -> None:
    """The scheduled retention keeps the backup from before a young update, too."""
    before = create(home, 20)
    then = datetime.now(UTC) - timedelta(days=20)
    record = {
        "schema": "hermes-doctor/update/1",
        "id": before,
        "backup": before,
        "vault": "",
        "before": None,
        "after": None,
        "started_at": then.isoformat(),
        "stage": "checked",
    }
    support.put(home / "backups" / "doctor" / "updates" / f"{before}.json", json.dumps(record))
    create(home, 19)

    made = support.doctor("backup", "create", "--daily", "1", "--json", "--home", home).json

    assert before not in made["removed"]
    assert "rollback of update" in reasons(made)[before]


def test_a_named_backup_goes_and_the_loss_is_said(home: Path) -> None:
    """By its name a needed backup can be removed; first it is said what becomes impossible."""
    run, _ = repaired(home, 20)
    create(home, 5)

    asked = support.doctor("backup", "prune", run, "--home", home)
    assert asked.code == 2
    assert f"needed for the undo of run {run}" in " ".join(asked.out.split())
    assert run in Vault(Home(home)).ids()
    found = prune(home, run)

    assert found["removed"] == [run]
    assert any(f"undo of run {run}" in text for text in found["lost"])
    assert run not in Vault(Home(home)).ids()


def test_names_and_rules_do_not_mix(home: Path) -> None:
    """A name with a rule, or an unknown name, is refused and nothing is removed."""
    first, _ = create(home, 2), create(home, 1)

    for words in ([first, "--keep", "1"], [first, "--daily", "1"], [first, "nothing"]):
        done = support.doctor("backup", "prune", "--yes", "--home", home, *words)
        assert done.code == 2, words
    assert len(Vault(Home(home)).ids()) == 2


def test_the_only_backup_by_its_name(home: Path) -> None:
    """It is said that none is left."""
    only = create(home, 2)

    assert "No backup of this home would be left." in prune(home, only)["lost"]


def test_an_interrupted_run_keeps_its_backup_even_if_named(home: Path) -> None:
    """Without it the home would stay half changed."""
    run, _ = repaired(home, 1)
    receipt = home / "backups" / "doctor" / "runs" / run / "run.json"
    receipt.write_text(json.dumps(json.loads(receipt.read_text()) | {"state": "committing"}))

    done = support.doctor("backup", "prune", run, "--yes", "--home", home)

    assert done.code == 2
    assert "interrupted" in done.err
    assert run in Vault(Home(home)).ids()


# -- the last rows -----------------------------------------------------------------------------


def test_the_last_backup_with_lost_messages_stays(home: Path) -> None:
    """A session that vanished from state.db is kept in the newest backup that has it."""
    old = [create(home, days) for days in (9, 8)]
    write(home, "DELETE FROM messages WHERE id > 40")
    newer = [create(home, days) for days in (3, 2, 1)]

    found = prune(home, "--keep", "1")

    assert found["removed"] == [old[0], *newer[:2]]
    assert reasons(found) == {old[1]: "no other backup has 10 messages that state.db no longer has"}


def test_a_database_that_began_again(home: Path) -> None:
    """New messages with the numbers of lost ones do not hide the loss."""
    old = create(home, 9)
    write(
        home,
        "UPDATE sessions SET id = 's2'",
        "UPDATE messages SET session_id = 's2'",
    )
    create(home, 1)

    assert "50 messages" in reasons(prune(home, "--keep", "1"))[old]


def test_the_scheduled_retention_keeps_lost_rows_too(home: Path) -> None:
    """`backup create --daily N` prunes by the same promise, and says so."""
    old = create(home, 9)
    write(home, "DELETE FROM messages")
    create(home, 3)

    done = support.doctor("backup", "create", "--daily", "2", "--home", home)

    assert old in Vault(Home(home)).ids()
    assert f"keep backup {old}: no other backup has 50 messages" in " ".join(done.out.split())


def test_lost_tasks_count(home: Path) -> None:
    """The kanban is compared as well."""
    old = create(home, 9)
    write(home, "DELETE FROM tasks", name="kanban.db")
    create(home, 1)

    assert "1 task that kanban.db" in reasons(prune(home, "--keep", "1"))[old]


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_without_a_live_database_the_last_rows_stay(home: Path, how: str) -> None:
    """What cannot be compared is kept, once."""
    write(home, "INSERT INTO sessions (id, source, started_at) VALUES ('s9', 'cli', 1)")
    first = create(home, 9)
    write(home, "DELETE FROM messages WHERE id > 40")
    second = create(home, 8)
    third = create(home, 7)
    if how == "missing":
        (home / "state.db").unlink()
    else:
        (home / "state.db").write_bytes(b"\0" * 8192)
    create(home, 1)

    found = prune(home, "--keep", "1")

    why = "state.db is missing now" if how == "missing" else "state.db could not be read"
    assert found["removed"] == [second]
    assert third in found["kept"]
    assert reasons(found)[first] == f"{why}, and no other backup has these 10 messages"


def test_a_copy_that_cannot_be_read_stays(home: Path) -> None:
    """A damaged original of long ago may hold rows that nothing else has."""
    run, _ = repaired(home, 90)
    create(home, 1)

    found = prune(home, "--keep", "1")

    assert found["removed"] == []
    assert "could not be compared" in reasons(found)[run]


def test_a_backup_with_a_write_ahead_log(home: Path) -> None:
    """Rows that are only in the saved log count, and reading them leaves no file in the vault."""
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA wal_autocheckpoint=0")
        with db:
            support.say(db, "only in the log")
        log = (home / "state.db-wal").read_bytes()
        main = (home / "state.db").read_bytes()
    (home / "state.db-wal").write_bytes(log)
    (home / "state.db").write_bytes(main)
    old = create(home, 9)
    files = sorted(path.name for path in (home / "backups" / "doctor" / old / "files").iterdir())
    for suffix in ("-wal", "-shm"):
        (home / f"state.db{suffix}").unlink(missing_ok=True)
    create(home, 1)

    found = prune(home, "--keep", "1")

    assert "1 message that state.db" in reasons(found)[old]
    folder = home / "backups" / "doctor" / old / "files"
    assert sorted(path.name for path in folder.iterdir()) == files


def test_sessions_that_hermes_deletes_by_itself_keep_nothing(home: Path) -> None:
    """With sessions.auto_prune old sessions are expected to vanish."""
    old = create(home, 9)
    write(home, "DELETE FROM messages", "DELETE FROM sessions")
    with (home / "config.yaml").open("a") as file:
        file.write("\nsessions:\n  auto_prune: true\n  retention_days: 90\n")
    create(home, 1)

    assert prune(home, "--keep", "1")["removed"] == [old]


@pytest.mark.wide
def test_a_copy_in_blocks_is_compared(home: Path) -> None:
    """A large database that is kept as a base and changes is put together for the comparison."""
    write(
        home,
        "INSERT INTO messages (session_id, role, content, timestamp) "
        "VALUES ('s1', 'user', hex(randomblob(9000000)), 1)",
    )
    create(home, 12)
    write(home, "UPDATE messages SET content = 'new' WHERE id = 1")
    old = create(home, 9)
    blocks = Vault(Home(home)).load(old).entry("state.db")
    assert blocks is not None
    assert blocks.blocks
    write(home, "DELETE FROM messages WHERE id < 10")
    create(home, 1, "--full")

    found = prune(home, "--keep", "1")

    assert "9 messages" in reasons(found)[old]
    assert not list((home / "backups" / "doctor").glob("*.partial"))


# -- rows are compared by what they hold -------------------------------------------------------

ADD = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s1', 'user', '{}', {})"


def additions(text: str, number: int, since: float) -> list[str]:
    """Statements that add messages to the session of the home."""
    return [ADD.format(f"{text} {n}", since + n) for n in range(number)]


def test_newer_messages_do_not_hide_lost_ones(home: Path) -> None:
    """A session that lost 50 messages and got 60 others still lacks the 50."""
    write(home, *additions("precious", 50, 1e9))
    old = create(home, 9)
    write(home, "DELETE FROM messages WHERE content LIKE 'precious%'")
    write(home, *additions("chat", 60, 1.7e9))
    newer = [create(home, days) for days in (3, 2, 1)]

    found = prune(home, "--keep", "1")

    assert found["removed"] == newer[:2]
    assert reasons(found) == {old: "no other backup has 50 messages that state.db no longer has"}


def test_the_same_text_at_another_time_is_another_message(home: Path) -> None:
    """Messages that repeat a lost one do not replace it."""
    write(home, *[ADD.format("yes", 1e9 + n) for n in range(5)])
    old = create(home, 9)
    write(home, "DELETE FROM messages WHERE content = 'yes'")
    write(home, *[ADD.format("yes", 1.7e9 + n) for n in range(7)])
    create(home, 1)

    assert "5 messages" in reasons(prune(home, "--keep", "1"))[old]


def test_equal_messages_are_counted(home: Path) -> None:
    """Of three equal messages one is left: two are missing."""
    write(home, *[ADD.format("yes", 1e9)] * 3)
    old = create(home, 9)
    write(home, "DELETE FROM messages WHERE id IN (51, 52)")
    create(home, 1)

    assert "2 messages" in reasons(prune(home, "--keep", "1"))[old]


def test_a_grown_session_keeps_no_backup(home: Path) -> None:
    """A session that only got more messages lacks nothing."""
    old = []
    for days in (9, 8, 7):
        old.append(create(home, days))
        write(home, *additions(f"day {days}", 4, 1.7e9))
    create(home, 1)

    assert prune(home, "--keep", "1")["removed"] == old


def test_new_numbers_keep_no_backup(home: Path) -> None:
    """Messages that Hermes numbered again are the same messages."""
    old = create(home, 9)
    write(home, "UPDATE messages SET id = id + 1000")
    create(home, 1)

    assert prune(home, "--keep", "1")["removed"] == [old]


def test_a_changed_text_is_a_lost_row(home: Path) -> None:
    """The text that a message had before is only in the backup."""
    old = create(home, 9)
    write(home, "UPDATE messages SET content = 'changed' WHERE id = 7")
    create(home, 1)

    assert "1 message that state.db" in reasons(prune(home, "--keep", "1"))[old]


def test_a_task_that_moved_on_keeps_no_backup(home: Path) -> None:
    """Tasks are compared by id: a new status is not a loss."""
    old = create(home, 9)
    write(home, "UPDATE tasks SET status = 'done'", name="kanban.db")
    create(home, 1)

    assert prune(home, "--keep", "1")["removed"] == [old]


def test_rows_of_several_backups_together(home: Path) -> None:
    """A backup goes when the live database and other backups have its rows between them."""
    write(home, *additions("first", 5, 1e9))
    first = create(home, 9)
    write(home, "DELETE FROM messages WHERE id < 10", *additions("second", 5, 1.1e9))
    second = create(home, 8)
    write(home, "DELETE FROM messages WHERE content LIKE 'first%'")
    create(home, 1)

    found = prune(home, "--keep", "1")

    assert found["removed"] == []
    assert "5 messages" in reasons(found)[second]
    assert "9 messages" in reasons(found)[first]


def test_many_lost_rows_are_counted_in_parts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than are held in memory at once are counted exactly, too."""
    monkeypatch.setattr(row_comparison, "AT_ONCE", 7)
    monkeypatch.setattr(row_comparison, "REMEMBERED", 20)
    write(home, *additions("precious", 50, 1e9))
    old = create(home, 9)
    write(home, "DELETE FROM messages WHERE content LIKE 'precious%'", *additions("chat", 60, 2e9))
    store = Vault(Home(home))

    why = LastRows(store, ()).reason_to_keep(store.load(old))

    assert why == "no other backup has 50 messages that state.db no longer has"


REWRITES = """
import sys
from pathlib import Path
from hermes_state import SessionDB
path, how = Path(sys.argv[1]), sys.argv[2]
db = SessionDB(path)
if how == "begin":
    db.create_session("s7", "cli")
    for n in range(30):
        db.append_message("s7", "user" if n % 2 == 0 else "assistant", f"text {n // 4}")
elif how == "load and replace":
    db.replace_messages("s7", db.get_messages_as_conversation("s7"))
elif how == "replace without times":
    said = [{**one, "timestamp": None} for one in db.get_messages_as_conversation("s7")]
    db.replace_messages("s7", said)
elif how == "compact":
    db.archive_and_compact("s7", [{"role": "user", "content": "a summary"}])
elif how == "rewind":
    last = db.get_messages("s7")[-2]
    db.rewind_to_message("s7", last["id"])
elif how == "drop two":
    db.replace_messages("s7", db.get_messages_as_conversation("s7")[:-2])
db.close()
"""


@pytest.mark.sampled
@pytest.mark.real
@pytest.mark.parametrize(
    "how", ["load and replace", "replace without times", "compact", "rewind", "drop two"]
)
def test_what_real_hermes_does_to_a_session(home: Path, how: str) -> None:
    """Rewriting, compacting and rewinding keep no backup; dropping messages does."""
    need_release("0.19.0")
    python = releases.python_of("0.19.0")

    def hermes(what: str) -> None:
        words = [str(python), "-I", "-c", REWRITES, str(home / "state.db"), what]
        subprocess.run(words, check=True, cwd=home, env={"HERMES_HOME": str(home)})

    hermes("begin")
    old = create(home, 9)
    hermes(how)
    create(home, 1)

    found = prune(home, "--keep", "1")

    if how == "drop two":
        assert "2 messages that state.db no longer has" in reasons(found)[old]
    else:
        assert found["removed"] == [old]


# -- a log without its database ----------------------------------------------------------------


def log_alone(home: Path, days: float) -> str:
    """A backup of a run that holds only the log of state.db."""
    path = home / "state.db-wal"
    store = Vault(Home(home))
    sources = [BackupSource("state.db-wal", str(path), snapshot(path))]
    made = store.create(sources, reason="fix DB-WAL-STALE", hermes=None)
    return age(home, made.id, days)


def test_a_log_without_its_database_stays(home: Path) -> None:
    """Its rows may be nowhere else."""
    damage.foreign_log(fix_cycle.history(home / "state.db"), before=200, after=8)
    old = log_alone(home, 40)
    for suffix in ("-wal", "-shm"):
        (home / f"state.db{suffix}").unlink()
    create(home, 1)

    found = prune(home, "--keep", "1")

    assert found["removed"] == []
    assert "state.db-wal" in reasons(found)[old]
    assert "8 messages" in reasons(found)[old]
    named = prune(home, old)
    assert any("state.db-wal" in text for text in named["lost"])


def test_a_log_whose_rows_the_database_has_goes(home: Path) -> None:
    """A log that was written into its database holds nothing of its own."""
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA wal_autocheckpoint=0")
        with db:
            support.say(db, "in the log", "in the log, too")
        old = log_alone(home, 40)
    create(home, 1)

    assert prune(home, "--keep", "1")["removed"] == [old]


def test_a_log_of_another_database_stays(home: Path) -> None:
    """The rows of a kanban log cannot be read alone, so its backup stays and is named."""
    with contextlib.closing(sqlite3.connect(home / "kanban.db")) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA wal_autocheckpoint=0")
        with db:
            db.execute("UPDATE tasks SET title = 'new'")
        log = home / "kanban.db-wal"
        made = Vault(Home(home)).create(
            [BackupSource("kanban.db-wal", str(log), snapshot(log))], reason="fix", hermes=None
        )
    old = age(home, made.id, 40)
    create(home, 1)

    why = reasons(prune(home, "--keep", "1"))[old]

    assert "kanban.db-wal" in why and "could not be compared" in why


def test_progress_is_shown_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick work shows nothing; slow work shows what it is doing."""
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, width=80)
    monkeypatch.setattr(progress, "Console", lambda **_: terminal)

    with progress.delayed_bar(60) as hear:
        hear("comparing state.db", None)
    assert shown.getvalue() == ""
    with progress.delayed_bar(0.05) as hear:
        hear("comparing state.db", None)
        end = time.monotonic() + 20
        while "comparing state.db" not in shown.getvalue():
            assert time.monotonic() < end
            time.sleep(0.02)
