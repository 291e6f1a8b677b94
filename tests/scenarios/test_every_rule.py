"""Every rule in a realistic log: named while it lasts, and silent once it is over."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_rules import source
from hermes_doctor.diagnosis.plugins.log_rules.ask_logs import ask
from hermes_doctor.diagnosis.plugins.log_rules.findings import findings
from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.diagnosis.plugins.log_rules.rule import KEYS, Rule
from hermes_doctor.diagnosis.plugins.tables import yaml_lists
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.logs.entry import LogEntry
from hermes_doctor.hermes.logs.stream import GATEWAY
from tests.helpers.each import each
from tests.helpers.rule_lines import asking, entry, lines, said, written

IN_LOGS = [
    rule.id
    for rule in Folder(builtin("checks") / "signatures", ours=True).rule_set.rules
    if rule.source == "log"
]
DAY = 86_400.0
NOW = 1_794_700_800.0
HEALTHY = [
    ("INFO", "gateway.run", "Starting Hermes Gateway..."),
    ("INFO", "gateway.run", "Connecting to qqbot..."),
    ("INFO", "gateway.platforms.qqbot.adapter", "[QQBot:102000001] Connected"),
    ("INFO", "gateway.platforms.qqbot.adapter", "[QQBot:102000001] Ready, session_id=abc"),
    ("INFO", "gateway.run", "✓ qqbot connected"),
    ("INFO", "gateway.run", "Gateway running with 1 platform(s)"),
    ("INFO", "gateway.run", "Press Ctrl+C to stop"),
    ("INFO", "gateway.run", "inbound message: platform=qqbot user=U1 chat=U1 msg='hello'"),
    ("INFO", "gateway.run", "response ready: platform=qqbot chat=U1 time=2.1s api_calls=1"),
]


class Rules:
    """All rules, read only once a test runs: that takes seconds."""

    def __iter__(self) -> Iterator[Rule]:
        return iter(written().rules)


@functools.cache
def samples() -> dict[str, list[source.Sample]]:
    """The sample lines of each rule."""
    found: dict[str, list[source.Sample]] = {rule.id: [] for rule in written().rules}
    for sample in written().samples:
        found[sample.rule.id].append(sample)
    return found


def ages_out() -> dict[str, str]:
    """Why rules say that they can only age out."""
    return {
        raw["id"]: raw.get("ages_out", "")
        for path in (builtin("checks") / "signatures").glob("*.yaml")
        if path.name not in source.NOT_RULES
        for _, raw in yaml_lists.mappings(path, "rules", [])
    }


def background() -> list[LogEntry]:
    """An ordinary life that began before."""
    began = NOW - 8 * 86400
    return [said(began + n, text, level, logger) for n, (level, logger, text) in enumerate(HEALTHY)]


def happening(rule: Rule) -> Iterator[LogEntry]:
    """The first example as often as it takes, and what must follow."""
    own, *others = samples()[rule.id]
    gap = min((rule.within or rule.window / 4) / (rule.threshold + 1), 60.0)
    gap = max(gap, rule.spread / max(1, rule.threshold - 1))
    if rule.days:
        gap = 86_400.0 - 60.0
    at = NOW - max(rule.settle + 1, gap * rule.threshold + 2)
    for n in range(rule.threshold):
        when = at + gap * n
        yield entry(own.examples[0], rule.source)._replace(at=when)
        if rule.followed_by:
            follow = next(s for s in others if s.line is rule.followed_by)
            late = min(gap, rule.follows_within) / 2
            yield entry(follow.examples[0], rule.source)._replace(at=when + late)
    if rule.given_up_by:  # else the next answer could be one to the same message
        last = next(s for s in others if s.line is rule.given_up_by[0]).examples[0]
        session = entry(own.examples[0], rule.source).session
        yield entry(last, rule.source)._replace(at=when + 0.1, session=session)


def verdict(rule: Rule, *entries: LogEntry) -> list[str]:
    """The codes that are reported."""
    ledger = IncidentTracker([rule], now=NOW)
    for one in (*background(), *entries):
        ledger.add_entry(one)
    return [found.code for found in findings(ledger.incidents(), lambda e: e.source)]


def alike(rule: Rule, cleared: LogEntry, first: LogEntry) -> LogEntry:
    """The clearing example about the same account, job or board as the example."""
    [match] = [m for m in asking(rule).ask(first) if m.role == "match"]
    text = cleared.text
    for other in asking(rule).ask(cleared):
        for name in KEYS:
            theirs, ours = other.fields.get(name), match.fields.get(name)
            if other.role == "clear" and theirs and ours:
                text = re.sub(rf"(?<!\w){re.escape(theirs)}(?!\w)", lambda _: ours, text)  # noqa: B023
    return cleared._replace(text=text, session=first.session)


@each(Rules())
def test_while_it_lasts(rule: Rule) -> None:
    """In an ordinary log, with nothing after it."""
    assert verdict(rule, *happening(rule)) == [rule.code], rule.id


@each(Rules())
def test_once_it_is_over(rule: Rule) -> None:
    """Each line that clears it does; so does a new start, unless it outlives that."""
    entries = list(happening(rule))
    last = entries[-1].at
    for sample in samples()[rule.id]:
        if sample.line in rule.cleared_by:
            for example in sample.examples:
                cleared = alike(rule, entry(example, rule.source), entries[0])
                assert verdict(rule, *entries, cleared._replace(at=last + 1)) == [], example
    start = said(last + 1, "Starting Hermes Gateway...", "INFO", "gateway.run")
    left = [rule.code] if rule.outlives_start else []
    assert verdict(rule, *entries, start) == left, rule.id


ENDED_BY_ANY = {
    "agent-context-cache",
    "agent-error",
    "agent-error-loop",
    "agent-json",
    "authz-nobody-listed",
    "authz-open-refused",
    "aux-no-credentials",
    "ctx-compression-slow",
    "gw-turn-stalls",
    "matrix-device-keys",
    "provider-429-lost",
    "provider-aux-unpaid",
    "provider-copilot-token",
    "provider-down",
    "qq-quiet",
    "stt-not-set-up",
    "upd-backends-old",
}
"""Rules that any success of the same kind ends, because its line does not name the subject."""


def test_what_any_success_ends() -> None:
    """Every other clearing line names the account, chat, job or model of the incident."""
    found = set()
    for rule in written().rules:
        named = {name for name in KEYS if f"(?P<{name}>" in rule.line.pattern}
        lines = [line.pattern for line in rule.cleared_by]
        if named and any(not any(f"(?P<{name}>" in line for name in named) for line in lines):
            found.add(rule.id)
    assert found == ENDED_BY_ANY


@each(Rules())
def test_another_one_works(rule: Rule) -> None:
    """A line about another account, chat, job or model does not end it."""
    entries = list(happening(rule))
    [match] = [m for m in asking(rule).ask(entries[0]) if m.role == "match"]
    lines = [s for s in samples()[rule.id] if s.line in rule.cleared_by]
    for example in (example for sample in lines for example in sample.examples):
        cleared = alike(rule, entry(example, rule.source), entries[0])
        for name in rule.incident_by or KEYS:
            ours = match.fields.get(name)
            if not ours or not any(m.fields.get(name) for m in asking(rule).ask(cleared)):
                continue
            other = ours[:-1] + ("8" if ours[-1].isdigit() else "q")
            changed = re.sub(rf"(?<!\w){re.escape(ours)}(?!\w)", other, cleared.text)
            if changed == cleared.text:
                continue  # a part of a word, such as the first one of a tool's name
            late = cleared._replace(text=changed, at=entries[-1].at + 1)
            assert verdict(rule, *entries, late) == [rule.code], changed


CHATTY = ("run_agent", "agent", "gateway", "gateway.platforms", "gateway.platforms.base")
"""Loggers, or their parents, with several lines for each message that a bot answers."""


def test_healthy_lines_are_not_read() -> None:
    """No rule begins with an INFO line of a chatty logger: `check` would read most of a log.

    Lines of `gateway.run` are read; there are two for each message.
    """
    found = [
        (rule.id, name)
        for rule in written().rules
        for line in (rule.line, *([rule.followed_by] if rule.followed_by else []))
        if rule.source == "log" and line.level in ("INFO", "DEBUG")
        for name in line.loggers or ("any logger",)
        if name in (*CHATTY, "any logger")
        or name.startswith(("agent.conversation_loop", "agent.tool", "agent.turn"))
    ]
    assert found == []


def test_no_line_counts_twice() -> None:
    """A logger includes those below it, so no rule names both."""
    named = [
        (sample.rule.id, name, sample.line.loggers)
        for sample in written().samples
        for name in sample.line.loggers
    ]
    assert [id for id, name, all in named if any(one.startswith(f"{name}.") for one in all)] == []


def test_it_has_an_end() -> None:
    """A line, a start or a check ends it, or the rule says why it can only age out, and soon."""
    why = ages_out()
    for rule in written().rules:
        ends = rule.cleared_by or rule.unless_ok or not rule.outlives_start
        assert ends or why[rule.id], rule.id
        assert ends or rule.days or rule.window <= DAY, rule.id


def test_an_ordinary_life() -> None:
    """Healthy lines and near misses are no fault, however often they come."""
    for rule in written().rules:
        near = [
            entry(text, rule.source)._replace(at=NOW - 60)
            for sample in samples()[rule.id]
            if sample.line is rule.line
            for text in sample.near
        ]
        assert verdict(rule, *near * rule.threshold) == [], rule.id


@pytest.mark.sampled(one_of=8)
@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("name", IN_LOGS)
def test_through_files(name: str, home: Path) -> None:
    """The same with lines where Hermes puts them: each rule is reached by the files it reads."""
    [rule] = [rule for rule in written().rules if rule.id == name]
    shift = time.time() - NOW
    entries = [one._replace(at=one.at + shift) for one in happening(rule)]
    latest = said(time.time(), "still here", "INFO", "gateway.run")
    if rule.only_set_up:
        assert told(home, rule, *entries, latest) == []
        (home / ".env").write_text(
            "TELEGRAM_BOT_TOKEN=123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDs\n"
        )
    assert told(home, rule, *entries, latest) == [rule.code]
    for sample in samples()[rule.id]:
        if sample.line in rule.cleared_by:
            cleared = alike(rule, entry(sample.examples[0]), entries[0])
            over = cleared._replace(at=min(entries[-1].at + 1, time.time()))
            assert told(home, rule, *entries, over, latest) == [], sample.examples[0]


def told(home: Path, rule: Rule, *entries: LogEntry) -> list[str]:
    """What a look at files with these lines reports."""
    own = [one for one in entries if one.logger.startswith(GATEWAY)]
    bad = [one for one in entries if one.level not in ("DEBUG", "INFO")]
    for name, some in (("gateway.log", own), ("errors.log", bad), ("agent.log", entries)):
        (home / "logs" / name).write_text(lines(some))
    asked = ask(Probes(Home(home)), [rule])
    return [found.code for found in findings(asked.incidents, asked.where)]
