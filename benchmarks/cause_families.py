"""Measure what is named of each platform's failures without the log rules about that platform.

    python -m benchmarks.cause_families              all platforms
    python -m benchmarks.cause_families qqbot -v     one, with the lines whose cause is not named

The cases are the example lines of the rules of a platform that report at least a warning, each
written three times within 20 minutes. All rules about the platform are removed; the tables of
causes and places and the rules about other things must still say what fails, and why:

    place       the line is read as one of the platform
    reported    a finding of at least a warning is about the platform
    cause       the rule names a reason, and the cause that is read means the same
    other       another cause is read
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_causes import table_source
from hermes_doctor.diagnosis.plugins.log_causes.reading import Place
from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.diagnosis.plugins.log_rules.rule import Rule
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers import rule_lines

SIGNATURES = builtin("checks") / "signatures"
NOW = 1_800_000_000.0
AGO = (1500.0, 900.0, 300.0)
"""When the line is written, in seconds before now."""


class Case(NamedTuple):
    """A line that a rule of a platform describes."""

    rule: Rule
    entry: LogEntry


class Verdict(NamedTuple):
    """What is said about a case without the rules of its platform."""

    place: bool
    reported: bool
    cause: str
    """`named`, `other`, `nothing`, or empty if the rule names no reason either."""


@cache
def _folder() -> Folder:
    return Folder(SIGNATURES, ours=True)


def rules_of(platform: str) -> set[str]:
    """Return the ids of all rules whose lines the loggers of a platform write, or that name it."""
    reader = _folder().reader
    assert reader is not None
    found = set()
    for sample in rule_lines.written().samples:
        entries = [rule_lines.entry(line, sample.rule.source) for line in sample.examples]
        places = {place.name for one in entries if (place := reader.place_of(one))}
        if sample.rule.platform == platform or places == {platform}:
            found.add(sample.rule.id)
    return found


def cases(platform: str) -> Iterator[Case]:
    """Yield the example lines of the rules about a platform."""
    known = rules_of(platform)
    for sample in rule_lines.written().samples:
        rule = sample.rule
        if rule.id in known and sample.line is rule.line and rule.severity != "info":
            for line in sample.examples:
                yield Case(rule, rule_lines.entry(line, rule.source))


def judge(platform: str, case: Case, rules: Sequence[Rule]) -> Verdict:
    """Say what is read and reported of a case."""
    reader = _folder().reader
    assert reader is not None
    reading = reader.read(case.entry)
    tracker = IncidentTracker(
        rules, now=NOW, reader=reader, symptoms=_folder().symptoms, starts=[NOW - 86_400]
    )
    for ago in AGO:
        tracker.add_entry(case.entry._replace(at=NOW - ago))
    reported = any(
        one.rule.severity != "info" and one.key.get("platform", "").lower() == platform
        for one in tracker.incidents()
        if one.cleared_at is None
    )
    place = reading.place is not None and reading.place[:2] == ("platform", platform)
    cause = ""
    if case.rule.code not in _folder().symptoms:
        cause = "nothing" if reading.cause is None else "other"
        if reading.cause is not None and reading.cause.means(case.rule.code):
            cause = "named"
    return Verdict(place, reported, cause)


def measure(platform: str) -> list[tuple[Case, Verdict]]:
    """Judge all cases of a platform without its rules."""
    known = rules_of(platform)
    rules = [rule for rule in rule_lines.written().rules if rule.id not in known]
    return [(case, judge(platform, case, rules)) for case in cases(platform)]


def platforms() -> list[Place]:
    """Return all platforms of the table."""
    rows = table_source.read_places(SIGNATURES).tables.places
    return [row.place for row in rows if row.part == "platform"]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure causes without rules of a platform.")
    parser.add_argument("platform", nargs="*", help="all if none is named")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what is not named")
    given = parser.parse_args()
    print(f"{'platform':<18}{'rules':>6}{'lines':>7}{'place':>8}{'reported':>10}"
          f"{'cause':>16}{'other':>7}")  # fmt: skip
    total: list[tuple[Case, Verdict]] = []
    for place in platforms():
        if given.platform and place.name not in given.platform:
            continue
        judged = measure(place.name)
        total += judged
        if judged:
            print(line(place.name, len(rules_of(place.name)), judged))
        for case, verdict in judged if given.verbose else ():
            if verdict.cause in ("other", "nothing") or not verdict.reported:
                print(f"    {verdict.cause or '-'} {verdict.reported} {case.rule.code}: "
                      f"{case.entry.text[:120]}")  # fmt: skip
    print(line("all", 0, total))
    return 0


def line(name: str, rules: int, judged: Sequence[tuple[Case, Verdict]]) -> str:
    """Return a line of the table."""
    causes = Counter(verdict.cause for _, verdict in judged)
    why = len(judged) - causes[""]
    shares = [
        f"{100 * sum(verdict.place for _, verdict in judged) / max(1, len(judged)):.0f} %",
        f"{100 * sum(verdict.reported for _, verdict in judged) / max(1, len(judged)):.0f} %",
    ]
    return (
        f"{name:<18}{rules or '':>6}{len(judged):>7}{shares[0]:>8}{shares[1]:>10}"
        f"{causes['named']:>8} of {why:<4}{causes['other']:>7}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
