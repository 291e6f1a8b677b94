"""The private systemd that other tests rely on."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tests.helpers.real.systemd import CGROUPS, systemd

pytestmark = [pytest.mark.real, pytest.mark.wide]


@pytest.mark.parametrize("uid", [0, 12345])
def test_a_manager_of_its_own(uid: int) -> None:
    """It starts units of that user, in a control group of its own, and leaves nothing behind."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # the other user must get to his own
        with systemd(Path(folder) / "user", uid) as machine:
            machine.install("x.service", "[Service]\nExecStart=/bin/sleep 1000\n", y="[Unit]\n")
            machine.systemctl("start", "x.service")
            machine.wait_for("x.service", ActiveState="active", SubState="running")
            pid = machine.main_pid("x.service")
            group = machine.run("cat", f"/proc/{pid}/cgroup").out

            assert group.splitlines()[-1].endswith(f"/user@{uid}.service/app.slice/x.service")
            assert machine.run("stat", "-c%u", f"/proc/{pid}").out == f"{uid}\n"
            assert not machine.run("journalctl", "--since=-1min", "-q", uid=0).err
    assert not list(CGROUPS.glob(f"**/hermes-doctor-{os.getpid()}-*"))
