"""What belongs together is told together."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from hermes_doctor.core.model import CheckResult, Evidence, Finding, Severity, Status
from hermes_doctor.diagnosis.examination.causes import merge_and_explain
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.plugins.log_rules import source
from hermes_doctor.diagnosis.plugins.log_rules.rule import Explanation
from hermes_doctor.diagnosis.plugins.tables.yaml_lists import RuleMistake

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def found(code: str, subject: str = "", **more: object) -> Finding:
    """Something that a check saw itself."""
    return Finding(code, Severity.ERROR, f"title of {code}", subject)._replace(**more)  # type: ignore[arg-type]


def told(code: str, subject: str = "", **more: object) -> Finding:
    """Something that a log tells of."""
    unless_ok = more.pop("unless_ok", ())
    line = (Evidence("logs/gateway.log:7", "a line"),)
    data = {"rule": "a-rule", "unless_ok": unless_ok}
    if subject:
        data["platform"] = subject.split(" ")[0]
    return found(code, subject, evidence=line, data=data, **more)


def result(id: str, status: Status) -> CheckResult:
    """How a check ended."""
    return CheckResult(id, "group", status)


@pytest.mark.parametrize("status", list(Status))
def test_what_was_looked_at_is_history(status: Status) -> None:
    """Only when the thing itself was seen to be in order, not when it could not be looked at."""
    one = told("DB-MALFORMED", unless_ok=("database-pages",))

    kept = merge_and_explain([one], [result("database-pages", status)], [])

    assert kept == ([] if status is Status.OK else [one])
    assert merge_and_explain([one], [], []) == [one]


@pytest.mark.parametrize("platform", ["webhook", "slack"])
def test_a_cause_that_is_over_is_quoted(platform: str) -> None:
    """What it has stopped is still down; another platform has nothing to do with it."""
    port = told("GW-PORT-IN-USE", "webhook", unless_ok=("listening-ports",))
    down = told("PLATFORM-DOWN", platform, next="Read the lines before this one.")
    because = Explanation("GW-PORT-IN-USE", ("PLATFORM-DOWN",), "A port.", same_platform=True)
    platforms = partial(tuple, ["webhook", "slack"])

    [kept] = merge_and_explain(
        [port, down], [result("listening-ports", Status.OK)], [because], platforms
    )

    assert kept.code == "PLATFORM-DOWN" and kept.caused_by is None
    if platform == "slack":
        assert kept == down
    else:
        assert 'is over now: "title of GW-PORT-IN-USE".' in kept.detail
        assert kept.next.startswith("Restart the gateway")
        assert kept.evidence == (*port.evidence, *down.evidence)


@pytest.mark.parametrize("start", [None, -60.0, 60.0], ids=["none runs", "earlier", "since"])
def test_a_recent_line_is_over_once_the_gateway_was_started_again(start: float | None) -> None:
    """The file is sound now, and the gateway has opened it since the line."""
    last = time.time() - 120
    one = told("DB-NOTADB", unless_ok=("database-pages",))
    one = one._replace(data={**one.data, "last": last})
    began = None if start is None else last + start

    kept = merge_and_explain([one], [result("database-pages", Status.OK)], [], fresh_start=began)

    assert kept == ([] if start == 60.0 else [one])


def about(database: str, last: float) -> Finding:
    """What a log says about one database."""
    one = told("KANBAN-CORRUPT", unless_ok=("database-header", "database-pages"))
    return one._replace(data={**one.data, "database": database, "last": last})


BOTH = ("database-header", "database-pages")


@pytest.mark.parametrize("status", list(Status))
def test_a_sound_file_is_newer_evidence_than_a_line(status: Status) -> None:
    """A board that was replaced a moment ago is sound now, whatever the log said before."""
    one = about("kanban.db", time.time() - 5)

    kept = merge_and_explain([one], [result(id, status) for id in BOTH], [])

    assert kept == ([] if status in (Status.OK, Status.PROBLEM) else [one])


def test_another_database_says_nothing_about_a_board() -> None:
    """state.db is damaged, the board is sound: its old line is over; a damaged board keeps it."""
    line = about("kanban.db", time.time() - 5)
    ended = [result("database-header", Status.PROBLEM), result("database-pages", Status.OK)]
    history = found("DB-NOTADB", "state.db", check="database-header")
    board = found("DB-NOTADB", "kanban/boards/team/kanban.db", check="database-header")

    assert merge_and_explain([line, history], ended, []) == [history]
    assert line in merge_and_explain([line, board], ended, [])


def test_a_problem_of_the_history_does_not_explain_a_board() -> None:
    """The built-in explanations attach what a log says of a board to its own file only."""
    built_in = load.load().explanations
    line = told("KANBAN-CORRUPT")
    history, board = found("DB-NOTADB", "state.db"), found("DB-NOTADB", "kanban.db")

    [_, alone] = merge_and_explain([history, line], [], built_in)
    [_, with_board] = merge_and_explain([board, line], [], built_in)

    assert (alone.caused_by, with_board.caused_by) == (None, "DB-NOTADB")


@pytest.mark.parametrize("database", ["state.db", "kanban.db"])
def test_a_line_about_damage_is_about_the_incomplete_file(database: str) -> None:
    """SQLite calls a file malformed if its end is missing; the fix is that of the file."""
    incomplete, line = found("DB-TRUNCATED", database), told("DB-MALFORMED")

    kept = merge_and_explain([incomplete, line], [], load.load().explanations)

    assert [one.caused_by for one in kept] == [None, "DB-TRUNCATED"]


def test_a_database_does_not_damage_another() -> None:
    """Two damaged files are two problems, each with its own repair."""
    history, board = found("DB-TRUNCATED", "state.db"), found("DB-MALFORMED", "kanban.db")

    kept = merge_and_explain([history, board], [], load.load().explanations)

    assert [one.caused_by for one in kept] == [None, None]


def test_a_note_does_not_silence_the_log() -> None:
    """The log shows what a note leads to, so its severity counts; the fix of the note stays."""
    note = found("KANBAN-SCHEMA", "kanban.db", severity=Severity.INFO, fix="complete-schema")

    [both] = merge_and_explain([told("KANBAN-SCHEMA"), note], [], [])

    assert (both.severity, both.fix) == (Severity.ERROR, "complete-schema")


def test_advice_of_the_log_is_left_out_beside_a_fix() -> None:
    """The fix is what to do next: `fix` must not print "Needs you: Run hermes-doctor fix"."""
    log = told("KANBAN-SCHEMA")._replace(next="Restart the gateway.")
    seen = found("KANBAN-SCHEMA", "kanban.db", severity=Severity.ERROR)

    [offered] = merge_and_explain([log, seen._replace(fix="complete-schema")], [], [])
    [alone] = merge_and_explain([log, seen], [], [])

    assert (offered.next, alone.next) == ("", "Restart the gateway.")


def test_seen_and_told_are_one() -> None:
    """The lines of the log become evidence of what was seen."""
    seen = found("DB-MALFORMED", "state.db", since=NOON)

    [both] = merge_and_explain(
        [told("DB-MALFORMED", since=NOON - timedelta(hours=1)), seen], [], []
    )

    assert both.subject == "state.db" and both.since == NOON - timedelta(hours=1)
    assert [one.where for one in both.evidence] == ["logs/gateway.log:7"]


def test_of_two_platforms_each_its_own() -> None:
    """Lines of one platform are no evidence about another."""
    seen, other = found("PLATFORM-DOWN", "telegram"), told("PLATFORM-DOWN", "discord bot1")
    assert merge_and_explain([seen, other], [], []) == [seen, other]


def test_a_chain() -> None:
    """A full disk explains the broken database, which explains the amnesia."""
    data = [
        Explanation("DISK-FULL", ("DB-MALFORMED", "AMNESIA"), "The disk was full."),
        Explanation("DB-MALFORMED", ("AMNESIA",), "Its history is broken."),
    ]

    joined = merge_and_explain(
        [found("AMNESIA"), found("DB-MALFORMED"), found("DISK-FULL")], [], data
    )

    assert {one.code: one.caused_by for one in joined} == {
        "AMNESIA": "DB-MALFORMED",
        "DB-MALFORMED": "DISK-FULL",
        "DISK-FULL": None,
    }
    assert joined[0].detail == "Its history is broken."
    [alone] = merge_and_explain([found("AMNESIA")], [], data)
    assert alone.caused_by is None


def test_a_cause_that_came_later() -> None:
    """What began after it does not explain it, except for a little."""
    data = [Explanation("A", ("B",), "Because.", first=True, slack=600)]
    for later, cause in [(-60, "A"), (5, "A"), (15, None)]:
        began = NOON + timedelta(minutes=later)
        joined = merge_and_explain([found("A", since=began), found("B", since=NOON)], [], data)
        assert joined[1].caused_by == cause
    assert merge_and_explain([found("A"), found("B", since=NOON)], [], data)[1].caused_by == "A"


def test_of_the_same_platform() -> None:
    """A dead QQ explains what goes wrong on QQ."""
    data = [Explanation("DEAD", ("REJECTED",), "Because.", same_platform=True)]
    joined = merge_and_explain(
        [found("DEAD", "qqbot 1"), *(told("REJECTED", p) for p in ("qqbot", "slack"))], [], data
    )
    assert [one.caused_by for one in joined] == [None, "DEAD", None]


@pytest.mark.parametrize(
    ("set_up", "beside", "cause"),
    [
        (("qqbot",), (), "DEAD"),
        ((), (), "DEAD"),
        (("qqbot", "telegram"), (), None),
        (("telegram",), (), None),
        (("qqbot",), ("slack",), None),
        (None, (), None),
    ],
)
def test_what_names_no_platform(
    set_up: tuple[str, ...] | None, beside: tuple[str, ...], cause: str | None
) -> None:
    """A dead QQ explains a time-out that names no platform only where there is no other."""
    data = [Explanation("DEAD", ("LATE", "TARDY"), "Because.", same_platform=True)]
    others = [told("OTHER", name) for name in beside]
    job = told("TARDY")._replace(subject="qqbot-report")
    joined = merge_and_explain(
        [found("DEAD", "qqbot 1"), told("LATE"), job, *others], [], data, lambda: set_up
    )

    assert [one.caused_by for one in joined[:3]] == [None, cause, cause]
    apart = merge_and_explain(
        [found("DEAD", "qqbot"), told("LATE", "slack")], [], data, lambda: ("qqbot",)
    )
    assert apart[1].caused_by is None, "it names another one"


def test_the_rules_blame_no_other_platform() -> None:
    """Not every approval that ran out did so on the platform that is down."""
    data = load.load().explanations
    for cause, effect in [
        (told("QQ-4009", "qqbot 1"), told("APPROVAL-TIMEOUT")),
        (told("QQ-GIVEUP", "qqbot 1"), told("APPROVAL-TIMEOUT")),
        (told("QQ-FATAL-CLOSE", "qqbot 1"), told("APPROVAL-TIMEOUT")),
        (told("APPROVAL-DEADLOCK", "qqbot 1"), told("APPROVAL-TIMEOUT")),
        (told("AUTHZ-APPROVAL-CLICK", "slack"), told("APPROVAL-TIMEOUT")),
        (told("WX-SESSION-EXPIRED", "weixin"), told("CRON-DELIVERY")),
        (told("WX-STALE-CONTEXT", "weixin"), told("CRON-DELIVERY")),
        (told("PLATFORM-DOWN", "discord"), told("CRON-DELIVERY")),
        (told("PLATFORM-DOWN", "discord"), told("CRON-DELIVERY", "telegram")),
    ]:
        own = {cause.subject.split(" ")[0]}
        both = merge_and_explain([cause, effect], [], data, partial(set, {"telegram", *own}))
        only = merge_and_explain([cause, effect], [], data, partial(set, own))
        assert both[1].caused_by is None
        assert only[1].caused_by == (None if effect.subject else cause.code)
    same = [told("PLATFORM-DOWN", "discord"), told("CRON-DELIVERY", "discord")]
    assert (
        merge_and_explain(same, [], data, lambda: {"discord", "telegram"})[1].caused_by
        == "PLATFORM-DOWN"
    )


def test_causes_are_data(tmp_path: Path) -> None:
    """They are read from a file; a circle, a typing error and a bad code are named."""
    faults: list[RuleMistake] = []
    assert source.read_explanations(tmp_path, faults) == []
    path = tmp_path / source.EXPLANATIONS
    path.write_text("explanations:\n- {cause: A-B, explains: [C], because: So., slack: 5m}\n")
    assert source.read_explanations(tmp_path, faults) == [
        Explanation("A-B", ("C",), "So.", slack=300)
    ]
    path.write_text("explanations:\n- {explains: [C], because: {A: One., B: Two.}}\n")
    both = [Explanation("A", ("C",), "One."), Explanation("B", ("C",), "Two.")]
    assert source.read_explanations(tmp_path, faults) == both
    assert faults == []
    for text, what in [
        (
            "explanations:\n- {cause: A, explains: [B], because: x}\n"
            "- {cause: B, explains: [A], because: y}",
            "circle: A → B → A",
        ),
        ("explanations:\n- {cause: a, explains: [B], because: x}", "'a' is not a code"),
        ("explanations:\n- {cause: A, explain: [B], because: x}", "is 'explains' meant?"),
        ("explanations:\n- {cause: A, because: x}", "`explains` is missing"),
        ("explanations:\n- {explains: [A], because: {}}", "`because` is missing"),
        ("explanations:\n- {explains: [A], because: {B: 1}}", "`B` must be a text"),
        ("explanations:\n- {explains: [A], because: {1: x}}", "1 is not a code"),
    ]:
        path.write_text(text)
        faults = []
        source.read_explanations(tmp_path, faults)
        assert what in str(faults[0])


def test_two_rules_about_one_thing() -> None:
    """What two rules tell of the same subject is one finding, that of the worse."""
    mild = told("QQ-FATAL-CLOSE", "qqbot 1", severity=Severity.WARNING)
    bad = told("QQ-FATAL-CLOSE", "qqbot 1", severity=Severity.CRITICAL, title="for good")
    other = told("QQ-FATAL-CLOSE", "qqbot 2")

    one, two = merge_and_explain([mild, bad, other], [], [])

    assert (one.title, len(one.evidence), two.subject) == ("for good", 2, "qqbot 2")


@pytest.mark.parametrize(
    "login", ["QQ-TOKEN", "TG-BAD-TOKEN", "DC-BAD-TOKEN", "SLACK-TOKEN", "MATRIX-TOKEN"]
)
def test_a_rejected_login_is_the_cause(login: str) -> None:
    """A platform that rejects the login is down because of that, and so is the whole bot."""
    rejected = told(login, "qqbot 1")
    effects = [told("PLATFORM-DOWN", "qqbot"), told("PLATFORM-NONE")]

    joined = merge_and_explain(
        [rejected, *effects], [], load.load().explanations, lambda: ["qqbot"]
    )

    assert {one.code: one.caused_by for one in joined} == {
        login: None,
        "PLATFORM-DOWN": login,
        "PLATFORM-NONE": login,
    }


def test_what_stops_the_start_is_the_cause() -> None:
    """An open policy explains that no gateway runs, unless somebody stopped it."""
    refuse, down = found("AUTHZ-OPEN-REFUSE", "weixin dm_policy"), found("GW-DOWN", "gateway")
    stopped = down._replace(data={"on_purpose": True})
    for one, cause in ((down, "AUTHZ-OPEN-REFUSE"), (stopped, None)):
        joined = merge_and_explain([refuse, one], [], load.load().explanations)
        assert joined[1].caused_by == cause


def test_a_gateway_that_never_ran_ended_nothing() -> None:
    """A stuck task needs a gateway that ran; a scheduled job only needs one that runs."""
    down = found("GW-DOWN", "gateway", data={"never": True})
    joined = merge_and_explain(
        [down, found("KANBAN-STUCK"), found("CRON-NO-GATEWAY")], [], load.load().explanations
    )
    assert [one.caused_by for one in joined] == [None, None, "GW-DOWN"]


def test_the_log_knows_better() -> None:
    """A check that calls something harmless gives way to a log that shows the harm."""
    mild = found("GW-STALE-PID", "gateway.pid", severity=Severity.INFO)
    mild = mild._replace(data={"pid": 7})
    told_so = told("GW-STALE-PID", severity=Severity.WARNING, next="Do it.")

    [raised] = merge_and_explain([mild, told_so], [], [])

    assert raised.data == {"pid": 7}
    assert (raised.severity, raised.next) == (Severity.WARNING, "Do it.")
    assert raised.subject == "gateway.pid"
