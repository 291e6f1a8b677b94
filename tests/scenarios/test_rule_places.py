"""What happens in one place does not end what is wrong in another."""

from __future__ import annotations

import pytest

from hermes_doctor.core.model import Finding, Severity
from hermes_doctor.diagnosis.plugins.log_rules.findings import findings
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers.rule_lines import written

NOW = 100_000.0
QQ = "gateway.platforms.qqbot.adapter"
CLICK = (
    "[QQBot:1] Rejected unauthorized approval click for session agent:main:qqbot:dm:{0}"
    " (operator={0})"
)
DNS = "[Weixin] poll error (1/3): Cannot connect to host x:443 [Name or service not known]"


def told(*lines: tuple[str, str, str, str], **chats: str) -> list[Finding]:
    """What these lines come to: level, logger, session and text of each."""
    ledger = IncidentTracker(written().rules, now=NOW, chats=lambda: chats)
    for number, (level, logger, session, text) in enumerate(lines):
        ledger.add_entry(LogEntry(NOW - 600 + number, level, logger, text, session))
    return list(findings(ledger.incidents(), lambda _: "log"))


def codes(*lines: tuple[str, str, str, str]) -> set[str]:
    """The same, but only what kinds of things."""
    return {one.code for one in told(*lines)}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("line", "over"),
    [
        (("INFO", QQ, "", "[QQBot:1] Button resolved 1 approval(s) for session a:dm:U1 (x)"), True),
        (
            ("INFO", QQ, "", "[QQBot:1] Button resolved 1 approval(s) for session a:dm:U2 (x)"),
            False,
        ),
        (("INFO", "gateway.run", "", "User approved 1 dangerous command(s) via /approve"), False),
        (
            (
                "INFO",
                "gateway.run",
                "",
                "inbound message: platform=qqbot user=o chat=U1 msg='/deny'",
            ),
            True,
        ),
        (
            (
                "INFO",
                "gateway.run",
                "",
                "inbound message: platform=qqbot user=o chat=U2 msg='/deny'",
            ),
            False,
        ),
    ],
)
def test_an_answer_in_another_chat(line: tuple[str, str, str, str], over: bool) -> None:
    """A refused click is answered in its own chat."""
    found = codes(("WARNING", QQ, "", CLICK.format("U1")), line)
    assert ("APPROVAL-DEADLOCK" in found) is not over


@pytest.mark.parametrize(("session", "over"), [("20261115_A", True), ("20261115_B", False)])
def test_a_reset_of_another_session(session: str, over: bool) -> None:
    """A session that is too long is begun anew itself, or stays too long."""
    full = "Context length exceeded: 210000 tokens. Cannot compress further."
    reset = f"Auto-resetting session {session} after compression exhaustion."
    found = codes(
        ("ERROR", "agent.conversation_loop", "20261115_A", full),
        ("INFO", "gateway.run", "", reset),
    )
    assert ("CTX-OVERFLOW" in found) is not over


@pytest.mark.parametrize(("platform", "over"), [("telegram", True), ("api_server", False)])
def test_a_message_that_needs_no_network(platform: str, over: bool) -> None:
    """What comes in on this machine says nothing about the names of hosts."""
    came = f"inbound message: platform={platform} user=op chat=1 msg='hi'"
    found = codes(
        *(("WARNING", "gateway.platforms.weixin", "", DNS) for _ in range(6)),
        ("INFO", "gateway.run", "", came),
    )
    assert ("NET-DNS" in found) is not over


@pytest.mark.parametrize(
    ("click", "late", "chats", "dead"),
    [
        ("", "s1", {"s1": "U1"}, True),
        ("", "s2", {"s1": "U1", "s2": "U2"}, False),
        ("", "s3", {"s1": "U1"}, True),  # whose session that was is not known any more
        ("s1", "s1", {}, True),
        ("s1", "s2", {}, False),
        ("", "", {}, True),
    ],
)
def test_a_command_that_ran_out_of_time_in_another_session(
    click: str, late: str, chats: dict[str, str], dead: bool
) -> None:
    """A refused click has to do with the command of its own session only."""
    blocked = (
        'Tool terminal returned error (60.18s): {"output": "", "exit_code": -1, "error": '
        '"BLOCKED: Command timed out without user response."}'
    )
    found = told(
        ("WARNING", QQ, click, CLICK.format("U1")),
        ("WARNING", "agent.tool_executor", late, blocked),
        **chats,
    )

    worst = [one for one in found if one.code == "APPROVAL-DEADLOCK" and one.fix]
    assert [one.severity for one in worst] == ([Severity.ERROR] if dead else [])


@pytest.mark.parametrize(("platform", "over"), [("telegram", True), ("discord", False)])
def test_a_delivery_to_another_platform(platform: str, over: bool) -> None:
    """A job may deliver to several."""
    found = told(
        ("ERROR", "cron.scheduler", "", "Job 'a1': delivery to telegram:1 failed: Timed out"),
        ("INFO", "cron.scheduler", "", f"Job 'a1': delivered to {platform}:7 via live adapter"),
    )

    assert [one.data["platform"] for one in found] == ([] if over else ["telegram"])
