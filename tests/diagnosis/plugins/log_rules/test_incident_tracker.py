"""Lines become incidents: how often, by whom, and whether it is over."""

from __future__ import annotations

from typing import Any

from hermes_doctor.backup.records.receipts import Handled
from hermes_doctor.diagnosis.plugins.log_rules.findings import findings
from hermes_doctor.diagnosis.plugins.log_rules.incident import Incident
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import MOST_OF_ONE, IncidentTracker
from hermes_doctor.diagnosis.plugins.log_rules.rule import LinePattern, Rule
from hermes_doctor.diagnosis.plugins.tables import patterns
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers.rule_lines import said

NOW = 1_000_000.0
CLOSED = r"^\[(?P<account>\w+)\] closed"
BACK = r"^\[(?P<account>\w+)\] back"


def line(pattern: str, **more: Any) -> LinePattern:
    """A line of a rule."""
    return LinePattern(pattern, patterns.literals(pattern), **more)


def rule(**more: Any) -> Rule:
    """A rule about connections that are closed, and come back."""
    given = {"line": line(CLOSED), "cleared_by": (line(BACK, level="INFO"),), **more}
    return Rule("closed", "QQ-4009", "error", "{account} is closed", **given)


def incidents(one: Rule, *entries: LogEntry) -> list[Incident]:
    """What these entries come to."""
    ledger = IncidentTracker([one], now=NOW)
    for each in sorted(entries, key=lambda entry: entry.at):
        ledger.add_entry(each)
    return ledger.incidents()


def open_(one: Rule, *entries: LogEntry) -> list[str]:
    """The findings that these entries come to, by their title."""
    return [f.title for f in findings(incidents(one, *entries), lambda e: f"{e.source}:{e.offset}")]


def test_not_over() -> None:
    """A line that nothing came after."""
    [found] = findings(
        incidents(rule(), said(NOW - 60, "[one] closed, token=abc")), lambda e: "log:1"
    )

    assert (found.code, found.title, found.subject) == ("QQ-4009", "one is closed", "one")
    assert found.since is not None and found.since.timestamp() == NOW - 60
    assert [(e.where, e.what[-12:]) for e in found.evidence] == [("log:1", "[one] closed")]


def test_over() -> None:
    """A later line of the same account clears it, one of another does not, an earlier neither."""
    closed = said(NOW - 60, "[one] closed")
    assert open_(rule(), closed, said(NOW - 50, "[one] back", "INFO")) == []
    assert open_(rule(), closed, said(NOW - 50, "[two] back", "INFO")) == ["one is closed"]
    assert open_(rule(), closed, said(NOW - 70, "[one] back", "INFO")) == ["one is closed"]
    again = said(NOW - 40, "[one] closed")
    assert open_(rule(), closed, said(NOW - 50, "[one] back", "INFO"), again) == ["one is closed"]


def test_a_new_start_is_a_new_life() -> None:
    """What the last life complained of is history, unless the rule says that it outlives it."""
    closed = said(NOW - 60, "[one] closed")
    start = said(NOW - 30, "Starting Hermes Gateway...", "INFO", "gateway.run")
    assert open_(rule(), closed, start) == []
    assert open_(rule(outlives_start=True), closed, start) == ["one is closed"]
    assert open_(rule(), start, said(NOW - 20, "[one] closed")) == ["one is closed"]


def test_what_was_repaired_is_over() -> None:
    """A run that repaired the code ends its incidents; newer lines are a new incident."""

    def found(*ats: float, code: str = "QQ-4009") -> list[str]:
        run = Handled(NOW - 50, NOW - 40, proved=False, codes=frozenset({code}))
        ledger = IncidentTracker([rule(outlives_start=True)], now=NOW, handled=[run])
        for at in ats:
            ledger.add_entry(said(at, "[one] closed"))
        return [one.title for one in findings(ledger.incidents(), lambda _: "log:1")]

    assert found(NOW - 60) == []
    assert found(NOW - 60, NOW - 30) == ["one is closed"]
    assert found(NOW - 60, code="TG-409") == ["one is closed"]


