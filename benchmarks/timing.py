"""Measure commands in turn: CPU time of the process and of everything it started."""

from __future__ import annotations

import ctypes
import os
import resource
import statistics
import subprocess
import tempfile
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
    """Return our environment, in which Python buffers output and writes bytecode, as usual."""
    unusual = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if name not in unusual}
    return kept | extra


def once(command: Sequence[str], environ: Mapping[str, str], *, must: bool = False) -> Cost:
    """Return the cost of one run, with that of all processes which it leaves behind.

    With `must`, a command that fails is an error.
    """
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    others = _ours()
    before, start = _used(), time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        process.wait()
        wall = time.perf_counter() - start
        while orphans := _ours() - others:
            for pid in orphans:
                os.waitpid(pid, 0)
        errors.seek(0)
        if must and process.returncode:
            raise RuntimeError(f"{' '.join(command)} failed with exit code {process.returncode}")
        _refuse_failure(command, process.returncode, errors.read())
    return Cost(wall, _used() - before)


def _refuse_failure(command: Sequence[str], code: int, errors: bytes) -> None:
    """Raise if the command did not do its work; 1 is also the exit code for problems found."""
    if code not in (0, 1) or b"Traceback (most recent call last)" in errors:
        said = errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise RuntimeError(f"{' '.join(command)} failed with exit code {code}: {said}")


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
    cpu, spread = middle([cost.cpu for cost in costs])
    return Cost(statistics.median(cost.wall for cost in costs), cpu, spread)


def middle(values: Sequence[float]) -> tuple[float, float]:
    """Return the median, and the range in which the middle half of the values lies."""
    quarters = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    return statistics.median(values), quarters[2] - quarters[0]


def load() -> str:
    """Return how busy the machine is, to be printed with every result."""
    return f"{os.getloadavg()[0]:.1f} of {os.cpu_count()} cores are busy"
