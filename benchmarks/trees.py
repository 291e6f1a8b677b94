"""Compare the cost of `check` in several source trees, on a used home with a running gateway.

    python -m benchmarks.trees [--runs 40] OTHER_TREE...

The first row is this tree. The trees take turns, in another order each time, so that other work on
the machine affects all of them. To measure what a start-up trick saves, copy this tree, replace the
trick in the copy, and compare the two. The docstring of each such trick states its figure.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks import used_home
from benchmarks.startup import RELEASE
from benchmarks.timing import environment, load, once
from tests.helpers.real.gateways import gateway

START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from hermes_doctor.__main__ import main; main()"
)


def measured(trees: list[Path], home: Path, runs: int) -> list[list[float]]:
    """Return the CPU milliseconds of each run by tree; the first two rounds write the bytecode."""
    environ = environment(HERMES_HOME=str(home), HOME=str(home.parent))
    found: list[list[float]] = [[] for _ in trees]
    for number in range(runs + 2):
        for at in random.sample(range(len(trees)), len(trees)):
            command = [sys.executable, "-P", "-c", START, str(trees[at]), "check"]
            cost = once(command, environ)
            if number >= 2:
                found[at].append(cost.cpu * 1000)
    return found


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("trees", type=Path, nargs="*")
    asked = parser.parse_args()
    trees = [Path(__file__).parent.parent, *(tree.absolute() for tree in asked.trees)]
    print(load())
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o700)
    try:
        home = used_home.make(folder / "home", RELEASE)
        with gateway(RELEASE, home):
            found = measured(trees, home, asked.runs)
    finally:
        shutil.rmtree(folder)
    print(f"{'lowest':>10} {'median':>10} {'more than the first':>20} {'ratio':>6}  tree")
    first = statistics.median(found[0])
    for tree, costs in zip(trees, found, strict=True):
        more = statistics.median(b - a for a, b in zip(found[0], costs, strict=True))
        middle = statistics.median(costs)
        row = f"{min(costs):>7.1f} ms {middle:>7.1f} ms {more:>+17.1f} ms {middle / first:>6.3f}"
        print(f"{row}  {tree}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
