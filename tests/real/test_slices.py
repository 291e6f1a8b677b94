"""Each slice on homes of real releases: broken, suffered from, found, repaired, undone."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.hermes.knowledge import atlas
from tests.conftest import RELEASES
from tests.helpers import support
from tests.helpers.real.release_homes import (
    KILLED,
    ROWS,
    MakeHome,
    Patient,
    cure,
    lose,
    machine,
    undo,
)
from tools import real_home

pytestmark = pytest.mark.real
NOBODY = 65534
MESSAGES = [f"message number {n}" for n in range(40)]
TASKS = [f"task number {n}" for n in range(3)]

SETTINGS = """
from hermes_cli.config import load_config
model = load_config().get("model")
print(*[model.get(name) if isinstance(model, dict) else None for name in ("default", "provider")])
"""
SNAPSHOT = """
from hermes_cli.backup import create_quick_snapshot
print(create_quick_snapshot(label="test"))
"""
VARIABLES = """
import os
from hermes_cli.env_loader import load_hermes_dotenv
load_hermes_dotenv(hermes_home=os.environ["HERMES_HOME"])
print(os.environ.get("OPENROUTER_API_KEY"), os.environ.get("SECOND"))
"""
KEY = """
from hermes_cli.runtime_provider import resolve_runtime_provider
print(resolve_runtime_provider()["api_key"])
"""
BOARD = """
import os
from pathlib import Path
from hermes_cli import kanban_db
board = kanban_db.connect(Path(os.environ["HERMES_HOME"]) / "kanban.db")
print(*sorted(task.title for task in kanban_db.list_tasks(board)), sep="\\n")
"""
WORK = """
import os
from pathlib import Path
from hermes_cli import kanban_db as k
board = k.connect(Path(os.environ["HERMES_HOME"]) / "kanban.db")
print(*sorted(task.title for task in k.list_tasks(board)), sep="\\n")
one = k.create_task(board, title="new", assignee="me", created_by="me", workspace_kind="scratch")
two = k.create_task(board, title="newer")
k.link_tasks(board, two, one)
k.add_comment(board, one, "me", "text")
k.list_comments(board, one)
k.list_events(board, one)
k.complete_task(board, two, result="done")
k.recompute_ready(board)
k.claim_task(board, one)
k.heartbeat_claim(board, one)
k.heartbeat_worker(board, one)
k.complete_task(board, one, result="done", summary="all of it")
k.list_runs(board, one)
k.add_notify_sub(board, task_id=one, platform="test", chat_id="1")
k.list_notify_subs(board, one)
"""
"""Lists what is there, then takes a task through its whole life."""
STORES = """
import os
os.umask(0o022)
from gateway.platforms.api_server import ResponseStore
from hermes_cli import webhook
from hermes_cli.backup import create_quick_snapshot
store = ResponseStore(db_path=os.environ["HERMES_HOME"] + "/response_store.db")
store.put("one", {"output": "an answer"})
store.close()
webhook._save_subscriptions({"hook": {"secret": "not-a-secret"}})
create_quick_snapshot(label="test")
"""
STORED = """
import os
from gateway.platforms.api_server import ResponseStore
from hermes_cli import webhook
store = ResponseStore(db_path=os.environ["HERMES_HOME"] + "/response_store.db")
print(store.get("one")["output"], webhook._load_subscriptions()["hook"]["secret"])
"""


@pytest.fixture(params=RELEASES)
def patient(request: pytest.FixtureRequest, hermes_home: MakeHome) -> Patient:
    """A healthy home of each of the three releases."""
    version: str = request.param
    return Patient(version, hermes_home(version))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of the machine may pass; pytest's own are closed."""
    folder = Path(tempfile.mkdtemp(prefix="hermes-doctor-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def unhealed(version: str) -> list[tuple[str, str]]:
    """The columns of a release, keys aside, that it does not bring back by itself."""
    plan = atlas.blueprint("kanban.db", version)
    assert plan
    return [
        (table.name, column.name)
        for table in plan.tables.values()
        for column in table.columns
        if not column.key and column.if_missing != "healed"
    ]


# -- CFG-YAML ------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("kept", ["beside", "snapshot"])
def test_config_yaml(patient: Patient, kept: str) -> None:
    """Hermes falls back to its defaults; the copy beside it or in Hermes' own snapshot cures."""
    config = patient.home / "config.yaml"
    if kept == "beside":
        shutil.copy2(config, patient.home / "config.yaml.bak")
    else:
        real_home.run(patient.version, patient.home, SNAPSHOT)
    assert "CFG-YAML" not in patient.check().codes
    assert patient.ask(SETTINGS).split() == ["acme/test-model", "openrouter"]
    healthy = config.read_bytes()
    config.write_bytes(healthy + b" display: [unclosed\n")
    sick = support.contents(patient.home)

    assert patient.finding("CFG-YAML")["severity"] == "critical"
    assert patient.check().code == 1
    assert patient.ask(SETTINGS).split() == ["None", "None"]

    cure(patient, "CFG-YAML")
    assert config.read_bytes() == healthy
    assert patient.ask(SETTINGS).split() == ["acme/test-model", "openrouter"]

    undo(patient, sick)


# -- DB-NOTADB -----------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "script", "rows"), [("state.db", ROWS, MESSAGES), ("kanban.db", BOARD, TASKS)]
)
def test_magic_bytes(patient: Patient, name: str, script: str, rows: list[str]) -> None:
    """Hermes refuses the whole database; with its magic bytes back it has every row."""
    assert "DB-NOTADB" not in patient.check().codes
    support.clobber(patient.home / name)
    sick = support.contents(patient.home)

    found = patient.finding("DB-NOTADB")
    assert (found["subject"], found["severity"]) == (name, "critical")
    with pytest.raises(RuntimeError, match="file is not a database"):
        patient.ask(script)

    cure(patient, "DB-NOTADB")
    assert patient.ask(script).splitlines() == rows

    undo(patient, sick)


def test_magic_bytes_with_a_log(patient: Patient) -> None:
    """A log that holds a newer first page makes up for the damaged one: no alarm, no row lost."""
    with pytest.raises(RuntimeError):
        real_home.run(patient.version, patient.home, KILLED)
    assert (patient.home / "state.db-wal").stat().st_size
    support.clobber(patient.home / "state.db")

    assert "DB-NOTADB" not in patient.check().codes
    assert patient.ask(ROWS).splitlines() == [f"message number {n}" for n in range(60)]


# -- KANBAN-SCHEMA -------------------------------------------------------------------------


def test_column_that_hermes_heals(patient: Patient) -> None:
    """A warning where this release adds it by itself, an error where the release is not known."""
    column = "skills" if patient.version == "0.13.0" else "session_id"  # of 0.15.0
    assert "KANBAN-SCHEMA" not in patient.check().codes
    lose(patient.home / "kanban.db", ("tasks", column))
    sick = support.contents(patient.home)

    found = patient.finding("KANBAN-SCHEMA")
    assert found["severity"] == "warning"
    assert f"tasks.{column}" in found["evidence"][0]["what"]
    assert patient.check().code == 0
    assert patient.ask(BOARD).splitlines() == TASKS
    stranger = support.doctor(
        "check", "--json", "--home", patient.home, env=machine(patient.home.parent)
    )
    assert stranger.json["hermes"]["version"] is None
    assert support.finding(stranger, "KANBAN-SCHEMA")["severity"] == "error"

    assert patient.ask(WORK).splitlines() == TASKS
    cure(patient, "KANBAN-SCHEMA")
    assert patient.ask(WORK).splitlines() == TASKS
    undo(patient, sick)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "column",
    [
        ("tasks", "assignee"),  # with an index
        ("tasks", "workspace_kind"),  # NOT NULL with a default
        ("task_comments", "author"),  # NOT NULL without one
        ("task_runs", "outcome"),
    ],
    ids=".".join,
)
def test_column_that_hermes_does_not_heal(patient: Patient, column: tuple[str, str]) -> None:
    """Hermes fails on the board, or soon on its work; with the column back it does neither."""
    assert column in unhealed(patient.version)
    lose(patient.home / "kanban.db", column)
    sick = support.contents(patient.home)

    found = patient.finding("KANBAN-SCHEMA")
    assert found["severity"] == "error"
    assert ".".join(column) in found["evidence"][0]["what"]
    with pytest.raises(RuntimeError, match=r"sqlite3\.OperationalError|No item with that key"):
        patient.ask(WORK)

    cure(patient, "KANBAN-SCHEMA")
    assert patient.ask(WORK).splitlines() == TASKS

    undo(patient, sick)


