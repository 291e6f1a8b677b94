"""Outputs: the report for people, its causes and consequences, widths and encodings."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from hermes_doctor.core.message import clock, ordinal, text as message
from hermes_doctor.core.model import (
    CheckResult,
    Evidence,
    Mark,
    Part,
    PartState,
    Report,
    Severity,
    Status,
)
from hermes_doctor.core.terminal import console, lines, show
from hermes_doctor.core.terminal.lines import rows_of
from hermes_doctor.render import document, report as render_report, report as screen
from hermes_doctor.render.report import recurrence
from tests.helpers import histories
from tests.helpers.example_reports import NOW, found, report
from tests.helpers.watch_parts import finding


def text(one: Report, *, verbose: bool = False) -> str:
    """The report as a pipe gets it."""
    return "\n".join(line.text for line in render_report.lines(one, verbose=verbose))


def depth(shown: str, code: str) -> int:
    """How far the line of a finding is indented; it must be there exactly once."""
    [line] = [line for line in shown.splitlines() if f"title of {code}" in line]
    return len(line) - len(line.lstrip(" "))


# -- causes and consequences ---------------------------------------------------------------


def test_consequence_under_its_cause() -> None:
    """A consequence stands below its cause and deeper, even when it is worse."""
    shown = text(report(found("LATE", "ROOT", severity=Severity.CRITICAL), found("ROOT")))

    assert depth(shown, "ROOT") < depth(shown, "LATE")
    assert shown.index("title of ROOT") < shown.index("title of LATE")
    assert "    └ title of LATE  LATE" in shown


def test_chain() -> None:
    """Everything that followed from a cause stands below it, in the order of time."""
    early, late = NOW, NOW.replace(hour=4)
    shown = text(report(found("C", "B", since=late), found("A"), found("B", "A", since=early)))

    assert depth(shown, "A") < depth(shown, "B") == depth(shown, "C")
    assert shown.index("title of B") < shown.index("title of C")
    assert f"└ {clock(early)} title of B" in shown


def test_several_consequences() -> None:
    """One cause, many consequences, other findings beside it."""
    shown = text(report(found("A"), found("B", "A"), found("C", "A"), found("Z")))

    assert depth(shown, "B") == depth(shown, "C") > depth(shown, "A") == depth(shown, "Z")


def test_missing_cause() -> None:
    """A finding whose cause was not found stands for itself."""
    assert depth(text(report(found("B", "GONE"))), "B") == 0


@pytest.mark.parametrize(
    "pairs",
    [
        {"A": "A"},
        {"A": "B", "B": "A"},
        {"A": "B", "B": "C", "C": "A"},
        {"A": "B", "B": "A", "C": "A", "D": "C"},
    ],
)
def test_circles(pairs: dict[str, str]) -> None:
    """Findings that name each other are all shown, once each, and nothing hangs."""
    shown = text(report(*(found(code, cause) for code, cause in pairs.items())))

    for code in pairs:
        depth(shown, code)


def test_two_findings_of_the_causing_code() -> None:
    """When the cause was found twice, in different ways, its consequence is still shown once."""
    shown = text(
        report(
            found("A", subject="one", title="first cause", severity=Severity.CRITICAL),
            found("A", subject="two", title="second cause", detail="another"),
            found("B", "A"),
        )
    )

    assert depth(shown, "B") > 0
    assert "first cause" in shown
    assert "second cause" in shown


# -- groups --------------------------------------------------------------------------------


def test_same_finding_on_many_subjects() -> None:
    """Findings that differ in their subject only are one block with the names."""
    many = [found("A", subject=f"s{n:02}", title=f"title of A on s{n:02}") for n in range(12)]

    shown = text(report(*many))

    assert "1 ✗ title of A on s00 (and 11 more)  A" in shown
    assert "s00, s01" in shown
    assert "s07 and 4 more" in shown


def test_with_and_without_a_fix() -> None:
    """Only the problems that can be repaired are offered."""
    shown = text(
        report(
            found("A", subject="curable", title="curable is bad", fix="safe-fix"),
            found("B", subject="hopeless", title="hopeless is bad"),
        )
    )

    assert re.search(r"Next: hermes-doctor fix +show the repair of 1; changes nothing", shown)
    assert "hermes-doctor explain A" in shown
    assert "hermes-doctor fix" not in text(report(found("B")))


def test_a_fix_that_refuses_is_not_offered() -> None:
    """Its reason is shown instead."""
    one = report(found("A", fix="safe-fix"))
    refused = one._replace(refusals={("A", "x", "safe-fix"): "systemd is not running."})

    assert "hermes-doctor fix" in text(one)
    assert "hermes-doctor fix" not in text(refused)
    assert "systemd is not running." in text(refused)


# -- the first screen ----------------------------------------------------------------------


def test_first_line() -> None:
    """What was examined, and which Hermes it has."""
    one = report()
    assert text(one).startswith("hermes-doctor ")
    assert "/srv/hermes · Hermes 0.19.0\n" in text(one)
    assert "/srv/hermes · no Hermes found\n" in text(one._replace(hermes_version=None))


def test_states() -> None:
    """A line for each part of the bot, with a mark for each thing in it."""
    states = (
        PartState("gateway", (Part(Mark.GOOD, "running"),)),
        PartState("platforms", (Part(Mark.GOOD, "QQ"), Part(Mark.BAD, "Telegram: login rejected"))),
        PartState("data", (Part(Mark.UNKNOWN, "could not check: dark"),)),
    )

    shown = text(report()._replace(states=states))

    assert "  gateway    ✓ running\n" in shown
    assert "  platforms  ✓ QQ   ✗ Telegram: login rejected\n" in shown
    assert "  data       ? could not check: dark\n" in shown


def test_seven_problems_fit_a_screen() -> None:
    """With many problems only those that silence the bot have a second line."""
    said = "A sentence about the effect of this problem that is about as long as they get."
    some = [found(f"CODE-{n}", detail=said, severity=Severity.WARNING) for n in range(5)]
    bad = [found("SILENT", subject=str(n), title=f"silent {n}", detail=said) for n in "ab"]
    bad[1] = bad[1]._replace(title="another title")
    states = tuple(PartState(name, (Part(Mark.BAD, "bad"),)) for name in "abcd")

    made = list(render_report.lines(report(*some, *bad)._replace(states=states)))
    shown = "\n".join(line.text for line in made)

    assert sum(lines.rows_of(line, 80) for line in made) < 24
    assert shown.count(said) == 2
    assert shown.index("silent a") < shown.index("CODE-0")


def test_verbose_shows_everything_and_repeats_the_verdict() -> None:
    """All evidence, notes, and skipped checks; the verdict is where the eye is."""
    checks = (CheckResult("d", "secrets", Status.SKIPPED, reason="no secrets"),)
    one = report(
        found("A", evidence=tuple(Evidence("log", f"line {n}") for n in range(5))),
        found("N", severity=Severity.INFO),
        checks=checks,
    )

    assert "line 4" not in text(one)
    assert "title of N" not in text(one)
    shown = text(one, verbose=True)
    assert "line 4" in shown
    assert "· title of N  N" in shown
    assert "Skipped d: no secrets" in shown
    assert one.verdict is not None
    assert shown.splitlines()[-1] == f"? {one.verdict.headline}"


def test_statuses() -> None:
    """The one word of the JSON document agrees with the sentence."""
    crashed = CheckResult("a", "g", Status.CRASHED)
    assert report().status is Status.OK
    assert report(found("A", severity=Severity.INFO)).status is Status.OK
    assert report(found("A", severity=Severity.WARNING)).status is Status.PROBLEM
    assert report(checks=(crashed,)).status is Status.UNKNOWN


def test_parts_of_a_finding() -> None:
    """Evidence, detail, what to do, and what to type."""
    shown = text(
        report(
            found(
                "A",
                detail="This is why.",
                evidence=(Evidence("a.log:3", "it broke"),),
                next="Do this.",
                fix="asking-fix",
            ),
            found("B", fix="hand-fix"),
            options=" --home '/my home'",
        )
    )

    assert "    a.log:3  it broke" in shown
    assert "This is why." in shown
    assert "Do this." in shown
    assert "Next: hermes-doctor fix --home '/my home'  show repairs of 1-2; changes" in shown


def test_groups_in_order() -> None:
    """What passed is one line; a check without an answer says why."""
    checks = (
        CheckResult("a", "databases", Status.OK),
        CheckResult("b", "databases", Status.OK),
        CheckResult("c", "secrets", Status.OK),
        CheckResult("e", "odd", Status.UNKNOWN, reason="it is dark"),
        CheckResult("f", "odd", Status.CRASHED, reason="KeyError at f.py:3"),
    )

    shown = text(report(checks=checks))
    assert "3 checks passed in 0.1 s." in shown
    assert "? Could not check e: it is dark (and 1 more)" in shown

    every = text(report(checks=checks), verbose=True)
    assert "✓ Passed: databases 2, secrets 1." in every
    assert "? The check f crashed: KeyError at f.py:3" in every


def test_home_becomes_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's folder is written ~: reports get pasted in public."""
    monkeypatch.setenv("HOME", "/srv")
    assert "~/hermes" in text(report())
    assert lines.tilde("/srvx/hermes") == "/srvx/hermes"
    assert lines.tilde("/srv") == "~"


