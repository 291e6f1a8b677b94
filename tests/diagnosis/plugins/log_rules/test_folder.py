"""Compiled rules are the rules that were written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_causes import tables
from hermes_doctor.diagnosis.plugins.log_rules import folder, source
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from tests.diagnosis.plugins.log_rules.test_source import GOOD
from tests.helpers.rule_lines import asking, entry, written

RULES = builtin("checks") / "signatures"


def test_a_round_trip(tmp_path: Path) -> None:
    """Packed and unpacked, a rule with everything in it is the same."""
    cleared = {"pattern": "all is well", "examples": ["x"], "level": "info"}
    follow = {"pattern": "again", "examples": ["x"], "within": "3m"}
    rule = {
        **GOOD,
        "cleared_by": [cleared],
        "followed_by": follow,
        "logger": ["a", "b"],
        "unless_ok": ["database-pages"],
        "settle": "5m",
    }
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"rules": [rule]}))
    (tmp_path / "explanations.yaml").write_text(
        "explanations:\n- {cause: A, explains: [B], because: So.}\n"
    )
    held = folder.Folder(tmp_path).rule_set

    assert held.faults == () and len(held.rules) == len(held.explanations) == 1
    again = folder.read_compiled(folder.compile_rules(held).encode())
    assert folder.compile_rules(again) == folder.compile_rules(held)
    assert again.rules[0].cleared_by[0].pattern == "all is well"


def test_only_our_own_are_compiled(tmp_path: Path) -> None:
    """In an operator's folder a compiled file is none of ours, and is not read."""
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"rules": [GOOD]}))
    (tmp_path / folder.RULES).write_text('{"rules": [["x"]]}')
    (tmp_path / folder.CODES).write_text("é")

    found = folder.Folder(tmp_path)

    assert found.codes == ("DB-LOCKED",) and [rule.id for rule in found.rule_set.rules] == [
        "a-rule"
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("last", ["A9", "A0"])
def test_a_long_chain_of_explanations(last: str, tmp_path: Path) -> None:
    """However long it is, it is followed to its end, and a circle is found."""
    chain = [{"cause": f"A{n}", "explains": [f"A{n + 1}"], "because": "x"} for n in range(3000)] + [
        {"cause": "A3000", "explains": [f"B-{last}"], "because": "x"}
    ]
    chain += [{"cause": "B-A0", "explains": ["A0"], "because": "x"}]
    (tmp_path / "explanations.yaml").write_text(json.dumps({"explanations": chain}))

    held = folder.Folder(tmp_path).rule_set

    assert bool(held.explanations) is (last == "A9")
    assert ["goes in a circle" in str(fault) for fault in held.faults] == [True] * (last == "A0")


def test_the_compiled_rules_say_the_same() -> None:
    """The built-in folder has no mistake, and its computed codes are those of rules and causes."""
    read, causes = folder.read_source(RULES), tables.read_source(RULES)
    assert read.faults == () and causes.faults == ()
    computed = folder.Folder(RULES, ours=True)
    assert folder.compile_rules(computed.rule_set) == folder.compile_rules(read)
    assert computed.codes == tuple(sorted({*read.codes, *tables.codes(causes)}))


def test_mistakes_in_tables_are_reported(tmp_path: Path) -> None:
    """As those in rules are; without the mistakes, nothing is left out."""
    (tmp_path / "places.yaml").write_text("places: 3\n")

    [fault] = folder.Folder(tmp_path).faults

    assert str(fault).startswith("places.yaml:1: must hold")


def test_the_examples_of_every_rule() -> None:
    """Each example matches its rule, and each near miss does not."""
    for sample in written().samples:
        for text in sample.examples:
            assert _matches(sample, text), (sample.rule.id, text)
        for text in sample.near:
            assert not _matches(sample, text), (sample.rule.id, text)


def _matches(sample: source.Sample, text: str) -> bool:
    one = entry(text, sample.rule.source)
    found = asking(sample.rule).ask(one)
    return any(match.rule is sample.rule and _role(sample, match.role) for match in found)


def _role(sample: source.Sample, role: str) -> bool:
    if sample.line is sample.rule.line:
        return role == "match"
    lists = {"given up": sample.rule.given_up_by, "answered": sample.rule.answered_by}
    for name, lines in lists.items():
        if any(sample.line is line for line in lines):
            return role == name
    return role == ("follow" if sample.line is sample.rule.followed_by else "clear")


def test_the_window_of_all_rules() -> None:
    """Logs are read for a day at most, the small records for a week: a look is bounded."""
    ledger = IncidentTracker(folder.Folder(RULES, ours=True).rule_set.rules, now=0.0)
    assert ledger.needed.since("log", "stderr", "journal") >= -86400
    assert ledger.needed.since() >= -7 * 86400


def test_what_rules_name_is_there() -> None:
    """Fixes list the codes that rules send to them; codes that explanations name exist."""
    loaded = load.load()
    fixes = {fix.id: fix.codes for fix in loaded.fixes}
    checks = {check.id for check in loaded.checks}
    codes = {code for check in loaded.checks for code in check.codes}

    assert [rule.id for rule in loaded.rules if rule.fix and rule.code not in fixes[rule.fix]] == []
    assert {name for rule in loaded.rules for name in rule.unless_ok} <= checks
    assert {code for one in loaded.explanations for code in (one.code, *one.explains)} <= codes


def test_platforms_are_not_blamed_for_one_another() -> None:
    """Where a log names the platform of both sides, a cause holds for the same one only."""
    held = folder.Folder(RULES, ours=True).rule_set
    named: dict[str, bool] = {}
    for rule in held.rules:
        names = bool(rule.platform) or "(?P<platform>" in rule.line.pattern
        named[rule.code] = named.get(rule.code, True) and names
    about = {code for code, names in named.items() if names} - {"ENV-REDACTED"}  # of a file, too

    loose = {
        (cause.code, code)
        for cause in held.explanations
        for code in cause.explains
        if not cause.same_platform and {cause.code, code} <= about
    }
    assert loose == set()
