"""What happens seldom but regularly, and what only files tell of a gateway that is gone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers import fake_gateway
from tests.helpers.one_check import ask
from tests.helpers.rule_lines import lines, said

DAY, HOUR, MINUTE = 86_400.0, 3600.0, 60.0


pytestmark = pytest.mark.usefixtures("utc")


def write(home: Path, entries: list[LogEntry]) -> None:
    """Write them as Hermes does: the gateway's own, the warnings, and everything."""
    (home / "logs").mkdir(exist_ok=True)
    ordered = sorted(entries, key=lambda one: one.at)
    own = [one for one in ordered if one.logger.startswith("gateway")]
    bad = [one for one in ordered if one.level != "INFO"]
    for name, some in (("gateway.log", own), ("errors.log", bad), ("agent.log", ordered)):
        (home / "logs" / name).write_text(lines(some))


def repeated(
    number: int, every: float, text: str, level: str, logger: str, last: float = MINUTE
) -> list[LogEntry]:
    """Return the same line several times, the last one so many seconds ago."""
    now = time.time()
    return [said(now - last - every * n, text, level, logger) for n in range(number)]


def codes(home: Path) -> set[str]:
    """Return the codes of all warnings and errors from the log."""
    return {one.code for one in ask("log-rules", home)[1] if one.severity != "info"}


DELIVERY = "Job '0123abcd': delivery error: Timed out"
APPROVAL = (
    'Tool terminal returned error (300.02s): {"output": "", "exit_code": -1, "error": "BLOCKED: '
    "Command timed out"
)
LOCKED = "Session DB creation failed (will retry next turn): database is locked"
FILES = "Failed to write runtime status (connected) for qqbot: [Errno 24] Too many open files: 'x'"
CONTEXT = "Context length exceeded: 210,000 tokens. Cannot compress further."


@pytest.mark.parametrize(
    ("number", "every", "line", "code"),
    [
        (48, 30 * MINUTE, ("Starting Hermes Gateway...", "INFO", "gateway.run"), "GW-RESTART-SPAM"),
        (3, DAY - HOUR, (DELIVERY, "ERROR", "cron.scheduler"), "CRON-DELIVERY"),
        (2, 2 * HOUR, (APPROVAL, "WARNING", "agent.tool_executor"), "APPROVAL-TIMEOUT"),
        (8, 3.5 * MINUTE, (LOCKED, "WARNING", "run_agent"), "DB-LOCKED"),
        (4, 9 * MINUTE, (FILES, "WARNING", "gateway.platforms.base"), "GW-FD-EXHAUST"),
        (7, 4 * MINUTE, (CONTEXT, "ERROR", "agent.conversation_loop"), "CTX-OVERFLOW"),
    ],
)
@pytest.mark.parametrize("gone", [False, True])
def test_reported(
    home: Path, number: int, every: float, line: tuple[str, str, str], code: str, gone: bool
) -> None:
    """Also if the gateway was killed since, and only its files are left."""
    if gone:
        fake_gateway.ended(home)
    write(home, repeated(number, every, *line))
    assert code in codes(home)


@pytest.mark.parametrize(
    ("number", "every", "line"),
    [
        (3, 8 * HOUR, ("Starting Hermes Gateway...", "INFO", "gateway.run")),
        (1, DAY, (APPROVAL, "WARNING", "agent.tool_executor")),
        (2, 9 * MINUTE, (LOCKED, "WARNING", "run_agent")),
        (1, DAY, (FILES, "WARNING", "gateway.platforms.base")),
    ],
)
def test_too_seldom(home: Path, number: int, every: float, line: tuple[str, str, str]) -> None:
    """A few restarts a day, and what happened once."""
    write(home, repeated(number, every, *line))
    assert codes(home) == set()


OTHER = said(time.time() - 3.5 * DAY, "something else", "WARNING", "gateway.run")
INTERRUPTED = "Interrupt recursion depth 3 reached for session agent:main:telegram:dm:1"
EVICTED = "Evicting stale _running_agents entry for agent:main:telegram:dm:1 (age: 2400s)"


def test_a_rate_that_has_risen(home: Path) -> None:
    """Below its threshold all day, but never before: a warning that says so."""
    write(home, [OTHER, *repeated(8, 150 * MINUTE, INTERRUPTED, "WARNING", "gateway.run")])
    [finding] = ask("log-rules", home)[1]
    assert (finding.code, finding.severity) == ("GW-AGENT-HUNG", "warning")
    assert finding.detail == "8 times in the last day; before that, 0 times in 3 days."
    assert finding.fix is None


def test_an_error_becomes_a_warning(home: Path) -> None:
    """Seldom lines do not show that nobody gets an answer."""
    write(home, [OTHER, *repeated(5, 4 * HOUR, EVICTED, "WARNING", "gateway.run")])
    [finding] = ask("log-rules", home)[1]
    assert (finding.code, finding.severity) == ("GW-AGENT-HUNG", "warning")


@pytest.mark.parametrize(
    "entries",
    [
        repeated(8, 150 * MINUTE, INTERRUPTED, "WARNING", "gateway.run"),
        [OTHER, *repeated(30, 150 * MINUTE, INTERRUPTED, "WARNING", "gateway.run")],
        [OTHER, *repeated(8, 150 * MINUTE, INTERRUPTED, "WARNING", "gateway.run", last=7 * HOUR)],
        [OTHER, *repeated(2, 150 * MINUTE, INTERRUPTED, "WARNING", "gateway.run")],
        [OTHER, *repeated(5, MINUTE, INTERRUPTED, "WARNING", "gateway.run", last=2 * HOUR)],
        [
            OTHER,
            *repeated(5, 4 * HOUR, EVICTED, "WARNING", "gateway.run", last=HOUR),
            *repeated(1, DAY, "Starting Hermes Gateway...", "INFO", "gateway.run"),
        ],
    ],
    ids=["no history", "as before", "over", "too few", "one burst", "restarted since"],
)
def test_no_rise(home: Path, entries: list[LogEntry]) -> None:
    """What is new with the log, usual, over, or happened at one time only."""
    write(home, entries)
    assert codes(home) == set()