# -- terminals -----------------------------------------------------------------------------

LONG = report(
    found(
        "LONG-CODE-WITH-MANY-WORDS", title="word " * 60, detail="数据库损坏" * 40, fix="safe-fix"
    ),
    found("B", "LONG-CODE-WITH-MANY-WORDS", evidence=(Evidence("x" * 30, "y" * 200),)),
    found("C", "B", subject="e\u0301" * 50, detail="é " * 100),
    checks=(CheckResult("a", "g", Status.UNKNOWN, reason="why " * 50),),
)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_width(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """No row but a command of its own is wider than the terminal, nor than 100 columns."""
    monkeypatch.setenv("COLUMNS", str(width))
    out = io.StringIO()

    console.show(render_report.lines(LONG), out)

    commands = re.compile(r"\s*hermes-doctor (check|fix|undo|explain|backup)\b")
    rows = [row for row in out.getvalue().splitlines() if not commands.match(row)]
    assert max(map(cell_len, rows)) <= min(width, 100)
    assert "".join(out.getvalue().split()).count("word") == 60, "nothing is lost"


def test_steering_characters() -> None:
    """Nothing that a file or its name holds can steer the terminal."""
    one = report(found("A", title="a\x1b[2Jb\rc\nd", subject="\u202ex", detail="\x9b31m"))

    shown = text(one)

    assert not {"\x1b", "\r", "\u202e", "\x9b"} & set(shown)
    assert "a�[2Jb�c�d" in shown


@pytest.mark.parametrize("encoding", ["ascii", "gbk", "latin-1", "cp1252", "utf-8", "big5"])
def test_encodings(encoding: str) -> None:
    """Every encoding gets what it can show, and none an error."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding)

    show.show(render_report.lines(LONG), out)
    out.flush()

    shown = raw.getvalue().decode(encoding)
    assert "LONG-CODE-WITH-MANY-WORDS" in shown
    assert ("✗" in shown) == (encoding == "utf-8")


# -- the document --------------------------------------------------------------------------


def test_document_of_a_report() -> None:
    """Every field of the contract, with the fix null where there is none."""
    made = document.of_report(
        report(
            found("A", "B", since=NOW, fix="safe-fix", evidence=(Evidence("w", "v"),)),
            found("C", fix="unheard-of"),
            checks=(CheckResult("a", "g", Status.OK, 0.12345),),
        )
    )

    assert made["summary"] == {
        "status": "problem",
        "counts": {"critical": 0, "error": 2, "warning": 0, "info": 0},
        "muted": 0,
        "off": [],
        "checks": {"ok": 1, "problem": 0, "skipped": 0, "unknown": 0, "crashed": 0},
        "verdict": "unknown",
        "headline": "Could not determine whether your bot is working: "
        "the gateway could not be examined.",
        "primary": {"code": "A", "subject": "x", "title": "title of A"},
    }
    assert made["checks"] == [{"id": "a", "status": "ok", "seconds": 0.1235, "reason": None}]
    first, second = made["findings"]
    assert first["fix"] == {
        "id": "safe-fix",
        "safety": "safe",
        "command": "hermes-doctor fix A --apply",
        "refusal": None,
    }
    assert first["next"] == "hermes-doctor fix A --apply"
    assert second["next"] == "hermes-doctor explain C"
    assert first["evidence"] == [{"where": "w", "what": "v"}]
    assert (first["since"], first["caused_by"]) == (NOW.isoformat(), "B")
    assert second["fix"] is None
    assert "data" not in first


def test_document_of_a_refused_fix() -> None:
    """It says why, and gives no command that would fail."""
    one = report(found("A", fix="safe-fix"))
    refused = one._replace(refusals={("A", "x", "safe-fix"): "systemd is not running."})

    [finding] = document.of_report(refused)["findings"]
    assert finding["fix"] == {
        "id": "safe-fix",
        "safety": "safe",
        "command": None,
        "refusal": "systemd is not running.",
    }
    assert finding["next"] == "systemd is not running."


def test_document_has_the_template_of_a_title() -> None:
    """So that another program can translate and count it."""
    title = message("{platform} rejects the app secret", platform="QQ")

    [finding] = document.of_report(report(found("A", title=title)))["findings"]

    assert finding["title"] == "QQ rejects the app secret"
    assert finding["message"] == {
        "template": "{platform} rejects the app secret",
        "values": {"platform": "QQ"},
    }


def test_document_is_plain_ascii() -> None:
    """Any terminal and any parser takes it, lone surrogates of file names included."""
    made = document.dump(document.of_report(report(found("A", title="中文 \udce9"))))

    assert made.isascii()
    assert json.loads(made)["findings"][0]["title"] == "中文 \udce9"


def test_several_homes() -> None:
    """The worst home decides the status; counts are summed."""
    reports = [report(), report(found("A")), report(found("A"), found("B"))]
    made = json.loads(document.dump_reports(reports))

    assert made["schema"] == "hermes-doctor/reports/1"
    assert made["summary"]["status"] == "problem"
    assert made["summary"]["counts"]["error"] == 3
    assert [one["schema"] for one in made["homes"]] == ["hermes-doctor/report/1"] * 3


def test_a_second_command_is_indented_like_the_first() -> None:
    """Also where its purpose does not fit beside it; one that fills the row begins at its start."""
    out = io.StringIO()
    short, long = "hermes-doctor explain CFG-YAML", "hermes-doctor " + "x" * 40
    texts = ("Next: ", short), ("      ", short), ("      ", long)
    made = [
        lines.row(lead, (command, "command"), "  more about this problem", hang=8)
        for lead, command in texts
    ]

    console.show(made, out, Console(file=out, width=56, color_system=None))

    shown = out.getvalue().splitlines()
    assert shown[::2] == [f"Next: {short}", f"      {short}", long]
    assert {line.strip() for line in shown[1::2]} == {"more about this problem"}


def test_beside_the_title_or_below_it() -> None:
    """At most 80 columns with the code at the right edge."""
    short = finding("A")
    report = histories.found(short)._replace(times={short.key: 4})
    assert recurrence(report, short, "", 80) == (" · 4th time in 7 days", "")
    long = short._replace(title="x" * 58)
    assert recurrence(report, long, "", 80) == ("", "4th time in 7 days")
    for length in range(40, 70):
        title = short._replace(title="y" * length)
        beside, _ = recurrence(report, title, "", 80)
        if beside:
            [line] = [
                one
                for one in screen.lines(histories.found(title)._replace(times=report.times))
                if "y" in one.text
            ]
            assert rows_of(line, 80) == 1 and "4th" in line.text


def test_the_first_time_is_not_mentioned() -> None:
    """Neither is anything without a history."""
    one = finding("A")
    for times in (None, {}, {one.key: 1}):
        report = histories.found(one)._replace(times=times)
        assert recurrence(report, one, "", 80) == ("", "")
        assert not any("in 7 days" in line.text for line in screen.lines(report))


def test_in_json() -> None:
    """A number, or null without a history."""
    one = finding("A")
    known = document.of_report(histories.found(one)._replace(times={one.key: 2}))
    unknown = document.of_report(histories.found(one))

    assert known["findings"][0]["times_in_7_days"] == 2
    assert unknown["findings"][0]["times_in_7_days"] is None


def test_ordinals() -> None:
    """As people write them."""
    wanted = {
        1: "1st",
        2: "2nd",
        3: "3rd",
        4: "4th",
        11: "11th",
        12: "12th",
        13: "13th",
        21: "21st",
    }
    wanted |= {101: "101st", 111: "111th", 1002: "1,002nd"}

    assert {number: ordinal(number) for number in wanted} == wanted
