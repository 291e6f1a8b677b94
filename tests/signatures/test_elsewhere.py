"""What happens in one place does not end what is wrong in another."""

from __future__ import annotations

import pytest

from hermes_doctor.logs.entry import Entry
from hermes_doctor.plugins import builtin
from hermes_doctor.signatures import source
from hermes_doctor.signatures.findings import findings
from hermes_doctor.signatures.incidents import Ledger

RULES = source.read(builtin("checks") / "signatures").rules
NOW = 100_000.0
QQ = "gateway.platforms.qqbot.adapter"
CLICK = (
    "[QQBot:1] Rejected unauthorized approval click for session agent:main:qqbot:dm:{0}"
    " (operator={0})"
)
DNS = "[Weixin] poll error (1/3): Cannot connect to host x:443 [Name or service not known]"


def codes(*lines: tuple[str, str, str, str]) -> set[str]:
    """What these lines come to: level, logger, session and text of each."""
    ledger = Ledger(RULES, now=NOW)
    for number, (level, logger, session, text) in enumerate(lines):
        ledger.take(Entry(NOW - 600 + number, level, logger, text, session))
    return {one.code for one in findings(ledger.incidents(), lambda _: "log")}


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
