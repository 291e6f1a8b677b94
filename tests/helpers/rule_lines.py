"""Log lines for tests of log rules, in the format of Hermes."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from datetime import UTC, datetime

from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_rules import source
from hermes_doctor.diagnosis.plugins.log_rules.matcher import Matcher
from hermes_doctor.diagnosis.plugins.log_rules.rule import PRINTED, Rule
from hermes_doctor.hermes.logs.entry import LogEntry

_LINE = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(?P<ms>\d{3}) (?P<level>[A-Z]+)"
    r"(?: \[(?P<session>[^\]\s]+)\])? (?P<logger>[A-Za-z_][\w.-]*): (?P<text>.*)"
)

_OTHER = re.compile(r"(?P<logger>systemd|kernel|\(\w+\)): (?P<text>.*)")
"""Lines in the journal of programs other than the gateway."""


@functools.cache
def written() -> source.RuleSource:
    """Return our own rules with their sample lines; reading them takes seconds."""
    return source.read(builtin("checks") / "signatures")


def entry(line: str, kind: str = "log") -> LogEntry:
    """Parse a line into an entry; further lines belong to it."""
    kind = "journal" if kind == PRINTED else kind
    head, *more = line.split("\n")
    match = _LINE.fullmatch(head)
    if kind == "journal" and (other := _OTHER.fullmatch(head)):
        return LogEntry(0.0, "INFO", other["logger"], other["text"], kind=kind)
    if match is None:
        return LogEntry(0.0, "", "", head, more=tuple(more), kind=kind)
    at = datetime.fromisoformat(match["at"]).replace(tzinfo=UTC).timestamp()
    return LogEntry(
        at + int(match["ms"]) / 1000,
        match["level"],
        match["logger"],
        match["text"],
        match["session"] or "",
        tuple(more),
        "logs/gateway.log",
        kind=kind,
    )


def asking(rule: Rule) -> Matcher:
    """Return a matcher for one rule with an open incident, which looks for all its lines."""
    matcher = Matcher([rule])
    matcher.incident_opened(rule)
    return matcher


def said(
    at: float, text: str, level: str = "WARNING", logger: str = "a.b", session: str = ""
) -> LogEntry:
    """Return an entry at a time."""
    return LogEntry(at, level, logger, text, session, (), "logs/gateway.log", int(at))


def lines(entries: Iterable[LogEntry]) -> str:
    """Return the entries as lines of a log file, in UTC."""
    return "".join(
        datetime.fromtimestamp(one.at, UTC).strftime("%Y-%m-%d %H:%M:%S,")
        + f"{int(one.at * 1000) % 1000:03d} {one.level}"
        + (f" [{one.session}]" if one.session else "")
        + f" {one.logger}: {one.text}\n"
        + "".join(f"{more}\n" for more in one.more)
        for one in entries
    )
