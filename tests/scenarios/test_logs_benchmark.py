"""benchmarks.logs starts a program that no other test runs."""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import judge_logs, logs
from hermes_doctor.core.home import Home
from tests.helpers import support

ROOT = Path(logs.__file__).parents[1]


def answer(*words: str) -> list[int]:
    """Run the program and return the numbers that it prints."""
    command = [sys.executable, "-m", "benchmarks.judge_logs", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


def test_both_processes_read_the_same_entries(home: Path) -> None:
    """Only one of them judges."""
    now = time.time()
    busy = logs.lines(now - 3000, 200, 0.1).decode()
    at = f"{datetime.fromtimestamp(now - 60, UTC):%Y-%m-%d %H:%M:%S},000"
    silent = "No connected messaging platforms remain. Shutting down gateway cleanly."
    failing = f"{at} ERROR gateway.run: {silent}\n"
    support.put(home / "logs" / "gateway.log", busy + failing)
    chosen = judge_logs.selection(Home(home))
    judged, incidents = answer(str(home))
    assert judged > 0
    assert incidents > 0
    assert answer(str(home), json.dumps(chosen)) == [judged]
