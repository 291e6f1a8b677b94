"""Measure how often the cause and the place of a log entry are named that nobody has read before.

    python -m benchmarks.cause_reading                     the log rules, all releases
    python -m benchmarks.cause_reading --reader MODULE     MODULE has a function read(entry)
    python -m benchmarks.cause_reading 0.19.0 --misses 10  one release; its most frequent misses

The entries come from `benchmarks.cause_corpus`. A reader is a function `read(entry)` that returns
(place, operation, cause, outcome). A place is `part:name`, such as `platform:telegram` or
`cron:scheduled jobs`; a cause is a name as in benchmarks/real_errors.py, empty if there
is none, and several with `|` between them if the reader cannot decide. Misses are shown only of
entries that are not held out. Bars: the cause is named in 95 % of the entries (held out: 90 %), the
place in 98 % (90 %), and something else is blamed in less than 1 %.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.cause_corpus import Made, corpus, entries, real_errors
from hermes_doctor.hermes.knowledge.logging_calls import known_releases
from hermes_doctor.hermes.logs.entry import LogEntry

SEED = 32
NOTHING = "nothing"
"""Among the causes of an entry: its text is so short that it need not be understood."""
READER = "benchmarks.cause_by_rule"
Reader = Callable[[LogEntry], tuple[str, str, str, str]]


BARS = {
    ("cause", False): (0.95, 2.0),
    ("cause", True): (0.9, 2.0),
    ("place", False): (0.98, 2.0),
    ("place", True): (0.9, 2.0),
    ("blame", False): (0.0, 0.01),
}
"""The share of entries of each part must be at least the first number and below the second."""


class Verdict(NamedTuple):
    """How an entry was read."""

    cause: bool
    place: bool
    blame: bool
    """Whether another cause was named."""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure how well causes are named.")
    parser.add_argument("version", nargs="*", help="releases; all if none is named")
    parser.add_argument("--reader", default=READER, help="a module with a function read(entry)")
    parser.add_argument("--per-call", type=int, default=3, help="errors for each logging call")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--misses", type=int, default=0, help="how many kinds of misses to list")
    given = parser.parse_args()
    reader: Reader = importlib.import_module(given.reader).read
    print(f"seed {given.seed}, {given.per_call} errors for each call, reader {given.reader}")
    print(f"{'release':<9}{'errors':>7}{'entries':>9}{'cause named':>20}{'place named':>20}"
          f"{'wrong blame':>20}")  # fmt: skip
    print(f"{'':<9}{'':>7}{'':>9}{'   seen   held out' * 3}")
    total: list[tuple[Made, Verdict]] = []
    misses: Counter[tuple[str, str, str]] = Counter()
    spent = 0.0
    for version in given.version or known_releases():
        made = list(corpus(version, given.seed, given.per_call))
        with tempfile.TemporaryDirectory() as folder:
            read = entries(made, Path(folder))
        start = time.process_time()
        answers = [reader(entry) for entry in read]
        spent += time.process_time() - start
        judged = []
        for one, answer in zip(made, answers, strict=True):
            verdict = judge(one, answer)
            judged.append((one, verdict))
            if not one.held_out:
                for kind in kinds_of_miss(one, answer, verdict):
                    misses[kind] += 1
        print(line(version, len(real_errors(version)[0]), judged))
        total += judged
    print(line("all", 0, total))
    print(f"{1e6 * spent / max(1, len(total)):.0f} µs for each entry")
    missed = missed_bars(total)
    for lost in real_errors(version)[1]:
        print(f"not raised here: {lost}")
    for (what, true, said), count in misses.most_common(given.misses):
        print(f"{count:>6}  {what}: {true} read as {said or 'nothing'}")
    print("\n".join(missed))
    return int(bool(missed))


def missed_bars(judged: Sequence[tuple[Made, Verdict]]) -> list[str]:
    """Say which bars the answers miss."""
    found = []
    for (name, held_out), (low, high) in BARS.items():
        these = [getattr(said, name) for made, said in judged if made.held_out is held_out]
        share = sum(these) / len(these) if these else low
        if not low <= share < high:
            part = "held out" if held_out else "seen"
            found.append(f"missed a bar: {name}, {part}: {100 * share:.1f} %")
    return found


def judge(made: Made, answer: tuple[str, str, str, str]) -> Verdict:
    """Compare what was read with what is true."""
    place, _, cause, _ = answer
    said = set(cause.split("|")) - {""}
    right = bool(said & made.causes) if said else not made.causes or NOTHING in made.causes
    part, _, name = place.partition(":")
    if made.place.platform:
        there = (part, name) == ("platform", made.place.platform)
    else:
        there = part in made.place.parts
    return Verdict(right, there, bool(said) and not right)


def kinds_of_miss(
    made: Made, answer: tuple[str, str, str, str], verdict: Verdict
) -> list[tuple[str, str, str]]:
    """Name what was read wrongly, so that the same kinds can be counted."""
    found = []
    if not verdict.cause:
        true = "|".join(sorted(made.causes)) or "no cause"
        found.append(("cause", f"{true} ({made.error.name}, {made.error.type})", answer[2]))
    if not verdict.place:
        true = made.place.platform or "/".join(sorted(made.place.parts))
        found.append(("place", f"{true} in {made.call.file}", answer[0]))
    return found


def line(version: str, errors: int, judged: Sequence[tuple[Made, Verdict]]) -> str:
    """Return a line of the table."""
    text = f"{version:<9}{errors or '':>7}{len(judged):>9}"
    for field in Verdict._fields:
        for held_out in (False, True):
            these = [getattr(said, field) for made, said in judged if made.held_out is held_out]
            share = f"{100 * sum(these) / len(these):.1f} %" if these else "-"
            text += f"{share:>{11 if held_out else 9}}"
    return text


if __name__ == "__main__":
    sys.exit(main())