def test_every_column_that_hermes_does_not_heal(patient: Patient) -> None:
    """All of them at once: Hermes cannot even list the board, and afterwards has every task."""
    columns = unhealed(patient.version)
    assert len(columns) > 30
    lose(patient.home / "kanban.db", *columns)
    sick = support.contents(patient.home)

    evidence = patient.finding("KANBAN-SCHEMA")["evidence"][0]["what"]
    assert evidence.removeprefix("missing columns: ").split(", ") == sorted(map(".".join, columns))
    with pytest.raises(RuntimeError):
        patient.ask(BOARD)

    cure(patient, "KANBAN-SCHEMA")
    assert len(patient.ask(WORK).splitlines()) == len(TASKS)  # the titles are gone for good

    undo(patient, sick)


# -- PERM-SECRETS --------------------------------------------------------------------------


def readable_by_others(*paths: Path) -> list[str]:
    """The files that another user of the machine can read; only root can try that."""
    if os.geteuid() != 0:
        return [path.name for path in paths if path.stat().st_mode & 0o004]
    tried = [
        subprocess.run(
            ["cat", str(path)],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for path in paths
    ]
    return [path.name for path, done in zip(paths, tried, strict=True) if done.returncode == 0]


FILES = ("--only", "secret-modes")
"""The home itself must be open here, or nobody could read the files in it."""


def test_secret_modes(patient: Patient, open_folder: Path) -> None:
    """Another user reads the secrets, and afterwards not; Hermes reads them still."""
    home = support.copy_home(patient.home, open_folder / "home")
    home.chmod(0o755)
    patient = Patient(patient.version, home)
    assert "PERM-SECRETS" not in patient.check(*FILES).codes
    real_home.run(patient.version, home, STORES)  # some releases leave these open themselves
    support.put(home / "auth.json", '{"providers": {}}\n')
    archive = home / "backups" / "pre-update-2026-11-15-030000.zip"
    archive.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.write(home / ".env", ".env")
    (snapshot,) = (home / "state-snapshots").glob("*/.env")
    names = [".env", "auth.json", "response_store.db", "webhook_subscriptions.json"]
    secrets = [*(home / name for name in names), archive, snapshot]
    for path in secrets:
        path.chmod(0o644)
    sick = support.contents(home)

    found = [f for f in patient.check(*FILES).json["findings"] if f["code"] == "PERM-SECRETS"]
    assert {f["subject"] for f in found} >= {str(path.relative_to(home)) for path in secrets}
    assert {f["severity"] for f in found} == {"error"}
    assert readable_by_others(*secrets) == [path.name for path in secrets]

    cure(patient, "PERM-SECRETS", *FILES, exit_code=1)  # its folder is left
    assert readable_by_others(*secrets) == []
    assert {path.stat().st_mode & 0o777 for path in secrets} == {0o600}
    assert patient.ask(VARIABLES).split() == ["not-a-key", "two"]
    assert patient.ask(STORED).strip() == "an answer not-a-secret"

    undo(patient, sick)


def test_secret_in_a_snapshot(patient: Patient, open_folder: Path) -> None:
    """No secret that Hermes' own snapshot copied stays readable by others after the fix."""
    home = support.copy_home(patient.home, open_folder / "home")
    home.chmod(0o755)
    patient = Patient(patient.version, home)
    real_home.run(patient.version, home, STORES)

    cure(patient, "PERM-SECRETS", *FILES, exit_code=1)  # its folder is left

    stores = list((home / "state-snapshots").glob("*/response_store.db"))
    assert readable_by_others(*stores) == []


# -- ENV-BOM -------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_env_with_a_mark(patient: Patient, newline: str) -> None:
    """Hermes does not see a variable in line 1; without the mark or below a comment it does."""
    env = patient.home / ".env"
    text = support.ENV.replace("\n", newline).encode()
    env.write_bytes(text)
    assert "ENV-BOM" not in patient.check().codes
    assert patient.ask(VARIABLES).split() == ["not-a-key", "two"]
    env.write_bytes(b"\xef\xbb\xbf" + text)
    sick = support.contents(patient.home)

    finds_key = patient.version == "0.19.0"  # in the file, for a provider that it knows
    assert patient.finding("ENV-BOM")["severity"] == ("warning" if finds_key else "error")
    assert patient.ask(VARIABLES).split() == ["None", "two"]
    if finds_key:
        assert patient.ask(KEY).strip() == "not-a-key"

    cure(patient, "ENV-BOM")
    assert env.read_bytes() == text
    assert patient.ask(VARIABLES).split() == ["not-a-key", "two"]

    undo(patient, sick)
    comment = f"# mine{newline}".encode()
    env.write_bytes(b"\xef\xbb\xbf" + comment + text)
    found = patient.finding("ENV-BOM")
    assert (found["severity"], found["fix"]["id"]) == ("info", "rewrite-env")
    assert patient.ask(VARIABLES).split() == ["not-a-key", "two"]
    cure(patient, "ENV-BOM")
    assert env.read_bytes() == comment + text


@pytest.mark.sampled
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_env_in_another_encoding(patient: Patient, encoding: str) -> None:
    """From UTF-16, marked or not, to what every release reads."""
    env = patient.home / ".env"
    env.write_bytes(support.ENV.encode(encoding))
    sick = support.contents(patient.home)

    converts = patient.version == "0.19.0"  # it rewrites the file itself when it starts
    assert patient.finding("ENV-BOM")["severity"] == ("info" if converts else "error")

    cure(patient, "ENV-BOM")
    assert env.read_text() == support.ENV
    assert patient.ask(VARIABLES).split() == ["not-a-key", "two"]

    undo(patient, sick)


@pytest.mark.wide
def test_env_that_hermes_itself_has_mangled(hermes_home: MakeHome) -> None:
    """0.15 to 0.18 turn a mark of UTF-16 into two U+FFFD: the first variable stays lost."""
    patient = Patient("0.16.0", hermes_home("0.16.0"))
    (patient.home / ".env").write_bytes(support.ENV.encode("utf-16"))
    told = real_home.run(patient.version, patient.home, VARIABLES)
    assert told.split() == ["None", "two"]
    assert (patient.home / ".env").read_bytes().startswith("\ufffd\ufffdOPENROUTER".encode())

    assert "ENV-BOM" in patient.check().codes
