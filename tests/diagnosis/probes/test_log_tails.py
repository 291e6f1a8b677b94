"""The last message and the last answer, from the two logs that have them."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.diagnosis.probes import log_tails
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers import support
from tests.helpers.rule_lines import lines, said

NOW = datetime.now(UTC)


def write(home: Path, *lines: str) -> None:
    """A log whose last line was written now.

    The settings are older, so that the home does not look freshly copied.
    """
    support.put(home / "logs" / "gateway.log", "\n".join(lines) + "\n")
    os.utime(home / "logs" / "gateway.log", (NOW.timestamp(), NOW.timestamp()))
    for name in ("config.yaml", ".env"):
        os.utime(home / name, (NOW.timestamp() - 3600,) * 2)


def read(home: Path, began: datetime = NOW - timedelta(days=9)) -> list[log_tails.GatewayLogLine]:
    """What is read of it."""
    return log_tails.read_last_lines(Home(home), began)


@pytest.mark.parametrize("zone", [0, 8, -11])
def test_time_zones(home: Path, zone: int) -> None:
    """Lines bear the local time of the process; the file's own time tells the difference."""
    local = NOW + timedelta(hours=zone)
    write(
        home,
        f"{local - timedelta(minutes=5):%Y-%m-%d %H:%M:%S},250 WARNING a.b: first",
        f"{local:%Y-%m-%d %H:%M:%S},000 INFO [sid] a.b-c: second: with words",
    )

    first, second = read(home)

    assert abs(second.at - NOW) < timedelta(seconds=1)
    assert timedelta(minutes=4.9) < second.at - first.at < timedelta(minutes=5.1)
    assert (second.logger, second.text) == ("a.b-c", "second: with words")


def test_only_this_life(home: Path) -> None:
    """From the last start on; tracebacks and garbage are no lines."""
    stamp = f"{NOW:%Y-%m-%d %H:%M:%S},000"
    write(
        home,
        f"{stamp} INFO x: old",
        f"{stamp} INFO gateway.run: Starting Hermes Gateway...",
        "Traceback (most recent call last):",
        "\x00\xff",
        "2026-99-99 99:99:99,000 INFO x: no time",
        f"{stamp} INFO x: new",
    )

    assert [word.text for word in read(home)][-1] == "new"
    assert "old" not in [word.text for word in read(home)]


def test_log_of_before(home: Path) -> None:
    """A file that was not written since the start is an earlier process's."""
    write(home, f"{NOW:%Y-%m-%d %H:%M:%S},000 INFO x: old")

    assert read(home, NOW + timedelta(seconds=5)) == []


def test_huge_log(home: Path) -> None:
    """Only the end is read."""
    stamp = f"{NOW:%Y-%m-%d %H:%M:%S},000"
    write(home, *[f"{stamp} INFO x: {'y' * 200} {n}" for n in range(9000)])

    found = read(home)

    assert 500 < len(found) < 1300
    assert found[-1].text.endswith(" 8999")


def test_odd_logs(home: Path) -> None:
    """None, empty, and something that is no file."""
    assert read(home) == []
    write(home, "")
    assert read(home) == []
    (home / "logs" / "gateway.log").unlink()
    os.mkfifo(home / "logs" / "gateway.log")
    with pytest.raises(CouldNotLook):
        read(home)


NOON = 1_794_700_800.0
SESSION = "api-5c08aa4f460ead84"
TURN = "conversation turn: session={} model=m provider=p platform={} history=0 msg='hi'"
ENDED = "Turn ended: reason=text_response(finish_reason=stop) model=m api_calls=1/90 session=x"
START = said(NOON - 900, "Starting Hermes Gateway...", "INFO", "gateway.run")


def turn(at: float, platform: str, logger: str = "agent.turn_context") -> LogEntry:
    """A turn of the agent that starts."""
    return said(at, TURN.format(SESSION, platform), "INFO", logger, SESSION)


def answer(at: float, logger: str = "agent.turn_finalizer") -> LogEntry:
    """A turn of the agent that ends with an answer."""
    return said(at, ENDED, "INFO", logger, SESSION)


def traffic(home: Path, *entries: LogEntry) -> log_tails.Traffic:
    """What these lines of a gateway tell."""
    (home / "logs").mkdir(exist_ok=True)
    own = [one for one in entries if one.logger.startswith("gateway.")]
    (home / "logs" / "gateway.log").write_text(lines(own))
    (home / "logs" / "agent.log").write_text(lines(entries))
    return log_tails.read_traffic(Home(home))


in_utc = pytest.mark.usefixtures("utc")


@in_utc
@pytest.mark.parametrize("platform", ["api_server", "cron"])
@pytest.mark.parametrize(
    ("begins", "ends"),
    [("agent.turn_context", "agent.turn_finalizer"), ("run_agent", "run_agent")],
)
def test_a_message_of_the_api_server_or_a_job(
    home: Path, platform: str, begins: str, ends: str
) -> None:
    """Only agent.log has them, under the logger of the release."""
    found = traffic(home, START, turn(NOON - 60, platform, begins), answer(NOON - 58, ends))
    assert found.last_in and found.last_in.timestamp() == NOON - 60
    assert found.last_out and found.last_out.timestamp() == NOON - 58
    assert found.started and found.started.timestamp() == NOON - 900


@in_utc
def test_a_refused_message_is_not_an_answer(home: Path) -> None:
    """It came in, but nothing went out."""
    refused = said(NOON - 59, "Non-retryable client error: x", "ERROR", "agent.conversation_loop")
    found = traffic(home, START, turn(NOON - 60, "api_server"), refused._replace(session=SESSION))
    assert found.last_in and found.last_out is None


@in_utc
@pytest.mark.parametrize("platform", ["cli", "tui", "subagent"])
def test_what_nobody_asked_the_gateway(home: Path, platform: str) -> None:
    """Somebody who talks to Hermes in a terminal does not try the gateway."""
    found = traffic(home, START, turn(NOON - 60, platform), answer(NOON - 58))
    assert (found.last_in, found.last_out) == (None, None)


@in_utc
def test_a_log_without_the_start(home: Path) -> None:
    """Then nobody knows what came before."""
    noise = said(NOON - 60, "housekeeping", "INFO", "gateway.run")
    assert traffic(home, noise).started is None
    assert traffic(home, START, noise).started is not None
