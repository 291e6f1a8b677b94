"""Measure `check` on a home with many profiles: time and memory of one and of all homes.

    python -m benchmarks.profiles [--runs 7]

A real release makes a home with a bot and a full config.yaml; 1, 5 and 20 of them are under one
root. All commands run in turn. Bars: `--all-homes` with 20 homes costs at most 12 times as much as
with one, at most 2 s and 100 MB; one home among 20 costs at most 1.2 times as much as one alone.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.memory import measured
from benchmarks.timing import Cost, environment, in_turn, load
from tools import real_home

RELEASE = "0.19.0"
NUMBERS = (1, 5, 20)
ALL_BAR, SECONDS_BAR, MEGABYTES_BAR, ONE_BAR = 12.0, 2.0, 100, 1.2
TOOL = [sys.executable, "-m", "hermes_doctor", "check"]
SETTINGS = 300
"""Lines of settings that Hermes ignores; a config.yaml that its wizard wrote is that long."""


def make(folder: Path) -> dict[int, Path]:
    """Make the homes, by the number of homes under each root."""
    one = real_home.make(RELEASE, folder / "made")
    notes = "".join(f"  note_{n}: a setting with the value {n}\n" for n in range(SETTINGS))
    (one / "config.yaml").write_text(
        "model:\n  default: gpt-4o\n  provider: custom\n  base_url: http://127.0.0.1:9/v1\n"
        f"platforms:\n  telegram:\n    enabled: true\nnotes:\n{notes}"
    )
    found = {}
    for number in NUMBERS:
        root = found[number] = folder / f"{number}" / "home"
        for n, home in enumerate([root, *(root / "profiles" / f"p{k}" for k in range(1, number))]):
            shutil.copytree(one, home)
            (home / ".env").write_text(f"TELEGRAM_BOT_TOKEN={1000000 + n}:AAH{'x' * 30}{n:02}\n")
            (home / ".env").chmod(0o600)
    return found


def show(name: str, cost: Cost, base: Cost) -> None:
    """Print one line of the table."""
    print(
        f"  {name:<24} {cost.wall:>6.2f} s {cost.cpu:>6.2f} s CPU ± {cost.spread * 500:>3.0f} ms "
        f"{cost.cpu / base.cpu:>6.1f}x",
        flush=True,
    )


def main() -> int:
    """Measure, print the table, and return 1 if a bar is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o700)
    try:
        print(load())
        homes = make(folder)
        environ = environment(HOME=str(folder))
        every = [[*TOOL, "--all-homes", "--home", str(homes[number])] for number in NUMBERS]
        single = [[*TOOL, "--home", str(homes[number])] for number in (NUMBERS[0], NUMBERS[-1])]
        costs = in_turn([*every, *single], runs, environ)
        names = [f"--all-homes of {number}" for number in NUMBERS]
        names += ["one home alone", f"one home among {NUMBERS[-1]}"]
        for name, cost in zip(names, costs, strict=True):
            show(name, cost, costs[0])
        peak = measured(every[-1])
        print(f"  memory of {NUMBERS[-1]} homes: {peak.all >> 20} MB")
    finally:
        shutil.rmtree(folder)
    most, alone, among = costs[len(NUMBERS) - 1], costs[-2], costs[-1]
    missed = [
        most.cpu / costs[0].cpu > ALL_BAR,
        most.wall > SECONDS_BAR,
        peak.all >> 20 > MEGABYTES_BAR,
        among.cpu / alone.cpu > ONE_BAR,
    ]
    print(f"bars: {ALL_BAR:g}x, {SECONDS_BAR:g} s, {MEGABYTES_BAR} MB, {ONE_BAR:g}x")
    return int(any(missed))


if __name__ == "__main__":
    sys.exit(main())
