"""What strangers, tools and models say is logged, and must not be taken for what Hermes says."""

from __future__ import annotations

import functools

import pytest

from hermes_doctor.diagnosis.plugins.log_rules.findings import findings
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.diagnosis.plugins.log_rules.matcher import Matcher
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers.rule_lines import entry, written

LINES = {
    "name": ("WARNING", "gateway.run", "Unauthorized user: 7 ({}) on telegram"),
    "chat": ("INFO", "gateway.run", "inbound message: platform=telegram user={0} chat=1 msg='{0}'"),
    "tool": ("WARNING", "agent.tool_executor", "Tool terminal returned error (1.0s): {}"),
    "old tool": ("WARNING", "run_agent", 'Tool terminal returned error (1.0s): {{"output": "{}"'),
    "click": ("WARNING", "hermes_plugins.slack_platform", "[Slack] Ignoring click by {} (U7)"),
    "file": (
        "WARNING",
        "hermes_plugins.discord_platform.adapter",
        "[Discord] Failed to cache document {}: x",
    ),
    "thought": (
        "WARNING",
        "agent.conversation_loop",
        "Reasoning-only response (no visible content) after exhausting retries: {}",
    ),
    "job": ("ERROR", "cron.scheduler", "Job '{}' failed: RuntimeError: x"),
}


@functools.cache
def phrases() -> list[str]:
    """All lines that rules look for."""
    return sorted(
        {
            text
            for sample in written().samples
            for example in sample.examples
            for one in [entry(example, sample.rule.source)]
            for text in (one.text, *one.more)
        }
    )


def matcher() -> Matcher:
    """All rules, of each of which an incident is open: every line is looked for."""
    made = Matcher(written().rules)
    for rule in written().rules:
        made.incident_opened(rule)
    return made


@pytest.mark.parametrize("kind", ["log", "journal", "stderr"])
@pytest.mark.parametrize("line", LINES)
def test_words_of_others(line: str, kind: str) -> None:
    """Whatever a rule looks for, in a name or in a tool's output it means nothing."""
    level, logger, form = LINES[line]
    asked = matcher()

    def told(phrase: str) -> set[tuple[str, str]]:
        said = LogEntry(1.0, level, logger, form.format(phrase), kind=kind)
        return {(match.rule.id, match.role) for match in asked.ask(said)}

    as_always = told("x")
    found = {phrase: told(phrase) - as_always for phrase in phrases()}
    own = "cron-" if line == "job" else "none"  # a job's name may hold a quote, as its end does
    taken = {
        (phrase[:80], *one)
        for phrase, more in found.items()
        for one in more
        if not one[0].startswith(own)
    }
    assert taken == set()


def test_patterns_begin_where_lines_do() -> None:
    """Where a pattern is searched in the middle of a line, `anywhere` keeps others' words out."""
    lines = [(one.rule.id, one.line.pattern) for one in written().samples]
    assert [line for line in lines if not line[1].startswith("^")] == []


def test_systemd_is_not_quoted_by_the_gateway() -> None:
    """What systemd says counts only when systemd says it."""
    text = "hermes-gateway.service: Main process exited, code=exited, status=1/FAILURE"
    found = {
        logger: {
            one.rule.id
            for one in matcher().ask(LogEntry(1.0, "INFO", logger, text, kind="journal"))
        }
        for logger in ("systemd", "", "gateway.run")
    }
    assert "svc-ended" in found["systemd"] and not found[""] and not found["gateway.run"]


@pytest.mark.parametrize(
    ("level", "logger", "text", "secret"),
    [
        (
            "ERROR",
            "cron.scheduler",
            "Job 'Remind me of my test at 9' failed: ValueError: x",
            "test",
        ),
        ("ERROR", "cron.scheduler", "Job 'It's about my test' failed: ValueError: x", "test"),
        (
            "WARNING",
            "agent.conversation_loop",
            "API call failed (attempt 1/3) error_type=AuthenticationError thread=a:1"
            " provider=custom base_url=https://llm.example/u/hunter2 model=m summary=HTTP 401: x",
            "hunter2",
        ),
        (
            "WARNING",
            "gateway.platforms.base",
            "Failed to send 'my test' to kelly: [Errno 28] No space left on device: '/x'",
            "test",
        ),
    ],
)
def test_what_is_quoted(level: str, logger: str, text: str, secret: str) -> None:
    """Prompts, messages and what an address holds are shown nowhere."""
    ledger = IncidentTracker(
        [rule._replace(threshold=1, settle=0.0) for rule in written().rules], now=9.0
    )
    ledger.add_entry(LogEntry(1.0, level, logger, text))

    found = list(findings(ledger.incidents(), lambda _: "log"))

    assert found and all(secret not in repr(one) for one in found)


def test_jobs_are_told_apart() -> None:
    """Two prompts that begin alike are two jobs; a short name is shown as it is."""
    ledger = IncidentTracker(written().rules, now=9.0)
    for at, name in enumerate(("remind me of it", "remind me of that", "nightly-report")):
        text = f"Job '{name}' failed: ValueError: x"
        ledger.add_entry(LogEntry(1.0 + at, "ERROR", "cron.scheduler", text))

    subjects = {one.subject for one in findings(ledger.incidents(), lambda _: "log")}

    assert len(subjects) == 3 and "nightly-report" in subjects