def test_counted_lives() -> None:
    """Starts and stops of this tool do not count, and a gateway that stays up ends the counting."""

    def number(*ats: float, proved: bool, counts: bool = True) -> int:
        run = Handled(NOW - 50, NOW - 40, proved=proved)
        one = rule(outlives_start=True, counts_lives=counts)
        ledger = IncidentTracker([one], now=NOW, handled=[run])
        for at in ats:
            ledger.add_entry(said(at, "[one] closed"))
        return sum(each.number for each in ledger.incidents() if each.cleared_at is None)

    ends = (NOW - 70, NOW - 60, NOW - 45, NOW - 30)
    assert number(*ends, proved=True) == 1, "only the newest is after the repair"
    assert number(*ends, proved=False) == 3, "one was by this tool"
    assert number(*ends, proved=True, counts=False) == 4, "a rule about something else"


def test_time_to_recover() -> None:
    """Nothing is said before it had the time to come back."""
    one = rule(settle=120.0)
    assert open_(one, said(NOW - 60, "[one] closed")) == []
    assert open_(one, said(NOW - 130, "[one] closed")) == ["one is closed"]
    [pending] = incidents(one, said(NOW - 60, "[one] closed"))
    assert pending.pending
    again = said(NOW - 10, "[one] closed")
    assert open_(one, said(NOW - 130, "[one] closed"), again) == ["one is closed"]


def test_a_threshold() -> None:
    """So many, in so short a time; what came back in between begins anew."""
    one = rule(threshold=3, within=100.0)
    slow = [said(NOW - 500 + 60 * n, "[one] closed") for n in range(5)]
    assert open_(one, *slow) == []
    fast = [said(NOW - 500 + 50 * n, "[one] closed") for n in range(3)]
    assert open_(one, *fast) == ["one is closed"]
    assert open_(one, *fast, said(NOW - 440, "[one] back", "INFO")) == []
    others = [said(NOW - 10 * n, f"[{name}] closed") for n, name in enumerate("abc")]
    assert open_(one, *others) == []


def test_outside_the_window() -> None:
    """Older than the window is history."""
    one = rule(window=600.0)
    assert open_(one, said(NOW - 700, "[one] closed")) == []
    assert open_(one, said(NOW - 500, "[one] closed")) == ["one is closed"]


def test_level_and_logger() -> None:
    """A line of another logger, or of a lower level, is another line."""
    one = rule(line=line(CLOSED, level="ERROR", loggers=("gateway.qq",)))
    for entry in (
        said(NOW - 9, "[one] closed", "WARNING", "gateway.qq"),
        said(NOW - 9, "[one] closed", "ERROR", "gateway.qqbot"),
        said(NOW - 9, "[one] closed", "ERROR", "gateway"),
    ):
        assert open_(one, entry) == []
    for logger in ("gateway.qq", "gateway.qq.adapter"):
        assert open_(one, said(NOW - 9, "[one] closed", "CRITICAL", logger)) != []


def test_what_must_follow() -> None:
    """A line that counts only when another comes after it, soon, and about the same."""
    follow = line(r"^\[(?P<account>\w+)\] same error")
    one = rule(followed_by=follow, follows_within=60.0, cleared_by=())
    closed = said(NOW - 500, "[one] closed")
    assert open_(one, closed) == []
    assert open_(one, closed, said(NOW - 450, "[one] same error")) == ["one is closed"]
    assert open_(one, closed, said(NOW - 430, "[one] same error")) == []
    assert open_(one, closed, said(NOW - 450, "[two] same error")) == []
    assert open_(one, closed, said(NOW - 510, "[one] same error")) == []


