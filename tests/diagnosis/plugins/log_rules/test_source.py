"""Rules as people write them: every mistake is named, with its line, and costs only that rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes_doctor.diagnosis.plugins.log_rules import matcher, source
from hermes_doctor.diagnosis.plugins.tables import patterns

GOOD: dict[str, Any] = {
    "id": "a-rule",
    "code": "DB-LOCKED",
    "severity": "warning",
    "title": "it is locked",
    "pattern": "database is locked",
    "examples": ["2026-11-15 00:00:00,000 WARNING a.b: database is locked"],
    "near": ["2026-11-15 00:00:00,000 WARNING a.b: database is fine"],
}


def written(folder: Path, *rules: object) -> source.RuleSource:
    """What a file of these rules says."""
    (folder / "own.yaml").write_text(yaml.safe_dump({"rules": list(rules)}), encoding="utf-8")
    return source.read(folder)


def test_a_whole_rule(tmp_path: Path) -> None:
    """Everything that is left out has a sensible default."""
    found = written(tmp_path, GOOD)

    assert found.faults == ()
    [rule] = found.rules
    assert (rule.window, rule.threshold, rule.line.level) == (7200, 1, "WARNING")
    assert rule.line.literals == ("database is locked",)


def test_what_the_rules_of_a_file_share(tmp_path: Path) -> None:
    """`defaults` has the fields that a rule does not have."""
    other = {**GOOD, "id": "b-rule", "severity": "error", "window": "1h"}
    (tmp_path / "own.yaml").write_text(
        yaml.safe_dump({"defaults": {"window": "1d", "logger": "a"}, "rules": [GOOD, other]})
    )

    first, second = source.read(tmp_path).rules

    assert (first.window, first.severity, first.line.loggers) == (86400, "warning", ("a",))
    assert (second.window, second.severity, second.line.loggers) == (3600, "error", ("a",))


@pytest.mark.parametrize("defaults", ["x", {1: "x"}, {"severty": "error"}])
def test_defaults_that_are_none(defaults: object, tmp_path: Path) -> None:
    """They cost the rules of the file, and are a fault."""
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"defaults": defaults, "rules": [GOOD]}))

    found = source.read(tmp_path)

    assert (found.rules, len(found.faults)) == ((), 1)


def test_the_logger_of_a_line_that_clears(tmp_path: Path) -> None:
    """It is that of the rule unless the line names another."""
    lines = [{"pattern": "well", "examples": ["x"]}]
    lines.append({"pattern": "fine", "examples": ["x"], "logger": "c"})
    [rule] = written(tmp_path, {**GOOD, "logger": "a", "cleared_by": lines}).rules

    assert [line.loggers for line in rule.cleared_by] == [("a",), ("c",)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"patern": "x"}, "has no field 'patern'; is 'pattern' meant?"),
        ({"pattern": "("}, "is not a regular expression"),
        (
            {"cleared_by": [{"pattern": "well", "examples": ["well"]}], "ages_out": "No line."},
            "`ages_out` is",
        ),
        ({"pattern": "(a+)+b"}, "repeats a repetition"),
        ({"pattern": "(?:a{0,20}){0,20}!!|boom"}, "repeats a repetition"),
        ({"pattern": "(?:1|11)+!"}, "repeats a repetition or a choice"),
        ({"pattern": "(?:11?)+!"}, "repeats a repetition"),
        ({"pattern": "boom|(?:a{1,60000}){1,20}"}, "repeats a repetition"),
        ({"pattern": "a.*b.*c"}, "in too many ways"),
        ({"pattern": "[^z]*[^z]*[^z]*[^z]*z|boom"}, "in too many ways"),
        ({"pattern": r"\w*\w*\w*\w*\w*!"}, "in too many ways"),
        ({"pattern": r"^a(?=.*b)\w*\w+\w+\d"}, "in too many ways"),
        ({"pattern": "boom|" + "a?" * 1000}, "is longer than"),
        ({"pattern": "(" * 900 + "boom" + ")" * 900}, "is not a regular expression"),
        ({"pattern": r"boom[\s\S]*"}, "ends with `.*`"),
        ({"pattern": "boom.*x?$"}, "ends with `.*`"),
        ({"title": "oh {reason"}, "may use braces only for"),
        ({"pattern": "(?P<reason>boom)", "title": "{reason!x}"}, "may use braces only for"),
        ({"pattern": "(?P<reason>boom)", "title": "{reason:>9999}"}, "may use braces only for"),
        ({"pattern": "(?P<reason>boom)", "detail": "{reason.real}"}, "may use braces only for"),
        ({"pattern": "failed: .*"}, "ends with `.*`"),
        ({"pattern": "failed: (?P<reason>.*)$"}, "ends with `.*`"),
        ({"pattern": "a?"}, "matches an empty line"),
        ({"pattern": "(?P<what>x)y"}, "uses the group 'what', which is not one of"),
        ({"code": "locked"}, "is made of capitals"),
        ({"id": "A Rule"}, "`id` is made of"),
        ({"severity": "bad"}, "`severity` must be one of"),
        ({"level": "warn"}, "`level` must be one of"),
        ({"window": "2 hours"}, "`window` must be a time like"),
        ({"threshold": 0}, "`threshold` must be a number"),
        ({"threshold": True}, "`threshold` must be a number"),
        ({"within": "1h"}, "`within` needs a `threshold`"),
        ({"settle": "1m"}, "`settle` needs `cleared_by`"),
        (
            {"given_up_by": [{"pattern": "xyz", "examples": ["xyz"]}]},
            "`given_up_by` needs `settle`",
        ),
        ({"answered_by": [{"pattern": "xyz"}]}, "`answered_by` needs `examples`"),
        ({"incident_by": "provider"}, "`incident_by` names 'provider'"),
        ({"versions": "0.15+"}, "`versions` must be like"),
        ({"title": "{account} is locked"}, "names {account}"),
        ({"examples": []}, "needs `examples`"),
        ({"near": []}, "needs `examples`"),
        ({"logger": {"a": 1}}, "`logger` must be a text or a list"),
        ({"cleared_by": {"pattern": "x"}}, "`cleared_by` is a list"),
        ({"cleared_by": [{"pattern": "xyz"}]}, "`cleared_by` needs `examples`"),
        ({"followed_by": [1]}, "`followed_by` is a mapping"),
        ({"fix": "Fix It"}, "`fix` is the id of a fix"),
        ({"title": ""}, "`title` must be a text"),
        ({"title": None}, "`title` must be a text"),
    ],
)
def test_a_mistake_is_named(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    """One clear line; the other rules are read all the same."""
    found = written(tmp_path, {**GOOD, **change}, {**GOOD, "id": "another"})

    assert [rule.id for rule in found.rules] == ["another"]
    [fault] = found.faults
    assert said in str(fault) and str(fault).startswith("own.yaml:")


def test_effort_is_counted_for_what_is_given() -> None:
    """A pattern is judged by the longest text that it can meet."""
    assert patterns.TEXT == matcher.MOST


def test_the_line_of_a_mistake(tmp_path: Path) -> None:
    """A second rule of the same id is named where it begins."""
    text = yaml.safe_dump(
        {"rules": [GOOD, {**GOOD, "examples": ["x"], "near": ["y"]}]}, sort_keys=False
    )
    (tmp_path / "own.yaml").write_text(text, encoding="utf-8")

    [fault] = source.read(tmp_path).faults

    second = [n for n, line in enumerate(text.splitlines(), 1) if line.startswith("- id")][1]
    assert (fault.line, "another rule 'a-rule'" in fault.what) == (second, True)


_BOMB = "".join(
    f"  - &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9) if n else ''}], k{n}: 1}}\n" for n in range(9)
)


@pytest.mark.parametrize(
    "text",
    [
        "rules: [", "- a", "rules: 1", "rules:\n- 1\n", "x: 1\nrules: []\n", "\x00", "a: *b",
        "rules: " + "[" * 100_000, "rules: " + "{a: " * 100_000, "rules: &a [*a]",
        "rules:\n" + _BOMB,
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_a_file_that_holds_no_rules(text: str, tmp_path: Path) -> None:
    """Whatever it holds, it is one fault and no traceback."""
    (tmp_path / "own.yaml").write_text(text, encoding="utf-8")

    found = source.read(tmp_path)

    assert (found.rules, len(found.faults)) == ((), 1)


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("database is locked", ("database is locked",)),
        (
            r"^\[(?P<account>\w+)\] WebSocket closed: code=(?:4009|4008)",
            ("] WebSocket closed: code=400",),
        ),
        ("(?:malformed|not a database)", ("malformed", "not a database")),
        (r"(?:no such column|\d+)", ()),
        (r"(?P<count>\d+) times", (" times",)),
        ("(?:Session resumed|Ready), id", ("Ready", "Session resumed")),
        ("(?i)locked", ()),
        ("(?:abc)?", ()),
        (r"\d+x", ()),
    ],
)
def test_what_a_match_must_contain(pattern: str, literals: tuple[str, ...]) -> None:
    """One of these texts is in everything that matches, so that most lines need no more."""
    assert patterns.literals(pattern) == literals
