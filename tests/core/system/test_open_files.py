"""Root saves only what belongs to the owner of the home, whatever a process has open there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system.open_files import open_file_of_process
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.planning import deleted_logs
from hermes_doctor.repair.steps.database import SaveLost
from hermes_doctor.repair.steps.gateway import GatewayStep
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


FOUND = "the disk is full"


@pytest.fixture
def home_of_root() -> Iterator[Path]:
    """A home of root's with logs of another user."""
    with support.reachable_folder() as place:
        home = support.healthy(place / "home")
        at = f"{datetime.now():%Y-%m-%d %H:%M:%S,000}"
        line = f"{at} WARNING gateway.platforms.base: Failed to write runtime status (connected) "
        line += "for qqbot: [Errno 28] No space left on device: '/home/op/.hermes/x.tmp'\n"
        support.put(place / "errors.log", line * 3)
        crash_server.chown(home / "logs")
        yield home


def said(home: Path) -> str:
    """What `check` says of the log."""
    return support.doctor("check", "--only", "log-rules", "-v", "--home", home).out


def test_a_file_in_the_folder_is_read(home_of_root: Path) -> None:
    """Of that user or of root, who may run the gateway."""
    (home_of_root.parent / "errors.log").rename(home_of_root / "logs" / "errors.log")
    for owner in (crash_server.STRANGER, 0):
        os.chown(home_of_root / "logs" / "errors.log", owner, owner)
        assert FOUND in said(home_of_root)


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_link_out_of_it(home_of_root: Path, mode: int) -> None:
    """Root reads what everybody may read, and says that it did not read the rest."""
    log = home_of_root.parent / "errors.log"
    log.chmod(mode)
    (home_of_root / "logs" / "errors.log").symlink_to(log)

    told = " ".join(said(home_of_root).split())

    assert (FOUND in told) == (mode == 0o644)
    assert ("a link of another user (uid 12345) leads to it" in told) == (mode == 0o600)


def test_a_second_name_of_a_file_of_root(home_of_root: Path) -> None:
    """A hard link is no way, either."""
    log = home_of_root.parent / "errors.log"
    log.chmod(0o600)
    os.link(log, home_of_root / "logs" / "errors.log")

    assert FOUND not in said(home_of_root)


def test_a_file_below_a_closed_folder(home_of_root: Path) -> None:
    """Everybody might read it, but that user does not get there."""
    closed = home_of_root.parent / "closed"
    closed.mkdir(0o700)
    (home_of_root.parent / "errors.log").rename(closed / "errors.log")
    (closed / "errors.log").chmod(0o644)
    (home_of_root / "logs" / "errors.log").symlink_to(closed / "errors.log")

    assert FOUND not in said(home_of_root)
