"""Measure commands in turn: CPU time of the process and of everything it started."""

from __future__ import annotations

import ctypes
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil

_SUBREAPER = 36
"""The option of prctl(2) that gives us the orphans of the processes that we start."""


@dataclass(frozen=True)
class Cost:
    """The seconds of one run, or the medians of several and the spread of their CPU time."""

    wall: float
    cpu: float
    spread: float = 0.0
    """The middle half of the runs lies within this many seconds of CPU time."""


def environment(**extra: str) -> dict[str, str]:
    """Return our environment, in which Python may write bytecode as it does for users."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return kept | extra


def once(command: Sequence[str], environ: Mapping[str, str]) -> Cost:
    """Return the cost of one run, with that of all processes which it leaves behind."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    others = _ours()
    before, start = _used(), time.perf_counter()
    process = subprocess.Popen(
        command,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    process.wait()
    wall = time.perf_counter() - start
    while orphans := _ours() - others:
        for pid in orphans:
            os.waitpid(pid, 0)
    return Cost(wall, _used() - before)


def _ours() -> set[int]:
    """Return the processes whose parent we are, including orphans that became ours."""
    return {child.pid for child in psutil.Process().children()}


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def in_turn(commands: Sequence[Sequence[str]], runs: int, environ: Mapping[str, str]) -> list[Cost]:
    """Return the cost of each, run in turn so that other work affects all equally.

    The first round is not counted: it writes bytecode and fills the caches of the kernel.
    """
    found: list[list[Cost]] = [[] for _ in commands]
    for _ in range(runs + 1):
        for costs, command in zip(found, commands, strict=True):
            costs.append(once(command, environ))
    return [_middle(costs[1:]) for costs in found]


def _middle(costs: Sequence[Cost]) -> Cost:
    used = [cost.cpu for cost in costs]
    quarters = statistics.quantiles(used, n=4) if len(used) > 1 else [used[0]] * 3
    return Cost(
        statistics.median(cost.wall for cost in costs),
        statistics.median(used),
        quarters[2] - quarters[0],
    )


def load() -> str:
    """Return how busy the machine is, to be printed with every result."""
    return f"{os.getloadavg()[0]:.1f} of {os.cpu_count()} cores are busy"
