"""Measure the memory and the CPU time of a watch over many rounds, beside a running gateway.

    python -m benchmarks.watch_memory [--rounds 1000] [--used]

Starts `hermes-doctor watch` as a process, with a round every two seconds. With `--used`, the home
is that of a bot which has worked for a month. In the table:

- watch: the resident memory of the watch between two rounds (RSS);
- peak: the most that the watch and all processes of a round had together since the row before,
  pages that they share counted once (PSS), sampled about every 10 ms;
- processor: the CPU time of a round, processes included; the median since the row before.

At the end, rounds of the watch and examinations in this process take turns, so that other work on
the machine slows both.

Bars: a peak below 60 MB, the same memory of the watch from round 50 on, and at most 60 ms of CPU
for a round from round 13 on. The gateway writes what it always writes, such as its heartbeat; else
nothing changes. Other work on the machine makes rounds longer: read the ratio at the end. Gateways
of other tests change what a round sees: `unshare --pid --fork --mount-proc` hides them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import used_home
from benchmarks.memory import _family, _memory
from benchmarks.timing import environment, load
from hermes_doctor.cli import option_values
from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.examination import report
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers.real.gateways import gateway
from tools import real_home

RELEASE = "0.19.0"
ROWS = (1, 13, 50, 300, 1000)
BAR = 60 << 20
QUIET, SETTLED = 60, 13
"""Milliseconds of CPU for a round in which nothing changed, and from which round on."""
FLAT = 1 << 20
"""Bytes by which the memory of the watch may differ from round 50 on."""
INTERVAL = "2s"
OFTEN = 0.01
IDLE = 20
"""So many looks in a row, 10 ms apart, at which the watch does nothing: its round is over."""
PAIRS = 20
TICKS = os.sysconf("SC_CLK_TCK")


class Sampler(threading.Thread):
    """Samples the memory of a process and of its children together."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peak, self.ended = pid, 0, False

    def run(self) -> None:
        while not self.ended:
            pids = [*_family(self.pid)]
            if len(pids) > 1:  # in the middle of a round
                self.peak = max(self.peak, sum(_memory(pid)[1] for pid in pids))
            time.sleep(OFTEN)


def spent(pid: int) -> float:
    """Return the CPU seconds of a process and of the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


@contextlib.contextmanager
def watching(home: Path, state: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a watch with a short interval."""
    command = [sys.executable, "-m", "hermes_doctor", "watch", "--interval", INTERVAL]
    command += ["--home", str(home)]
    environ = environment(XDG_STATE_HOME=str(state))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environ)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def await_round(process: subprocess.Popen[bytes], state: Path, before: int) -> int:
    """Wait until the watch has saved its state and is idle; return when it saved it last.

    A round saves more than once, and what it does after that belongs to it.
    """
    saved, idle, used = before, 0, 0.0
    while process.poll() is None and (saved == before or idle < IDLE):
        time.sleep(0.01)
        files = (state / "hermes-doctor").glob("watch-*.json")
        now = max((file.stat().st_mtime_ns for file in files), default=0)
        spends = spent(process.pid)
        works = now > saved or spends > used or len([*_family(process.pid)]) > 1
        saved, used, idle = now, spends, 0 if works else idle + 1
    if process.poll() is None:
        return saved
    raise RuntimeError(f"the watch ended with exit code {process.returncode}")


def measure(home: Path, state: Path, rounds: int) -> bool:
    """Print a row for some rounds; return whether a bar is missed."""
    print(f"{'round':>6} {'watch':>8} {'peak':>8} {'processor':>10}")
    missed, steady = False, 0
    with watching(home, state) as process:
        sampler = Sampler(process.pid)
        sampler.start()
        costs: list[float] = []
        saved, used = 0, 0.0
        for number in range(1, rounds + 1):
            saved = await_round(process, state, saved)
            now = spent(process.pid)
            costs.append(now - used)
            used = now
            if number in ROWS or number == rounds:
                rss = _memory(process.pid)[0]
                cost = statistics.median(costs) * 1000
                row = f"{number:>6} {rss / 2**20:>5.1f} MB {sampler.peak / 2**20:>5.1f} MB"
                print(f"{row} {cost:>7.0f} ms", flush=True)
                missed |= sampler.peak > BAR or (number >= SETTLED and cost > QUIET)
                if number >= 50:
                    steady = steady or rss
                    missed |= abs(rss - steady) > FLAT
                sampler.peak, costs = 0, []
        sampler.ended = True
        sampler.join()
        compare(process, home, state, saved)
    return missed


def compare(process: subprocess.Popen[bytes], home: Path, state: Path, saved: int) -> None:
    """Print the cost of a round of the watch, and that of an examination in this process."""
    plugins = option_values.load_plugins(None)
    apart, here = [], []
    for number in range(PAIRS + 1):
        before = spent(process.pid)
        saved = await_round(process, state, saved)
        between, begun = spent(process.pid), time.process_time()
        probes = Probes(Home(home), paid_requests=False)
        report.report(probes, plugins, plugins.checks)
        probes.close()
        if number:  # the first one loads everything
            apart.append(between - before)
            here.append(time.process_time() - begun)
    ours, other = statistics.median(apart) * 1000, statistics.median(here) * 1000
    print(
        f"a round of the watch {ours:.0f} ms, an examination in one process {other:.0f} ms", end=""
    )
    print(
        f", ratio {ours / other:.2f}; lowest {min(apart) * 1000:.0f} and {min(here) * 1000:.0f} ms"
    )


def main() -> int:
    """Measure and print; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--used", action="store_true")
    asked = parser.parse_args()
    print(load())
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        if asked.used:
            used_home.make(home, RELEASE)
        else:
            real_home.make(RELEASE, home)
        with gateway(RELEASE, home):
            missed = measure(home.resolve(), Path(folder) / "state", asked.rounds)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
