"""Compare the time of `--help` and `check` with a bare interpreter and with `hermes doctor`.

    python -m benchmarks.startup

All measured in one run, as ratios. Bars: --help at most 12 times the CPU time of `python -c pass`;
check at least 15 times faster than `hermes doctor` on the same healthy home.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tools import real_home, releases

RELEASE = "0.19.0"
HELP_BAR = 12.0
CHECK_BAR = 15.0


@dataclass(frozen=True)
class Cost:
    """The seconds of one run, or the median of several."""

    wall: float
    cpu: float


def measure(command: list[str], runs: int, environ: dict[str, str]) -> Cost:
    """Return the median cost of a command, without the first run."""
    return in_turn([command], runs, environ)[0]


def in_turn(commands: list[list[str]], runs: int, environ: dict[str, str]) -> list[Cost]:
    """Return the median cost of each, run in turn so that other work affects all equally."""
    found: list[list[Cost]] = [[] for _ in commands]
    for _ in range(runs + 1):
        for costs, command in zip(found, commands, strict=True):
            costs.append(once(command, environ))
    return [
        Cost(
            statistics.median(cost.wall for cost in costs[1:]),
            statistics.median(cost.cpu for cost in costs[1:]),
        )
        for costs in found
    ]


def once(command: list[str], environ: dict[str, str]) -> Cost:
    """Return the cost of one run."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return Cost(time.perf_counter() - start, usage.ru_utime + usage.ru_stime)


def main() -> int:
    """Measure, print the table, and fail when a bar is missed."""
    hermes = releases.python_of(RELEASE)
    tool = [sys.executable, "-m", "hermes_doctor"]
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o700)
    home = folder / "home"
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environ |= {"HERMES_HOME": str(home), "HOME": str(folder)}
    try:
        real_home.make(RELEASE, home)
        bare = measure([sys.executable, "-c", "pass"], 20, environ)
        helped = measure([*tool, "--help"], 20, environ)
        checked = measure([*tool, "check"], 20, environ)
        theirs = measure([str(hermes.parent / "hermes"), "doctor"], 3, environ)
    finally:
        shutil.rmtree(folder)
    rows = [
        ("python -c pass", bare),
        ("hermes-doctor --help", helped),
        ("hermes-doctor check", checked),
        (f"hermes doctor ({RELEASE})", theirs),
    ]
    print(f"{'command':<24} {'wall':>9} {'cpu':>9} {'cpu / bare':>11}")
    for name, cost in rows:
        print(
            f"{name:<24} {cost.wall * 1000:>6.0f} ms {cost.cpu * 1000:>6.0f} ms "
            f"{cost.cpu / bare.cpu:>10.1f}x"
        )
    help_ratio = helped.cpu / bare.cpu
    check_ratio = theirs.wall / checked.wall
    print(f"--help: {help_ratio:.1f} times a bare interpreter (bar: at most {HELP_BAR:g})")
    print(f"check: {check_ratio:.1f} times faster than hermes doctor (bar: at least {CHECK_BAR:g})")
    return int(help_ratio > HELP_BAR or check_ratio < CHECK_BAR)


if __name__ == "__main__":
    sys.exit(main())
