"""The last message and the last answer, from the two logs that have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes import traffic
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers.rule_lines import lines, said

NOW = 1_794_700_800.0
SESSION = "api-5c08aa4f460ead84"
TURN = "conversation turn: session={} model=m provider=p platform={} history=0 msg='hi'"
ENDED = "Turn ended: reason=text_response(finish_reason=stop) model=m api_calls=1/90 session=x"
START = said(NOW - 900, "Starting Hermes Gateway...", "INFO", "gateway.run")


def turn(at: float, platform: str, logger: str = "agent.turn_context") -> LogEntry:
    """A turn of the agent that starts."""
    return said(at, TURN.format(SESSION, platform), "INFO", logger, SESSION)


def answer(at: float, logger: str = "agent.turn_finalizer") -> LogEntry:
    """A turn of the agent that ends with an answer."""
    return said(at, ENDED, "INFO", logger, SESSION)


def read(home: Path, *entries: LogEntry) -> traffic.Traffic:
    """What these lines of a gateway tell."""
    (home / "logs").mkdir(exist_ok=True)
    own = [one for one in entries if one.logger.startswith("gateway.")]
    (home / "logs" / "gateway.log").write_text(lines(own))
    (home / "logs" / "agent.log").write_text(lines(entries))
    return traffic.read(Home(home))


pytestmark = pytest.mark.usefixtures("utc")


@pytest.mark.parametrize("platform", ["api_server", "cron"])
@pytest.mark.parametrize(
    ("begins", "ends"),
    [("agent.turn_context", "agent.turn_finalizer"), ("run_agent", "run_agent")],
)
def test_a_message_of_the_api_server_or_a_job(
    home: Path, platform: str, begins: str, ends: str
) -> None:
    """Only agent.log has them, under the logger of the release."""
    found = read(home, START, turn(NOW - 60, platform, begins), answer(NOW - 58, ends))
    assert found.last_in and found.last_in.timestamp() == NOW - 60
    assert found.last_out and found.last_out.timestamp() == NOW - 58
    assert found.started and found.started.timestamp() == NOW - 900


def test_a_refused_message_is_not_an_answer(home: Path) -> None:
    """It came in, but nothing went out."""
    refused = said(NOW - 59, "Non-retryable client error: x", "ERROR", "agent.conversation_loop")
    found = read(home, START, turn(NOW - 60, "api_server"), refused._replace(session=SESSION))
    assert found.last_in and found.last_out is None


@pytest.mark.parametrize("platform", ["cli", "tui", "subagent"])
def test_what_nobody_asked_the_gateway(home: Path, platform: str) -> None:
    """Somebody who talks to Hermes in a terminal does not try the gateway."""
    found = read(home, START, turn(NOW - 60, platform), answer(NOW - 58))
    assert (found.last_in, found.last_out) == (None, None)


def test_a_log_without_the_start(home: Path) -> None:
    """Then nobody knows what came before."""
    noise = said(NOW - 60, "housekeeping", "INFO", "gateway.run")
    assert read(home, noise).started is None
    assert read(home, START, noise).started is not None
