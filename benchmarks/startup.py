"""Compare `check`, `--version`, `--help` and `explain` with a bare interpreter and `hermes doctor`.

    python -m benchmarks.startup [--runs 20]

Everything runs in turn, and CPU time includes all child processes. Three homes: an unused one; a
used one (a month of sessions and logs, a state.db of 40 MB) with the gateway stopped; the same with
a real gateway running. Bars: on each of them `check` is at least 10 times faster than `hermes
doctor`; it loads at most 260 of our modules; `--version`, `--help` and `explain` take at most 6
times as long as a bare interpreter; `watch --once` takes at most 1.2 times as long as `check`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks import used_home
from benchmarks.timing import Cost, environment, in_turn, load
from tests.helpers.real.gateways import gateway
from tools import real_home, releases

RELEASE = "0.19.0"
UNUSED = "unused"
SHORT_BAR = 6.0
FASTER_BAR = 10.0
WATCH_BAR = 1.2
MODULES_BAR = 260
TOOL = [sys.executable, "-m", "hermes_doctor"]
SHORT = ("--version", "--help", "explain GW-DOWN")


@contextmanager
def homes() -> Iterator[Iterator[tuple[str, Path]]]:
    """Make the three homes one after the other; the gateway of the last one runs until the end."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o700)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)

        def each() -> Iterator[tuple[str, Path]]:
            yield UNUSED, real_home.make(RELEASE, folder / "unused" / "home")
            used = used_home.make(folder / "used" / "home", RELEASE)
            yield "used, gateway stopped", used
            stack.enter_context(gateway(RELEASE, used))
            yield "used, gateway running", used

        yield each()


def show(name: str, cost: Cost, least: Cost) -> None:
    """Print one line of the table."""
    print(
        f"  {name:<24} {cost.wall * 1000:>7.0f} ms {cost.cpu * 1000:>7.0f} ms "
        f"± {cost.spread * 500:>3.0f} {cost.cpu / least.cpu:>7.1f}x",
        flush=True,
    )


def start_up(runs: int) -> float:
    """Measure the commands that look at no home; return the worst ratio to a bare interpreter."""
    commands = [[sys.executable, "-c", "pass"], *([*TOOL, *words.split()] for words in SHORT)]
    bare, *found = in_turn(commands, runs, environment(HOME=tempfile.gettempdir()))
    show("python -c pass", bare, bare)
    for words, cost in zip(SHORT, found, strict=True):
        show(words, cost, bare)
    return max(cost.cpu / bare.cpu for cost in found)


def compared(name: str, home: Path, runs: int) -> tuple[float, float]:
    """Return how many times faster `check` is, and how much of a `check` `watch --once` costs.

    `hermes doctor` writes while it looks: after its first run, an unused home has logs and is no
    longer unused. So it gets a copy of that home.
    """
    environ = environment(HERMES_HOME=str(home), HOME=str(home.parent))
    theirs = [str(releases.python_of(RELEASE).parent / "hermes"), "doctor"]
    if name == UNUSED:
        copy = shutil.copytree(home, home.parent / "theirs" / "home")
        theirs = ["env", f"HERMES_HOME={copy}", f"HOME={copy.parent}", *theirs]
    print(f"{name} home", flush=True)
    few = max(3, runs // 4)
    slow, check = in_turn([theirs, [*TOOL, "check"]], few, environ)
    check, watch = in_turn([[*TOOL, "check"], [*TOOL, "watch", "--once"]], runs, environ)
    show("hermes-doctor check", check, check)
    show("hermes-doctor watch --once", watch, check)
    show(f"hermes doctor ({RELEASE})", slow, check)
    return slow.cpu / check.cpu, watch.cpu / check.cpu


def loaded_modules(home: Path) -> int:
    """Return how many of our modules, also checks, a `check` of this home loads."""
    environ = environment(HERMES_HOME=str(home), HOME=str(home.parent))
    command = [sys.executable, "-v", *TOOL[1:], "check"]  # -v: say what is imported
    told = subprocess.run(command, env=environ, capture_output=True, text=True).stderr
    return len(set(re.findall(r"^import '(hermes_doctor[\w.]*)'", told, re.MULTILINE)))


def main() -> int:
    """Measure, print the table, and fail when a bar is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    print(f"{load()}; CPU time of all processes, median ± half of the middle half")
    print(f"  {'':<24} {'wall':>10} {'cpu':>10} {'':>5} {'ratio':>8}")
    missed = []
    short = start_up(runs)
    missed.append(short > SHORT_BAR)
    results = [f"short commands: at most {short:.1f} times a bare interpreter (bar {SHORT_BAR:g})"]
    with homes() as made:
        for name, home in made:
            faster, watch = compared(name, home, runs)
            modules = loaded_modules(home)
            missed += [faster < FASTER_BAR, watch > WATCH_BAR, modules > MODULES_BAR]
            results.append(
                f"{name}: check is {faster:.1f} times faster than hermes doctor "
                f"(bar {FASTER_BAR:g}), "
                f"watch --once costs {watch:.2f} of a check (bar {WATCH_BAR:g}), "
                f"check loads {modules} of our modules (bar {MODULES_BAR})"
            )
    print("\n".join(results))
    return int(any(missed))


if __name__ == "__main__":
    sys.exit(main())
