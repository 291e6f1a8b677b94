"""Measure the CPU seconds per round of an idle watch.

    python -m benchmarks.watch [--used]

One process watches a home, as `hermes-doctor watch` does, with and without a running gateway; with
`--used`, the home of a bot which has worked for a month. The processes of the rounds are included.
Nothing changes in the measured rounds. Every second one is told to examine the home nevertheless,
so that other work on the machine slows both kinds. The bar is 60 ms for a round in which nothing
changed, which is 0.2 % of a core at a round every 30 seconds.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks import used_home
from benchmarks.timing import load
from hermes_doctor.cli import option_values
from hermes_doctor.core.home import Home
from hermes_doctor.operations.watch import assembly, what_changed
from hermes_doctor.operations.watch.events import WatchEvent
from hermes_doctor.operations.watch.rounds import Watch
from hermes_doctor.operations.watch.store import WatchStateFiles
from tests.helpers.real.gateways import gateway
from tools import real_home

RELEASE = "0.19.0"
WARM, PAIRS = 3, 20
PAUSE = 1.5
"""Seconds before each round, in which the gateway does what it always does."""
SETTLING = 5.0
"""Seconds until no file has been written just now."""
INTERVAL = 30.0
BAR = 0.060


class Cost(NamedTuple):
    """The median CPU seconds of a round of each kind."""

    quiet: float
    examination: float

    @property
    def share(self) -> float:
        """Return the share of one core at the usual interval."""
        each = INTERVAL / what_changed.FULL_EVERY
        return (self.quiet * (1 - each) + self.examination * each) / INTERVAL


def spent() -> float:
    """Return the CPU seconds of this process and of the children that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure(home: Path, state: Path) -> Cost:
    """Return the costs of the rounds of a watch after its first rounds."""
    plugins = option_values.load_plugins(None)
    checks, codes = option_values.select(plugins, [], [])
    wanted = assembly.WatchOptions(
        "30s", False, assembly.NotifyOptions("error", None, None, None), None
    )
    where = Home(home.resolve())
    watch = assembly.assemble(
        where, plugins, checks, codes, wanted, json=False, options="", page_options=""
    )
    watch.store = WatchStateFiles(where, state)
    watch.print_event = _silent
    assembly.use_child_processes(watch, plugins)
    for _ in range(WARM):
        _round(watch)
    time.sleep(SETTLING)
    costs: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * PAIRS + 1):
        examines = number % 2 == 0
        if examines:
            watch.forget_last_report()
        costs[examines].append(_round(watch))
    return Cost(statistics.median(costs[False]), statistics.median(costs[True]))


def _silent(_: WatchEvent) -> None:
    pass


def _round(watch: Watch) -> float:
    """Return the CPU seconds of one more round."""
    time.sleep(PAUSE)
    begun = spent()
    watch.round(begins=watch.rounds == 0)
    return spent() - begun


def main() -> int:
    """Measure and print; return 1 if the bar is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--used", action="store_true")
    asked = parser.parse_args()
    print(load())
    found: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        if asked.used:
            used_home.make(home, RELEASE)
        else:
            real_home.make(RELEASE, home)
        found["without a gateway"] = measure(home, Path(folder) / "one")
        with gateway(RELEASE, home):
            found[f"beside a gateway of {RELEASE}"] = measure(home, Path(folder) / "two")
    print(f"{'':<30} {'quiet':>8} {'examines':>10}  ratio   share of a core at {INTERVAL:g} s")
    for name, cost in found.items():
        row = f"{name:<30} {cost.quiet * 1000:>5.0f} ms {cost.examination * 1000:>7.0f} ms"
        print(f"{row}  {cost.quiet / cost.examination:>5.2f}   {cost.share:.2%}")
    return int(any(cost.quiet > BAR for cost in found.values()))


if __name__ == "__main__":
    sys.exit(main())
