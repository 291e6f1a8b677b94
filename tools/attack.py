"""Attack the promises of this tool for so many minutes, with random cases: `make attack`.

Each class is a set of tests. They run again and again with another seed each time, which decides
where a command is killed, which call fails, what is damaged and which cases are tried. At the end
there is a table of the runs and of the broken promises; each of those has a command to repeat it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.helpers import attack_log, budget

ROOT = Path(__file__).parents[1]
CLASSES = {
    "kills": (
        "tests/scenarios/test_random_moments.py::test_killed_while_another_program_writes",
        "tests/scenarios/test_crash.py",
        "tests/scenarios/test_updates_cut_off.py",
        "tests/scenarios/test_foreign_log_crash.py",
        "tests/scenarios/test_database_switch.py",
    ),
    "disk faults": ("tests/scenarios/test_disk_full.py",),
    "symlink races": (
        "tests/scenarios/test_random_moments.py::test_swapped_after_random_pauses",
        "tests/scenarios/test_root_races.py",
        "tests/diagnosis/probes/test_root_actions.py::test_a_home_that_is_swapped_at_any_moment",
        "tests/repair/gateway/test_root_actions.py::test_a_home_that_is_swapped_at_any_moment",
        "tests/core/system/test_signals.py::test_a_process_with_handlers_hears_each_signal",
    ),
    "hostile homes": (
        "tests/scenarios/test_hostile_home.py",
        "tests/scenarios/test_fuzz.py",
        "tests/scenarios/test_salvage_fuzz.py",
        "tests/scenarios/test_stream_fuzz.py",
    ),
    "history": (
        "tests/operations/history/test_reading.py",
        "tests/operations/history/test_when_to_record.py",
    ),
    "probe": ("tests/cli/test_probe_run.py",),
    "heartbeat": (
        "tests/checks/test_gateway_loop.py",
        "tests/operations/watch/test_heartbeat.py",
    ),
    "learn": (
        "tests/scenarios/test_hostile_hermes.py",
        "tests/core/system/test_isolated.py",
        "tests/core/system/test_foreign_code.py",
    ),
}


@dataclass
class Result:
    """What happened in one class."""

    rounds: int = 0
    runs: int = 0
    broken: list[tuple[str, int]] = field(default_factory=list)
    """The tests that failed, and the seed of the round."""
    unfinished: int = 0


def attack(classes: list[str], minutes: float, first_seed: int | None) -> dict[str, Result]:
    """Run rounds of all classes until the time is over; with a seed only that one round."""
    until = time.monotonic() + minutes * 60
    dice = random.Random()
    results = {name: Result() for name in classes}
    while True:
        seed = dice.randrange(1, 1_000_000) if first_seed is None else first_seed
        for number, name in enumerate(classes):
            left = until - time.monotonic()
            if left < 5:
                return results
            # On a slow machine, the first class must not take the time of all others.
            _round(name, seed, left / (len(classes) - number), results[name])
            print(_line(name, results[name]), flush=True)
        if first_seed is not None:
            return results


def _round(name: str, seed: int, seconds: float, result: Result) -> None:
    """Run the tests of one class once; they are ended when the time is over."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "tests.helpers.attack_log"),
                *("-p", "no:cacheprovider", f"--hypothesis-seed={seed}", "--tb=short"),
                *random.Random(seed).sample(CLASSES[name], len(CLASSES[name])),
            ],
            cwd=ROOT,
            env={**os.environ, budget.ATTACK: str(seed), attack_log.FILE: log.name},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        cut_off = False
        try:
            out, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            cut_off = True
            result.unfinished += 1
            os.killpg(process.pid, signal.SIGINT)
            try:
                out, _ = process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, _ = process.communicate()
        lines = [json.loads(line) for line in Path(log.name).read_text().splitlines()]
    result.rounds += 1
    result.runs += sum(line["cases"] for line in lines)
    broken = [(line["test"], seed) for line in lines if not line["held"]]
    if not lines and process.returncode and not cut_off:
        broken = [("the tests could not be run", seed)]
    result.broken += broken
    if broken:
        print(out.decode("utf-8", "replace")[-6000:], flush=True)


def _line(name: str, result: Result) -> str:
    held = "all promises held" if result.runs else "not tried"
    broken = f"{len(result.broken)} promises broken" if result.broken else held
    cut = ", the last one cut off by the time" if result.unfinished else ""
    return f"{name:14} {result.runs:7} runs in {result.rounds} rounds   {broken}{cut}"


def main() -> int:
    """Attack, print the counts, and return 1 if a promise was broken."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--minutes", type=float, default=10)
    words.add_argument("--seed", type=int, help="run one round, the one with this seed")
    words.add_argument("--only", choices=CLASSES, action="append", help="only this class")
    given = words.parse_args()
    results = attack(given.only or [*CLASSES], given.minutes, given.seed)
    print("\nattacks:")
    for name, result in results.items():
        print(f"  {_line(name, result)}")
        for test, seed in result.broken:
            print(f"    {test}\n      python -m tools.attack --only {name!r} --seed {seed}")
    print(f"  {'all':14} {sum(result.runs for result in results.values()):7} runs")
    return 1 if any(result.broken for result in results.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
