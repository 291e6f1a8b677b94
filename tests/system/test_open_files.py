"""Root saves only what belongs to the owner of the home, whatever a process has open there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.backup.vault import Vault
from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix
from hermes_doctor.planning import deleted_logs
from hermes_doctor.probes.probes import Probes
from hermes_doctor.steps.database import SaveLost
from hermes_doctor.steps.gateway import GatewayStep
from hermes_doctor.system.open_files import open_file_of_process
from tests.helpers import crash_server, damage, support
from tests.helpers.crash_server import STRANGER
from tests.helpers.real.gateways import end
from tests.scenarios.test_steps import Child, apply, item

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/proc/locks").exists(), reason="needs root and /proc"
)

HOLDER = """
import os, sys, time
database, uid = sys.argv[1], int(sys.argv[2])
fd = os.open(database, os.O_PATH)
os.setresuid(uid, uid, uid)
log = os.open(database + "-wal", os.O_RDWR | os.O_CREAT)
os.unlink(database + "-wal")
print(fd, flush=True)
time.sleep(60)
"""
"""Holds whatever is mounted at the path, and a deleted log, as the owner of the home."""


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of another user."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = support.healthy(Path(folder) / "home")
        damage.history(path / "state.db")
        yield crash_server.chown(path)


@pytest.fixture
def holder(home: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A process that sees a database of root's at the path of the home's own."""
    secret = support.database(
        tmp_path / "secret.db", "CREATE TABLE t (n)", "INSERT INTO t VALUES ('of root')"
    )
    secret.chmod(0o600)
    mounted = 'mount --bind "$1" "$2" && exec "$3" -c "$4" "$2" "$5"'
    words = ("sh", secret, home / "state.db", sys.executable, HOLDER, str(STRANGER))
    process = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", mounted, *words], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        number = process.stdout.readline().decode().strip()
        if not number:
            pytest.skip("no mount namespace can be made here")
        yield process, number
    finally:
        process.stdout.close()
        end(process)


def test_a_deleted_log(home: Path, holder: tuple[subprocess.Popen[bytes], str]) -> None:
    """A file of root's that is mounted over the database does not get into the vault."""
    process, _ = holder
    step = deleted_logs.save_deleted_logs(Probes(Home(home)), process.pid)
    assert step is not None
    service = Child(home / ".env", process)
    done = apply(home, item(step, GatewayStep(service, restart=True, why="a test")))
    assert done.items[0].outcome == "refused"
    assert f"belongs to uid 0, not to the owner of the home (uid {STRANGER})" in (
        done.items[0].reason or ""
    )
    assert done.saved == [] and Vault(Home(home)).ids() == []
    assert service.log == [], "nothing was stopped"


def test_a_replaced_database(home: Path, holder: tuple[subprocess.Popen[bytes], str]) -> None:
    """The same for a database that is kept until its process has ended."""
    process, number = holder
    step = SaveLost(home / "state.db", process.pid, (("", number),), "a test")
    with pytest.raises(CannotFix, match="belongs to uid 0"):
        step.prepare()
    assert step.held == {}


def test_its_own_file(home: Path) -> None:
    """What belongs to the owner is opened."""
    with (home / "state.db").open("rb") as file:
        fd = open_file_of_process(os.getpid(), str(file.fileno()), home / "state.db")
        try:
            assert os.pread(fd, 16, 0) == b"SQLite format 3\0"
        finally:
            os.close(fd)
