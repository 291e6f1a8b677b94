"""Run the tests as CI does; a few that fail beside the others are run once more, alone.

    python -m tools.ci_tests [options of pytest]

Tests with real gateways, systemd and Docker can meet a moment at which the machine was too busy,
in one of some thousand tests. A test that fails both times fails the run, and all failures of the
first run are shown. If more than MOST fail, that is no accident, and none is run again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FAILED = 1
"""The exit code of pytest if tests failed, and nothing else went wrong."""
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
"""Where pytest writes the tests that failed."""
MOST = 5


def run(options: Sequence[str], folder: Path) -> int:
    """Run the tests below a folder; return the exit code of pytest."""
    pytest = [sys.executable, "-m", "pytest"]
    code = subprocess.run([*pytest, "--cache-clear", *options], cwd=folder).returncode
    if code != FAILED:
        return code
    failed = sorted(json.loads((folder / LAST_FAILED).read_text()))
    if len(failed) > MOST:
        return code
    print("\nRun again, alone:", *failed, sep="\n  ", flush=True)
    code = subprocess.run([*pytest, "--last-failed", "--all"], cwd=folder).returncode
    if code == 0:
        print("\nFailed beside the other tests, passed alone:", *failed, sep="\n  ")
    return code


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], Path.cwd()))
