"""Measure the cost of reading a small window of huge log files, and a huge window.

    python -m benchmarks.logs [--dense]

All as CPU time. Bars: with 5 GB of logs in the home `check` takes at most 1.2 times as long as with
5 MB; a window of 100 MB with all rules is read at no less than a third of the speed of `grep -cE`
with the same patterns joined. Files of 5 GB are sparse; with `--dense` they are full of lines.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.timing import in_turn
from hermes_doctor.home import Home
from hermes_doctor.logs.formats import Wanted
from hermes_doctor.logs.stream import QUICK, read
from hermes_doctor.plugins.load import builtin
from hermes_doctor.plugins.log_rules import folder as signatures, source
from hermes_doctor.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.plugins.log_rules.rule import Rule
from hermes_doctor.system.files import MEGABYTE
from tests.helpers import support

BAR, GREP_BAR = 1.2, 3.0
RULES = builtin("checks") / "signatures"
RUNS = 15
SMALL, LARGE = 5 * MEGABYTE, 5 * 1024 * MEGABYTE
WINDOW = 7200.0
_NAMES = ("gateway.log", "errors.log", "agent.log", "gateway-exit-diag.log")
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


def diary(start: float, count: int, apart: float) -> bytes:
    """Return this many entries of the exit diary."""
    said = []
    for n in range(count):
        at = datetime.fromtimestamp(start + n * apart, UTC).isoformat()
        facts = f'"pid": {n}, "python": "3.11.7", "platform": "linux", "success": false'
        said.append(f'{{"ts": "{at}", "tag": "asyncio.run.returned", {facts}}}\n')
    return "".join(said).encode()


def fill(home: Path, size: int, dense: bool) -> None:
    """Write logs of this total size, of which only the last two hours are recent."""
    now = time.time()
    for name in _NAMES:
        made = diary if "diag" in name else lines
        old = made(now - 30 * 86400, 20_000, 0.01)
        new = made(now - WINDOW, 2000, WINDOW / 2000)
        with (home / "logs" / name).open("wb") as file:
            rest = size // len(_NAMES) - len(new)
            if dense:
                while file.tell() < rest:
                    file.write(old[: rest - file.tell()])
            else:
                for start in range(0, rest, max(rest // 20, len(old))):
                    file.seek(start)
                    file.write(old[: rest - start])
                file.truncate(rest)
                file.seek(rest)
            file.write(b"\n" + new)


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of a function call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def drain(home: Path, most: int | None, since: float, wanted: Wanted | None = None) -> int:
    """Read a window to its end."""
    found = read(Home(home), since=since, max_bytes=most, whole=True, wanted=wanted)
    return sum(1 for _ in found)


def windows(folder: Path, dense: bool) -> float:
    """Return how much longer 5 GB takes than 5 MB; the worse of reading and checking."""
    homes = []
    for size in (SMALL, LARGE):
        home = support.healthy(folder / f"home-{size}")
        fill(home, size, dense)
        (home / ".env").chmod(0o644)  # huge logs are a finding; the first one loads the fixes
        homes.append(home)
    since = time.time() - WINDOW
    costs: list[list[float]] = [[], []]
    for _ in range(RUNS):
        for home, found in zip(homes, costs, strict=True):
            found.append(seconds(lambda home=home: drain(home, QUICK, since)))  # type: ignore[misc]
    small, large = map(statistics.median, costs)
    tool = [sys.executable, "-m", "hermes_doctor", "check", "--home"]
    checks = in_turn([[*tool, str(home)] for home in homes], RUNS, dict(os.environ))
    print(f"{'':<26} {'5 MB':>9} {'5 GB':>9} {'ratio':>7}")
    print(
        f"{'reading two hours':<26} {small * 1000:>6.1f} ms {large * 1000:>6.1f} ms "
        f"{large / small:>6.2f}x"
    )
    ratio = checks[1].cpu / checks[0].cpu
    print(
        f"{'check':<26} {checks[0].cpu * 1000:>6.0f} ms {checks[1].cpu * 1000:>6.0f} ms "
        f"{ratio:>6.2f}x  (bar: at most {BAR:g})"
    )
    return max(ratio, large / small)


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
    asked: list[tuple[str, Wanted | None]] = [("all of it", None)]
    asked.append(("warnings only", lambda level, _: level != "INFO"))
    works: list[tuple[str, Callable[[], object]]] = [
        (name, lambda w=wanted: drain(home, None, 0, w))  # type: ignore[misc]
        for name, wanted in asked
    ]
    works.append(("with all rules", lambda: judge(home, rules, now)))
    took = 0.0
    for name, work in works:
        took = min(seconds(work) for _ in range(3))
        print(f"{size / 1e6:.0f} MB, {name:<17} {took:>6.2f} s  {size / 1e6 / took:>5.0f} MB/s")
    beside, count = grep(rules, log, folder / "patterns")
    print(f"{size / 1e6:.0f} MB, grep -cE          {beside:>6.2f} s  {count} patterns joined")
    print(f"{'rules against grep':<26} {took / beside:>6.2f}x  (bar: at most {GREP_BAR:g})")
    return took / beside


def judge(home: Path, rules: Sequence[Rule], now: float) -> int:
    """Do everything that a check does with a log, without a size limit."""
    ledger = IncidentTracker([rule._replace(window=30 * 86400.0) for rule in rules], now=now)
    found = read(Home(home), since=ledger.since(), max_bytes=None, wanted=ledger.wanted)
    for entry in found:
        ledger.add_entry(entry)
    return len(ledger.incidents())


def grep(rules: Sequence[Rule], log: Path, place: Path) -> tuple[float, int]:
    """Return grep's CPU time with the patterns of all rules that it supports, and their number."""
    environ = {**os.environ, "LC_ALL": "C"}
    every = [line.pattern for r in rules for line in (r.line, r.followed_by, *r.cleared_by) if line]
    known = [text for one in dict.fromkeys(every) if (text := _extended(one))]
    place.write_text("|".join(known))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["grep", "-cE", "-f", str(place), str(log)]
    subprocess.run(command, env=environ, capture_output=True)  # grep does not count into /dev/null
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, len(known)


def _extended(pattern: str) -> str | None:
    """Return a pattern in grep's syntax; None if grep does not support it."""
    text = re.sub(r"\(\?P<\w+>|\(\?:", "(", pattern).replace(r"[^\]", "[^]").replace(r"\d", "[0-9]")
    text = re.sub(r"(^|\||\()\^", r"\1: ", text)  # the start of a message
    if "(?" in text or re.search(r"[*+?}][?+]", text):
        return None
    done = subprocess.run(["grep", "-cE", text], input="", capture_output=True, text=True)
    return text if done.returncode < 2 else None


def main() -> int:
    """Measure, print the tables, and fail when the bar is missed."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    try:
        ratio = windows(folder, "--dense" in sys.argv[1:])
        beside = throughput(folder)
    finally:
        shutil.rmtree(folder)
    return int(ratio > BAR or beside > GREP_BAR)


if __name__ == "__main__":
    sys.exit(main())
