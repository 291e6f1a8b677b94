"""A user who may have only a few processes and threads: `ulimit -u`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import support

ROOT = Path(__file__).parents[2]
NOBODY_ELSE = 61234
"""A user id that has no other processes."""
COMMAND = """\
import os, resource, sys
from hermes_doctor.cli import main
from tests.helpers import loaded
loaded.load_everything()
user, most = int(sys.argv[1]), int(sys.argv[2])
os.setgroups([])
os.setgid(user)
os.setuid(user)
resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
sys.argv[:] = ["hermes-doctor", *sys.argv[3:]]
main.main()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_check(most: int) -> None:
    """What could not be looked at is said, and nothing crashes."""
    with support.reachable_folder() as folder:
        home = support.healthy(folder / "home")
        for path in (home, *home.rglob("*")):
            os.chown(path, NOBODY_ELSE, NOBODY_ELSE)
        words = ["check", "--json", "--home", str(home)]
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, str(NOBODY_ELSE), str(most), *words],
            cwd=ROOT,
            env=support.environ({"HOME": str(folder)}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    found = json.loads(done.stdout)
    assert "Traceback" not in done.stderr
    if most <= 2:  # one process, and the one that waits for it
        assert done.returncode == 2
        assert "could not" in found["error"]["message"].lower()
    crashed = [one for one in found.get("checks", ()) if one["status"] == "crashed"]
    assert crashed == []
