"""Whether the bot answers people, and which problem to look at first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.model import (
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
from hermes_doctor.diagnosis.examination.liveness import ANSWERED
from hermes_doctor.diagnosis.examination.ranking import Problems
from hermes_doctor.diagnosis.examination.verdict import first_cause, judge
from hermes_doctor.render.report import lines

NOW = datetime.now(UTC)
AGO = NOW - timedelta(hours=1, minutes=1)
OK = (CheckResult("a", "g", Status.OK),)
RUNS = (Rung("process", RungState.OK, "process 42", NOW - timedelta(days=3)),)
CONNECTED = (*RUNS, Rung("platforms", RungState.OK, "telegram", NOW))
WORKS = (*CONNECTED, Rung("answers out", RungState.OK, "", NOW))
NO_MESSAGE = Rung("messages in", RungState.UNKNOWN, "no message since it started")
DOWN = (Rung("process", RungState.FAILED, "no gateway of this home runs", AGO),)
BLIND = (Rung("process", RungState.UNKNOWN, "permission denied"),)
EFFECTS = {
    "FROZEN": Effect("gateway", "frozen"),
    "NOT-RUNNING": Effect("down", "not running"),
    "OPEN": Effect("start", "refuses to start"),
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


def test_an_answered_question_shows_that_it_works() -> None:
    """A question through the gateway counts, also if no message has come in."""
    asked = Rung("answers out", RungState.OK, ANSWERED, datetime.now(UTC) - timedelta(minutes=3))
    judged = judge(report(ladder=(*WORKS, asked)))

    assert judged.kind is VerdictKind.WORKING
    assert judged.headline == "Your bot is working. It answered a question 3 min ago."


def test_not_tried_yet_is_not_working() -> None:
    """Nothing was asked since the start, so nobody knows whether it would be answered."""
    judged = judge(report(ladder=(*CONNECTED, NO_MESSAGE)))
    assert judged.kind is VerdictKind.NOT_TRIED
    assert judged.headline == "Your bot is running, not tried yet: no message since it started."
    limited = judge(report(found("OTHER", Severity.WARNING), ladder=(*CONNECTED, NO_MESSAGE)))
    assert limited.headline == "Your bot is running, not tried yet. 1 warning."
    assert "has been running since" in judge(report()).headline


def test_a_log_that_does_not_reach_back_to_the_start() -> None:
    """What older lines say is unknown, so "not tried yet" would be a guess."""
    newest = NO_MESSAGE._replace(since=AGO)
    judged = judge(report(ladder=(*CONNECTED, newest)))
    assert judged.kind is VerdictKind.NOT_TRIED
    assert judged.headline.startswith("Your bot is running. No message since ")


def test_a_first_message_that_has_no_answer_yet() -> None:
    """Neither "working" nor "not tried yet" would be true."""
    came = Rung("messages in", RungState.OK, "", NOW - timedelta(seconds=5))
    judged = judge(report(ladder=(*CONNECTED, came)))
    assert judged.kind is VerdictKind.NOT_TRIED
    assert judged.headline.startswith("Your bot is running. Last message ")
    assert judged.headline.endswith(" ago, no answer yet.")


def test_a_fallback_model_that_answers() -> None:
    """The main model is refused, but people get answers."""
    refused = found("NO-KEY", Severity.WARNING, data={"fallback": "deepseek, chat"})
    judged = judge(report(refused, ladder=WORKS))
    assert judged.kind is VerdictKind.LIMITED
    assert judged.headline == "Your bot is working with its fallback model: title of NO-KEY."


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
        "The gateway is running. 1 warning."
    )
    assert judge(report(found("BROKEN-DB"))).headline == (
        "The gateway is running. Problem: title of BROKEN-DB."
    )


def test_several_problems_are_counted() -> None:
    """The headline says how many can be repaired, and which to look at first."""
    judged = judge(report(found("NO-KEY", fix="cure"), found("FROZEN"), found("BROKEN-DB")))

    assert judged.headline == ("Your bot is not working: title of FROZEN (1 of 3).")


def test_the_only_platform() -> None:
    """A platform that is silent is the whole bot if there is no other one."""
    one = report(found("REJECTED", subject="qqbot", since=AGO), platforms=(Part(Mark.BAD, QQ),))

    judged = judge(one)

    assert judged.kind is VerdictKind.NOT_WORKING
    assert judged.headline.startswith("Nobody on QQ has had an answer since ")


def test_one_of_two_platforms() -> None:
    """The other one still works."""
    both = (Part(Mark.BAD, QQ), Part(Mark.GOOD, TELEGRAM))

    judged = judge(report(found("REJECTED", subject="qqbot"), platforms=both, ladder=WORKS))

    assert judged.kind is VerdictKind.LIMITED
    assert judged.headline == "Your bot is working, but nobody on QQ gets an answer."
    untried = judge(report(found("REJECTED", subject="qqbot"), platforms=both))
    assert untried.headline == "Your bot is running, but nobody on QQ gets an answer."


def test_a_platform_that_is_not_connected_yet() -> None:
    """Nobody gets an answer, although no check has called that a problem yet."""
    judged = judge(report(platforms=(Part(Mark.BAD, "QQ: retrying"),)))

    assert judged.kind is VerdictKind.NOT_WORKING
    assert judged.headline == "Your bot is not connected: QQ: retrying."


def test_a_damaged_database_is_a_limit() -> None:
    """The bot answers, but does not remember."""
    judged = judge(report(found("BROKEN-DB"), ladder=WORKS))

    assert judged.kind is VerdictKind.LIMITED
    assert judged.headline == "Your bot is working with limits: title of BROKEN-DB."


@pytest.mark.parametrize("severity", [Severity.ERROR, Severity.INFO])
def test_what_is_broken_comes_before_the_start(severity: Severity) -> None:
    """Whether the gateway crashed or was stopped on purpose."""
    broken = found("BROKEN-DB", Severity.CRITICAL, fix="cure")
    stopped = report(found("NOT-RUNNING", severity), broken, ladder=DOWN)
    judged = judge(stopped)

    assert "Repair this" in judged.headline
    assert "title of BROKEN-DB" in judged.headline
    assert judged.primary is broken
    screen = [line.text for line in lines(stopped._replace(verdict=judged))]
    first = next(line for line in screen if line.startswith("Next:"))
    assert first.startswith("Next: hermes-doctor fix ")
    assert not [line for line in screen if "gateway run" in line or "fix NOT-RUNNING" in line]


def test_one_chat_is_not_the_whole_bot() -> None:
    """The others still get answers."""
    judged = judge(report(found("NO-KEY", data={"one_chat": True}), ladder=WORKS))

    assert judged.kind is VerdictKind.LIMITED


def test_a_stopped_bot() -> None:
    """A gateway that was stopped on purpose is not a problem, but nobody gets an answer."""
    judged = judge(report(found("NOT-RUNNING", Severity.INFO, since=AGO), ladder=DOWN))

    assert judged.kind is VerdictKind.STOPPED
    assert judged.headline.startswith("Your bot has been stopped since ")


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


@pytest.mark.parametrize(
    ("ladder", "kind", "headline"),
    [
        (WORKS, VerdictKind.LIMITED, "Your bot is working now, but its next start will fail: "),
        (CONNECTED, VerdictKind.LIMITED, "Your bot is running now, but its next start will fail: "),
        (DOWN, VerdictKind.NOT_WORKING, "Your bot is not working: "),
    ],
)
def test_what_only_the_next_start_refuses(
    ladder: tuple[Rung, ...], kind: VerdictKind, headline: str
) -> None:
    """A gateway that was started before answers; one that does not run will not answer."""
    judged = judge(report(found("OPEN", Severity.CRITICAL), ladder=ladder))

    assert (judged.kind, judged.headline) == (kind, f"{headline}title of OPEN.")


def test_a_start_that_is_failing_now() -> None:
    """A gateway that is still starting has not started before the setting."""
    starting = PartState("gateway", (Part(Mark.BAD, "starting (process 42), but refuses"),))
    ill = report(found("OPEN", Severity.CRITICAL))

    assert judge(ill).kind is VerdictKind.LIMITED
    assert judge(ill._replace(states=(starting, *ill.states))).kind is VerdictKind.NOT_WORKING


def test_what_ends_with_its_cause() -> None:
    """If all problems of a group are repaired, what they caused needs no work of its own."""
    cause = found("BROKEN-DB", subject="state.db")
    effect = found("NOT-RUNNING", caused_by="BROKEN-DB")
    other = found("NO-KEY")
    tree = Problems(report(cause, effect, other))

    assert tree.consequences_of([cause]) == [effect]
    assert tree.consequences_of([effect, other]) == []
