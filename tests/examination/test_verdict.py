"""Whether the bot answers people, and which problem to look at first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.examination.verdict import first_cause, judge
from hermes_doctor.model import (
    NO_PLATFORM,
    CheckResult,
    Effect,
    Finding,
    Mark,
    Part,
    PartState,
    Report,
    Rung,
    RungState,
    Safety,
    Severity,
    Status,
    VerdictKind,
)

NOW = datetime.now(UTC)
AGO = NOW - timedelta(hours=1, minutes=1)
OK = (CheckResult("a", "g", Status.OK),)
RUNS = (Rung("process", RungState.OK, "process 42", NOW - timedelta(days=3)),)
WORKS = (*RUNS, Rung("platforms", RungState.OK, "telegram", NOW))
DOWN = (Rung("process", RungState.FAILED, "no gateway of this home runs", AGO),)
BLIND = (Rung("process", RungState.UNKNOWN, "permission denied"),)
EFFECTS = {
    "FROZEN": Effect("gateway", "frozen"),
    "NOT-RUNNING": Effect("down", "not running"),
    "NO-KEY": Effect("model", "no key"),
    "REJECTED": Effect("platform", "login rejected"),
    "BROKEN-DB": Effect("data", "unreadable"),
}
QQ, TELEGRAM = "QQ: login rejected", "Telegram"


def found(code: str, severity: Severity = Severity.ERROR, **more: object) -> Finding:
    """A finding whose title names its code."""
    return Finding(code, severity, f"title of {code}", **more)  # type: ignore[arg-type]


def report(
    *findings: Finding,
    ladder: tuple[Rung, ...] = RUNS,
    platforms: tuple[Part, ...] = (Part(Mark.GOOD, "Telegram"),),
    **more: object,
) -> Report:
    """A report of a home with these platforms."""
    values = {"checks": OK, **more}
    return Report(
        home=Path("/srv/hermes"),
        hermes_version="0.19.0",
        started_at=NOW,
        seconds=0.1,
        findings=findings,
        fixes={"cure": Safety.SAFE},
        ladder=ladder,
        effects=EFFECTS,
        states=(PartState("platforms", platforms),),
        **values,  # type: ignore[arg-type]
    )


def test_working_says_when_the_last_message_came() -> None:
    """The best news is a recent answer."""
    now = datetime.now(UTC)
    ladder = (
        *RUNS,
        Rung("messages in", RungState.OK, "", now - timedelta(minutes=2)),
        Rung("answers out", RungState.OK, "", now - timedelta(minutes=1)),
    )

    judged = judge(report(ladder=ladder))

    assert judged.kind is VerdictKind.WORKING
    assert judged.headline == (
        "Your bot is working. Last message 2 min ago, last answer 1 min ago."
    )
    assert judged.primary is None


def test_running_without_traffic_claims_no_more_than_that() -> None:
    """No message has come in, so nobody knows whether it would be answered."""
    connected = Rung("platforms", RungState.OK, "telegram", NOW)
    assert judge(report(ladder=(*RUNS, connected))).headline == (
        "Your bot is connected. No message has come in since it started."
    )
    assert "is running since" in judge(report()).headline


@pytest.mark.parametrize("code", ["FROZEN", "NO-KEY", "NOT-RUNNING"])
def test_what_silences_the_bot(code: str) -> None:
    """One problem is named in the headline, with the time since when."""
    since = datetime.now(UTC) - timedelta(hours=1, minutes=42)
    judged = judge(report(found(code, since=since)))

    assert judged.kind is VerdictKind.NOT_WORKING
    assert "(1 h" in judged.headline
    assert f"title of {code}" in judged.headline
    assert judged.primary is not None
    assert judged.primary.code == code


def test_a_warning_silences_nothing() -> None:
    """The same code as a warning is only a limit."""
    judged = judge(report(found("NO-KEY", Severity.WARNING), ladder=WORKS))

    assert judged.kind is VerdictKind.LIMITED
    assert judged.headline == "Your bot is working. 1 warning."


def test_a_running_process_alone_is_not_a_working_bot() -> None:
    """Without a connected platform or an answer the headline speaks of the gateway only."""
    assert judge(report(found("OTHER", Severity.WARNING))).headline == (
        "The gateway is running, with 1 warning."
    )
    assert judge(report(found("BROKEN-DB"))).headline == "The gateway is running, with 1 problem."


def test_several_problems_are_counted() -> None:
    """The headline says how many can be repaired, and which to look at first."""
    judged = judge(report(found("NO-KEY", fix="cure"), found("FROZEN"), found("BROKEN-DB")))

    assert judged.headline == ("Your bot is not working: title of FROZEN (1 of 3).")


def test_the_only_platform() -> None:
    """A platform that is silent is the whole bot if there is no other one."""
    one = report(found("REJECTED", subject="qqbot", since=AGO), platforms=(Part(Mark.BAD, QQ),))

    judged = judge(one)

    assert judged.kind is VerdictKind.NOT_WORKING
    assert judged.headline.startswith("Nobody on QQ gets an answer since ")


def test_one_of_two_platforms() -> None:
    """The other one still works."""
    both = (Part(Mark.BAD, QQ), Part(Mark.GOOD, TELEGRAM))

    judged = judge(report(found("REJECTED", subject="qqbot"), platforms=both))

    assert judged.kind is VerdictKind.LIMITED
    assert judged.headline == "Your bot is working, but nobody on QQ gets an answer."


def test_a_platform_that_is_not_connected_yet() -> None:
    """Nobody gets an answer, although no check has called that a problem yet."""
    judged = judge(report(platforms=(Part(Mark.BAD, "QQ: retrying"),)))

    assert judged.kind is VerdictKind.NOT_WORKING
    assert judged.headline == "Your bot is not connected: QQ: retrying."


def test_a_damaged_database_is_a_limit() -> None:
    """The bot answers, but does not remember."""
    judged = judge(report(found("BROKEN-DB"), ladder=WORKS))

    assert judged.kind is VerdictKind.LIMITED
    assert judged.headline == "Your bot is working with limits: 1 problem."


def test_one_chat_is_not_the_whole_bot() -> None:
    """The others still get answers."""
    judged = judge(report(found("NO-KEY", data={"one_chat": True}), ladder=WORKS))

    assert judged.kind is VerdictKind.LIMITED


def test_a_stopped_bot() -> None:
    """A gateway that was stopped on purpose is not a problem, but nobody gets an answer."""
    judged = judge(report(found("NOT-RUNNING", Severity.INFO, since=AGO), ladder=DOWN))

    assert judged.kind is VerdictKind.STOPPED
    assert judged.headline.startswith("Your bot is stopped since ")


def test_a_home_that_is_not_set_up() -> None:
    """Without a platform and without a gateway there is no bot yet."""
    judged = judge(report(ladder=DOWN, platforms=(Part(Mark.NONE, NO_PLATFORM),)))

    assert judged.kind is VerdictKind.NOT_SET_UP


def test_platforms_that_could_not_be_read() -> None:
    """That is not a home without platforms."""
    unseen = (Part(Mark.UNKNOWN, "could not check: .env: permission denied"),)

    for ladder in (DOWN, WORKS):
        judged = judge(report(ladder=ladder, platforms=unseen))
        assert judged.kind is VerdictKind.UNKNOWN
        assert judged.headline == (
            "Could not determine whether your bot is working: .env: permission denied."
        )


def test_a_message_that_waits() -> None:
    """A failed rung is never shown as the time of the last answer."""
    waits = Rung("answers out", RungState.FAILED, "a message waits for its answer", AGO)
    ladder = (*(one for one in WORKS if one.name != "answers out"), waits)
    judged = judge(report(ladder=ladder))

    assert judged.kind is VerdictKind.LIMITED
    assert judged.headline.startswith("A message has been waiting for an answer for 1 h")


def test_the_silence_began_when_it_was_stopped() -> None:
    """Not when something else was broken later."""
    later = AGO + timedelta(hours=1)
    stopped = found("NOT-RUNNING", Severity.INFO, since=AGO)
    judged = judge(report(stopped, found("NO-KEY", since=later), ladder=DOWN))

    assert "(1 h" in judged.headline


def test_what_silences_comes_first() -> None:
    """Before data and files, however severe; a gateway that does not run after damaged data."""
    down, broken = found("NOT-RUNNING"), found("BROKEN-DB", Severity.CRITICAL)
    mode = found("OTHER")

    def first(*findings: Finding) -> str:
        made = judge(report(*findings, ladder=DOWN)).primary
        return made.code if made else ""

    assert first(mode, down) == "NOT-RUNNING"
    assert first(mode, down, broken) == "BROKEN-DB"
    assert first(mode, down, broken, found("NO-KEY")) == "NO-KEY"


def test_unknown_says_why() -> None:
    """A process that cannot be seen, and checks that crashed."""
    assert judge(report(ladder=BLIND)).headline == (
        "Could not determine whether your bot is working: permission denied."
    )
    crashed = (CheckResult("a", "g", Status.CRASHED), *OK)
    judged = judge(report(checks=crashed))
    assert judged.kind is VerdictKind.UNKNOWN
    assert "1 check crashed" in judged.headline


def test_some_checks_prove_nothing_about_the_bot() -> None:
    """With --only the headline speaks of the checks that ran."""
    assert judge(report(complete=False)).headline == "Only 1 check ran and found no problem."
    bad = judge(report(found("BROKEN-DB"), complete=False))
    assert bad.headline == "Only 1 check ran and found 1 problem."
    unsure = judge(report(complete=False, checks=(CheckResult("a", "g", Status.UNKNOWN),)))
    assert unsure.kind is VerdictKind.UNKNOWN


def test_first_is_the_root_and_a_stopped_gateway_comes_last() -> None:
    """Starting a gateway does not help while something else silences the bot."""
    down, key = found("NOT-RUNNING"), found("NO-KEY")
    assert first_cause(report(down, key)) == key
    assert first_cause(report(down)) == down
    follows = found("FROZEN", Severity.CRITICAL, caused_by="NO-KEY")
    assert first_cause(report(follows, key)) == key
    lost = found("FROZEN", caused_by="NEVER-FOUND")
    assert first_cause(report(lost)) == lost
