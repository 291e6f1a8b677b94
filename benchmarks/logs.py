"""Compare the speed of reading a large window of logs with all rules with that of `grep`.

    python -m benchmarks.logs

All as CPU time, in turn. Bars: a window of 100 MB with all rules is read at no less than a third of
the speed of `grep -cE` with the same patterns joined; on a used home, a process that judges the
logs with all rules and causes, loading them included, takes at most 1.8 times the CPU of one that
only reads the same entries. How `check` scales with the size of the logs
is measured by `benchmarks.scale`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import judge_logs, used_home
from benchmarks.timing import environment, in_turn, load, middle, once
from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_rules import folder as signatures, source
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.diagnosis.plugins.log_rules.rule import Rule
from hermes_doctor.hermes.logs.entry import Wanted
from hermes_doctor.hermes.logs.stream import read
from tests.helpers import support

BAR = 3.0
RUNS = 3
USED_BAR, USED_RUNS = 1.8, 30
RELEASE = "0.19.0"
RULES = builtin("checks") / "signatures"
_TRACEBACK = """Traceback (most recent call last):
  File "/opt/hermes/lib/python3.11/site-packages/gateway/run.py", line 7860, in _connect
    await adapter.connect()
  File "/opt/hermes/lib/python3.11/site-packages/httpx/_transports/default.py", line 118
    raise mapped_exc(message) from exc
httpx.ConnectError: All connection attempts failed
"""


def lines(start: float, count: int, apart: float) -> bytes:
    """Return this many entries of a busy gateway, with occasional tracebacks."""
    said = []
    for n in range(count):
        at = datetime.fromtimestamp(start + n * apart, UTC)
        head = f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}"
        session = f" [20261115_{n // 50:06}_df794ef7]" if n % 3 == 0 else ""
        level = "WARNING" if n % 20 == 0 else "INFO"
        said.append(
            f"{head} {level}{session} gateway.platforms.qqbot.adapter: [QQBot:102000001] "
            f"inbound message: platform=qqbot user=U{n % 97} chat=dm len={n % 1000} number={n}\n"
        )
        if n % 100 == 0:
            said.append(_TRACEBACK)
    return "".join(said).encode()


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of a function call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def drain(home: Path, wanted: Wanted | None) -> int:
    """Read all logs to their end."""
    return sum(1 for _ in read(Home(home), since=0, max_bytes=None, whole=True, wanted=wanted))


def throughput(folder: Path) -> float:
    """Return how much longer a window of 100 MB takes with all rules than with grep."""
    home = support.healthy(folder / "home-window")
    log = home / "logs" / "gateway.log"
    now = time.time()
    rules = signatures.read_source(RULES).rules
    said = [text for one in source.read(RULES).samples for text in (*one.examples, *one.near)]
    with log.open("wb") as file:
        for n in range(200):
            at = datetime.fromtimestamp(now - 28_000 + n * 100, UTC)
            file.write(lines(at.timestamp(), 2000, 0.01))
            for text in said:
                file.write(f"{at:%Y-%m-%d %H:%M:%S},000{text[23:]}\n".encode())
    size = log.stat().st_size
    command, count = grep_command(rules, log, folder / "patterns")
    works: dict[str, Callable[[], float]] = {
        "all of it": lambda: seconds(lambda: drain(home, None)),
        "warnings only": lambda: seconds(lambda: drain(home, lambda level, _: level != "INFO")),
        "with all rules": lambda: seconds(lambda: judge(home, rules, now)),
        f"grep, {count} patterns": lambda: once(command, environment(LC_ALL="C")).cpu,
    }
    costs: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(RUNS):
        for name, work in works.items():
            costs[name].append(work())
    for name, found in costs.items():
        took, spread = middle(found)
        speed = size / 1e6 / took
        print(
            f"{size / 1e6:.0f} MB, {name:<18} {took:>6.2f} s ± {spread / 2:.2f} {speed:>5.0f} MB/s"
        )
    *_, ours, theirs = (middle(found)[0] for found in costs.values())
    print(f"rules against grep: {ours / theirs:.2f}x (bar: at most {BAR:g})")
    return ours / theirs


def judge(home: Path, rules: Sequence[Rule], now: float) -> int:
    """Do everything that a check does with a log, without a size limit."""
    ledger = IncidentTracker([rule._replace(window=30 * 86400.0) for rule in rules], now=now)
    found = read(
        Home(home), since=ledger.needed.since(), max_bytes=None, wanted=ledger.needed.wanted
    )
    for entry in found:
        ledger.add_entry(entry)
    return len(ledger.incidents())


def used(folder: Path) -> float:
    """Return how much longer it takes to judge the logs of a used home than to read them."""
    home = used_home.make(folder / "home-used", RELEASE)
    judge_them = [sys.executable, "-m", "benchmarks.judge_logs", str(home)]
    only_read = [*judge_them, json.dumps(judge_logs.selection(Home(home)))]
    reading, judging = in_turn([only_read, judge_them], USED_RUNS, environment())
    print(
        f"a used home: read {reading.cpu * 1000:.0f} ms, judged {judging.cpu * 1000:.0f} ms: "
        f"{judging.cpu / reading.cpu:.2f}x (bar: at most {USED_BAR:g})"
    )
    return judging.cpu / reading.cpu


def grep_command(rules: Sequence[Rule], log: Path, place: Path) -> tuple[list[str], int]:
    """Return a grep for the patterns of all rules that it supports, and their number.

    Its output goes to a pipe, because it stops at the first match if nobody reads it.
    """
    every = [line.pattern for r in rules for line in (r.line, r.followed_by, *r.cleared_by) if line]
    known = [text for one in dict.fromkeys(every) if (text := _extended(one))]
    place.write_text("|".join(known))
    return ["sh", "-c", 'grep -cE -f "$1" "$2" | cat', "sh", str(place), str(log)], len(known)


def _extended(pattern: str) -> str | None:
    """Return a pattern in grep's syntax; None if grep does not support it."""
    text = re.sub(r"\(\?P<\w+>|\(\?:", "(", pattern).replace(r"[^\]", "[^]").replace(r"\d", "[0-9]")
    text = re.sub(r"(^|\||\()\^", r"\1: ", text)  # the start of a message
    if "(?" in text or re.search(r"[*+?}][?+]", text):
        return None
    done = subprocess.run(["grep", "-cE", text], input="", capture_output=True, text=True)
    return text if done.returncode < 2 else None


def main() -> int:
    """Measure, print the table, and fail when the bar is missed."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    print(load())
    try:
        missed = used(folder) > USED_BAR
        return int(throughput(folder) > BAR or missed)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
