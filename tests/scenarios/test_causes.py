"""Causes: shown once, with what follows from them below, and ranked by the worst of it all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes_doctor.core.model import Severity
from tests.helpers import support
from tests.helpers.example_reports import found, report
from tests.render.test_report import depth, text

CRITICAL, ERROR, WARNING, INFO = Severity


def order(shown: str) -> list[str]:
    """The codes in the order in which they are shown."""
    return re.findall(r"title of ([A-Z]+)", shown)


def test_a_cause_ranks_by_what_follows() -> None:
    """A warning that makes everything fail stands above an error that does not."""
    shown = text(
        report(
            found("DOWN", "CAUSE", severity=CRITICAL),
            found("BESIDE", severity=ERROR),
            found("CAUSE", severity=WARNING),
        )
    )

    assert order(shown) == ["CAUSE", "DOWN", "BESIDE"]
    assert depth(shown, "CAUSE") == depth(shown, "BESIDE") < depth(shown, "DOWN")


def test_through_a_whole_chain() -> None:
    """What follows from what follows counts too; a note causes nothing."""
    shown = text(
        report(
            found("BESIDE", severity=ERROR),
            found("W", severity=INFO),
            found("X", "W", severity=WARNING),
            found("Y", "X", severity=WARNING),
            found("Z", "Y", severity=CRITICAL),
        )
    )

    assert order(shown) == ["X", "Z", "Y", "BESIDE"]
    assert depth(shown, "X") == 0
    assert depth(shown, "Y") == depth(shown, "Z") > 0


def test_a_harmless_consequence_lifts_nothing() -> None:
    """A cause is put neither lower nor higher by a note that follows from it."""
    shown = text(
        report(
            found("WORST", severity=CRITICAL),
            found("CAUSE", severity=WARNING),
            found("HARMLESS", "CAUSE", severity=INFO),
            found("BETWEEN", severity=ERROR),
        )
    )

    assert order(shown) == ["WORST", "BETWEEN", "CAUSE"]


def test_consequences_worst_first() -> None:
    """Below one cause the worst consequence comes first."""
    shown = text(
        report(
            found("CAUSE"),
            found("A", "CAUSE", severity=INFO),
            found("B", "CAUSE", severity=CRITICAL),
            found("C", "CAUSE", severity=WARNING),
        )
    )

    assert order(shown) == ["CAUSE", "B", "C"]


def test_consequences_by_what_follows_from_them() -> None:
    """Nor is the critical end of a chain hidden below milder consequences."""
    shown = text(
        report(
            found("CAUSE"),
            found("MILD", "CAUSE", severity=WARNING),
            found("STEP", "CAUSE", severity=WARNING),
            found("END", "STEP", severity=CRITICAL),
        )
    )

    assert order(shown) == ["CAUSE", "END", "MILD", "STEP"]


def test_equals_in_a_stable_order() -> None:
    """Equally bad ones come by their code, whatever order they were found in."""
    findings = [found("B"), found("A"), found("D", "C"), found("C")]

    assert order(text(report(*findings))) == ["A", "B", "C", "D"]
    assert order(text(report(*reversed(findings)))) == ["A", "B", "C", "D"]


@pytest.mark.parametrize("severity", Severity)
def test_circles_are_ranked_too(severity: Severity) -> None:
    """Findings that name each other neither hang nor hide the others."""
    shown = text(
        report(
            found("A", "B", severity=severity),
            found("B", "A", severity=WARNING),
            found("ALONE", severity=ERROR),
        )
    )

    assert sorted(order(shown)) == (["ALONE", "B"] if severity is INFO else ["A", "ALONE", "B"])


CHECK = '''\
from hermes_doctor.api import Finding, Severity, check


@check(id="chain", group="test", codes=["CAUSE", "DOWN", "BESIDE"])
def chain(probes):
    """What came first?"""
    yield Finding("BESIDE", Severity.ERROR, "title of BESIDE")
    yield Finding("DOWN", Severity.CRITICAL, "title of DOWN", caused_by="CAUSE")
    yield Finding("CAUSE", Severity.WARNING, "title of CAUSE")
'''


def test_through_the_command(home: Path, tmp_path: Path) -> None:
    """An operator sees the cause first; the document has all three, and who caused what."""
    support.put(tmp_path / "mine" / "checks" / "chain.py", CHECK, 0o644)
    for folder in (tmp_path / "mine", tmp_path / "mine" / "checks"):
        folder.chmod(0o755)
    options = ("--home", home, "--plugins", tmp_path / "mine")

    done = support.doctor("check", *options)

    assert done.code == 1
    assert order(done.out) == ["CAUSE", "DOWN", "BESIDE"]
    findings = support.doctor("check", "--json", *options).json["findings"]
    causes = {one["code"]: one["caused_by"] for one in findings}
    assert causes == {"CAUSE": None, "DOWN": "CAUSE", "BESIDE": None}
    assert [one["severity"] for one in findings] == ["critical", "error", "warning"]