def test_by_session() -> None:
    """Sessions are counted and cleared one by one, and told together."""
    one = Rule(
        "stuck", "CTX-OVERFLOW", "warning", "it overflows", line("overflow"),
        cleared_by=(line("done", level="INFO"),), per_session=True,
    )  # fmt: skip
    said_by = [said(NOW - 100 + n, "overflow", session=f"s{n}") for n in range(3)]
    cleared = said(NOW - 50, "done", "INFO", session="s1")

    found = incidents(one, *said_by, cleared)
    assert [(i.key["session"], i.cleared_at is None) for i in found] == [
        ("s0", True),
        ("s1", False),
        ("s2", True),
    ]
    [finding] = findings(found, lambda e: "log")
    assert "2 times" in finding.detail and "in 2 sessions" in finding.detail


def test_a_flood() -> None:
    """A thousand lines are one finding with three quotes, a flood of names is bounded."""
    many = [said(NOW - 5000 + n, "[one] closed") for n in range(1000)]
    [incident] = incidents(rule(), *many)
    assert (incident.number, len(incident.quotes)) == (1000, 3)
    assert [q.entry.at for q in incident.quotes] == [NOW - 5000, NOW - 4002, NOW - 4001]
    ledger = IncidentTracker([rule()], now=NOW)
    for n in range(MOST_OF_ONE + 50):
        ledger.add_entry(said(NOW - 9, f"[n{n}] closed"))
    assert (len(ledger.incidents()), ledger.dropped) == (MOST_OF_ONE, 50)
    for n in range(MOST_OF_ONE):
        ledger.add_entry(said(NOW - 8, f"[n{n}] back", "INFO"))
    ledger.add_entry(said(NOW - 7, "[later] closed"))
    assert [one.key for one in ledger.incidents() if one.cleared_at is None] == [
        {"account": "later"}
    ]


def test_only_the_release_it_is_about() -> None:
    """Where the release is not known, every rule counts."""
    one = rule(versions=">=0.15,<0.19")
    assert [
        bool(IncidentTracker([one], now=NOW, release=release).rules)
        for release in [None, (0, 14, 1), (0, 15), (0, 18, 2), (0, 19, 0)]
    ] == [True, False, True, True, False]


def test_in_a_traceback() -> None:
    """The lines that follow a message are searched only where the rule says so."""
    entry = said(NOW - 9, "it failed")._replace(more=("Traceback", "[one] closed"))
    assert open_(rule(), entry) == []
    assert open_(rule(line=line(CLOSED, traceback=True)), entry) == ["one is closed"]


def test_nothing_beyond_the_match_is_shown() -> None:
    """What a user wrote behind it, a key in it, and what steers a terminal stay hidden."""
    one = rule(line=line(r"failed \((?P<reason>[^)]{1,400})\)"), cleared_by=())
    one = one._replace(title="it failed: {reason}")
    key = "sk-" + "a1B2" * 8
    [found] = findings(
        incidents(one, said(NOW - 9, f"failed ({key} \x1b[31m) my secret plan")), lambda e: "log"
    )
    everything = repr(found)
    assert key not in everything and "plan" not in everything and "\\x1b" not in everything


def test_when_processes_began() -> None:
    """What is known of processes counts more than what a line of the log claims."""
    closed = said(NOW - 60, "[one] closed")
    forged = said(NOW - 30, "Starting Hermes Gateway...", "INFO", "gateway.run")
    for began, left in [(NOW - 100, 1), (NOW - 50, 0), (NOW - 5, 0)]:
        ledger = IncidentTracker([rule()], now=NOW, starts=[began])
        for entry in (closed, forged):
            ledger.add_entry(entry)
        assert len([one for one in ledger.incidents() if one.cleared_at is None]) == left


def test_dated_ahead() -> None:
    """A clock that was ahead makes no fault too young to be told."""
    one = rule(settle=120.0)
    assert open_(one, said(NOW + 60, "[one] closed")) == ["one is closed"]
    assert open_(one, said(NOW + 1, "[one] closed")) == []


