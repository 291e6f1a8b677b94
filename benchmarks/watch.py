"""Measure the CPU seconds per round of an idle watch.

    python -m benchmarks.watch

One process watches a home, as `hermes-doctor watch` does, with and without a running gateway. The
processes that examine are included. Nothing changes in the measured rounds. The bar is 60 ms per
round, which is 0.2 % of a core at a round every 30 seconds.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.timing import load
from hermes_doctor.cli import shared_options
from hermes_doctor.home import Home
from hermes_doctor.watch import assembly
from hermes_doctor.watch.events import WatchEvent
from hermes_doctor.watch.rounds import Watch
from hermes_doctor.watch.store import WatchStateFiles
from tests.helpers.real.gateways import gateway
from tools import real_home

RELEASE = "0.19.0"
WARM, ROUNDS = 5, 20
INTERVAL = 30.0
BAR = 0.060


class Cost(NamedTuple):
    """The cost of one round."""

    processor: float
    wall: float

    @property
    def share(self) -> float:
        """Return the share of one core at the usual interval."""
        return self.processor / INTERVAL


def spent() -> float:
    """Return the CPU seconds of this process and of the children that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure(home: Path, state: Path) -> Cost:
    """Return the cost of a round of a watch after its first rounds."""
    plugins = shared_options.load_plugins(None)
    checks, codes = shared_options.select(plugins, [], [])
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
    _rounds(watch, WARM)
    begun, clock = spent(), time.monotonic()
    _rounds(watch, ROUNDS)
    return Cost((spent() - begun) / ROUNDS, (time.monotonic() - clock) / ROUNDS)


def _silent(_: WatchEvent) -> None:
    pass


def _rounds(watch: Watch, count: int) -> None:
    for _ in range(count):
        watch.round(begins=watch.rounds == 0)


def main() -> int:
    """Measure and print; return 1 if the bar is missed."""
    print(load())
    found: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        real_home.make(RELEASE, home)
        found["without a gateway"] = measure(home, Path(folder) / "one")
        with gateway(RELEASE, home):
            found[f"beside a gateway of {RELEASE}"] = measure(home, Path(folder) / "two")
    print(f"{'':<30} {'processor':>10} {'wall':>8}   share of a core at {INTERVAL:g} s")
    for name, cost in found.items():
        print(f"{name:<30} {cost.processor:>8.3f} s {cost.wall:>6.3f} s   {cost.share:.2%}")
    return int(any(cost.processor > BAR for cost in found.values()))


if __name__ == "__main__":
    sys.exit(main())
