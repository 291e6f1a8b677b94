"""Each damage on the databases of real releases is told by its name; a sound home by none."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.conftest import RELEASES, need_release, once
from tests.helpers import damage, support
from tests.helpers.damage import CODES, Fault
from tests.helpers.real.gateways import gateway
from tests.helpers.real.release_homes import KILLED, MakeHome, Patient
from tools import real_home, releases

pytestmark = pytest.mark.real

MORE = """
import os
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
for n in range(300):
    text = f"more of it, number {n} " * (n % 90 if n % 15 else 900)
    history.append_message("one", "tool" if n % 3 else "user", text)
history.close()
"""
"""A history of several hundred messages, some longer than a page."""


@pytest.fixture
def patient(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Patient:
    """A home of a release with some history."""
    version: str = request.param
    need_release(version)

    def make(folder: Path) -> None:
        real_home.run(version, real_home.make(version, folder / "home"), MORE)

    shared = once(tmp_path_factory, f"history-{version}", make)
    return Patient(version, support.copy_home(shared / "home", tmp_path / "home"))


def codes(patient: Patient, *options: str) -> list[str]:
    """What is found about databases, information left out."""
    report = patient.check("--only", "databases", *options).json
    assert "crashed" not in {check["status"] for check in report["checks"]}
    return [f["code"] for f in report["findings"] if f["severity"] != "info"]


@pytest.mark.parametrize("version", releases.ALL)
def test_sound(version: str, hermes_home: MakeHome) -> None:
    """Nothing is found on a sound home of any release, also by a look at everything."""
    patient = Patient(version, hermes_home(version))

    for options in ([], ["--deep"]):
        done = patient.check("--only", "databases", "--fail-on", "info,unknown,crashed", *options)
        assert done.json["findings"] == []
        assert done.code == 0


@pytest.mark.parametrize("version", releases.ALL)
def test_sound_after_a_crash(version: str, hermes_home: MakeHome) -> None:
    """Nor after a process was killed in the middle of its work."""
    patient = Patient(version, hermes_home(version))
    with contextlib.suppress(RuntimeError):
        real_home.run(version, patient.home, KILLED)
    assert (patient.home / "state.db-wal").exists()

    assert codes(patient) == codes(patient, "--deep") == []


@pytest.mark.sampled
@pytest.mark.parametrize("fault", CODES, ids=damage.called)
@pytest.mark.parametrize("patient", RELEASES, indirect=True)
def test_each_damage(patient: Patient, fault: Fault) -> None:
    """Quickly and wholly, each damage is told once and by its own name."""
    fault(patient.home / "state.db")

    assert codes(patient) == [CODES[fault]]
    assert codes(patient, "--deep") == [CODES[fault]]


@pytest.mark.parametrize("version", RELEASES)
def test_a_snapshot_restored_over_a_log(version: str, hermes_home: MakeHome) -> None:
    """What Hermes' own restore leaves: an older database under the log of a killed process."""
    patient = Patient(version, hermes_home(version))
    older = shutil.copy(patient.home / "state.db", patient.home / "older")
    real_home.run(version, patient.home, MORE)
    with contextlib.suppress(RuntimeError):
        real_home.run(version, patient.home, KILLED)
    shutil.move(older, patient.home / "state.db")

    found = codes(patient)

    assert found == ["DB-WAL-STALE"]


@pytest.mark.parametrize("version", RELEASES)
def test_rows(version: str, hermes_home: MakeHome) -> None:
    """A release that cannot work with a row is told so."""
    patient = Patient(version, hermes_home(version))
    damage.execute(
        patient.home / "state.db",
        "UPDATE sessions SET model_config = '{broken'",
        "UPDATE schema_version SET version = 'eleven'",
    )

    expected = ["DB-SCHEMAVERSION"] + (["DB-JSON"] if version >= "0.17" else [])
    assert codes(patient) == expected
    with pytest.raises(RuntimeError, match="TypeError"):
        patient.ask(
            "import os\nfrom pathlib import Path\nfrom hermes_state import SessionDB\n"
            "SessionDB(Path(os.environ['HERMES_HOME']) / 'state.db')"
        )


@pytest.mark.parametrize("version", RELEASES)
def test_emptied(version: str, hermes_home: MakeHome) -> None:
    """A history of no bytes beside a snapshot of it."""
    patient = Patient(version, hermes_home(version))
    snapshot = patient.home / "state-snapshots" / "20260101-000000" / "state.db"
    support.put(snapshot, (patient.home / "state.db").read_bytes())
    os.truncate(patient.home / "state.db", 0)

    assert codes(patient) == ["DB-EMPTY"]


@pytest.mark.wide
@pytest.mark.parametrize("version", RELEASES)
def test_a_gateway_whose_history_was_replaced(version: str, hermes_home: MakeHome) -> None:
    """A real gateway goes on with the old file, and is named."""
    home = hermes_home(version)
    patient = Patient(version, home)
    copy = Path(shutil.copy(home / "state.db", home / "copy"))
    with gateway(version, home) as running:
        assert codes(patient) == []
        os.replace(copy, home / "state.db")
        report = patient.check("--only", "databases").json
        [finding] = [f for f in report["findings"] if f["code"] == "DB-REPLACED"]
        assert f"process {running.pid}" in finding["title"]


@pytest.mark.wide
@pytest.mark.parametrize("version", RELEASES)
def test_a_gateway_whose_log_was_deleted(version: str, hermes_home: MakeHome) -> None:
    """A real gateway writes where nobody sees it."""
    home = hermes_home(version)
    patient = Patient(version, home)
    with gateway(version, home) as running:
        (home / "state.db-wal").unlink()
        report = patient.check("--only", "databases").json
        [finding] = [f for f in report["findings"] if f["code"] == "DB-DELETED-WAL"]
        assert f"process {running.pid}" in finding["title"]


def test_the_board_that_hermes_refuses(hermes_home: MakeHome) -> None:
    """A damaged board has its own name."""
    patient = Patient("0.19.0", hermes_home("0.19.0"))
    path = patient.home / "kanban.db"
    damage.zero(path, damage.leaves(path, "tasks")[0])

    assert codes(patient) == ["KANBAN-CORRUPT"]
    with pytest.raises(RuntimeError, match="Refusing to open corrupt"):
        patient.ask(
            "import os\nfrom pathlib import Path\nfrom hermes_cli import kanban_db\n"
            "kanban_db.connect(Path(os.environ['HERMES_HOME']) / 'kanban.db')"
        )
    assert sqlite3.sqlite_version