def test_yields_to_a_better_rule() -> None:
    """A rule is silent while a better one has an open incident about the same account."""
    general = rule()
    better = Rule("better", "QQ-4004", "error", "x", line(r"^\[(?P<account>\w+)\] closed by name"))
    general = general._replace(yields_to=("better",))

    def reported(*texts: str) -> list[tuple[str, str]]:
        ledger = IncidentTracker([general, better], now=NOW)
        for number, text in enumerate(texts):
            ledger.add_entry(said(NOW - 60 + number, text))
        return [(one.rule.id, one.key["account"]) for one in ledger.incidents()]

    assert reported("[a] closed") == [("closed", "a")]
    assert reported("[a] closed by name") == [("better", "a")]
    assert reported("[a] closed by name", "[b] closed") == [("better", "a"), ("closed", "b")]


def test_otherwise() -> None:
    """A rule for unknown lines counts only those that no other rule matches."""
    known = rule()
    other = Rule("other", "GW-ERRORS", "warning", "x", line(r"^\[(?P<account>\w+)\] \w+"))
    other = other._replace(otherwise=True)

    def reported(*texts: str) -> list[str]:
        ledger = IncidentTracker([other, known], now=NOW)
        for number, text in enumerate(texts):
            ledger.add_entry(said(NOW - 60 + number, text))
        return sorted(one.rule.id for one in ledger.incidents())

    assert reported("[a] closed") == ["closed"]
    assert reported("[a] exploded") == ["other"]
    assert reported("[a] closed", "[b] exploded") == ["closed", "other"]


def test_exception_and_place() -> None:
    """A pattern can match a message, the place in Hermes' code and the last exception."""
    pattern = r"^failed\n(?P<path>[^\n]*)\n(?P<name>\w+): "
    one = rule()._replace(line=line(pattern, exception=True), title="{name} in {path}")
    traceback = (
        "Traceback (most recent call last):",
        '  File "/opt/agent/venv/lib/python3.11/site-packages/agent/loop.py", line 7, in run',
        "    call()",
        '  File "/opt/agent/venv/lib/python3.11/site-packages/httpx/_client.py", line 9, in send',
        "    ^^^^^^",
        "ValueError: first",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "Traceback (most recent call last):",
        '  File "C:\\hermes\\run_agent.py", line 12, in main',
        "    call()",
        "KeyError: 'x'",
    )

    def title(*more: str) -> list[str]:
        return open_(one, said(NOW - 60, "failed")._replace(more=more))

    assert title(*traceback) == ["KeyError in run_agent.py:12"]
    assert title(*traceback[:6]) == ["ValueError in agent/loop.py:7"]
    assert title(traceback[0], *traceback[3:6]) == ["ValueError in httpx/_client.py:9"]
    assert title() == []


def test_a_line_from_the_future_is_not_an_incident_for_ever() -> None:
    """A clock that was wrong once: the line is years ahead, or later lines have the right time."""
    assert incidents(rule(), said(NOW + 40 * 86_400, "[one] closed")) == []
    ledger = IncidentTracker([rule()], now=NOW)
    for each in (said(NOW + 7200, "[one] closed"), said(NOW - 60, "[two] closed")):
        ledger.add_entry(each)

    assert [one.key["account"] for one in ledger.incidents()] == ["two"]


def test_a_whole_log_in_another_zone_counts() -> None:
    """If the log goes on in the future, its zone is unknown, not its clock wrong."""
    assert len(incidents(rule(), said(NOW + 7200, "[one] closed"))) == 1


def test_days() -> None:
    """One line a day is an incident if the rule says so; several on one day are not."""
    daily = rule(window=4 * 86_400.0, threshold=3, days=3, cleared_by=(), outlives_start=True)
    lines = [said(NOW - 3600 - day * 86_400, "[one] closed") for day in range(4)]

    assert len(incidents(daily, *lines[:3])) == 1
    assert incidents(daily, *lines[:2]) == []
    assert incidents(daily, *lines[2:], said(NOW - 3 * 86_400, "[one] closed")) == []
    assert incidents(daily, *[said(NOW - n, "[one] closed") for n in range(1, 9)]) == []
