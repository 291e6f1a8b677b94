"""Annotations for GitHub Actions: which file, which line, and what must be escaped."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.model import CheckResult, Evidence, Severity, Status, Verdict, VerdictKind
from hermes_doctor.render import github
from tests.helpers.example_reports import found, working


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one file."""
    (tmp_path / "config.yaml").write_text("model: x\n")
    return tmp_path


@pytest.mark.parametrize(
    ("severity", "command"),
    [
        (Severity.CRITICAL, "error"),
        (Severity.ERROR, "error"),
        (Severity.WARNING, "warning"),
        (Severity.INFO, "notice"),
    ],
)
def test_severities(severity: Severity, command: str) -> None:
    """GitHub knows three."""
    shown = github.of_reports([working(found("A", severity=severity, next="Do it."))])

    assert shown == f"::{command} title=A::title of A. Do it.\n"


def test_file_and_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They come from the evidence; below the current folder, the path is relative to it."""
    evidence = (Evidence("process 3", "x"), Evidence("config.yaml:12", "y"))
    one = working(found("A", evidence=evidence))._replace(home=home)

    absolute = github.of_reports([one])
    monkeypatch.chdir(home.parent)
    relative = github.of_reports([one])

    assert absolute == f"::error file={home}/config.yaml,line=12,title=A::title of A.\n"
    assert relative == f"::error file={home.name}/config.yaml,line=12,title=A::title of A.\n"


@pytest.mark.parametrize("where", ["config.yml:3", "process 3", "", "\0", "x" * 5000, "logs/:2"])
def test_evidence_that_names_no_file(home: Path, where: str) -> None:
    """Then the annotation has no place."""
    one = working(found("A", evidence=(Evidence(where, "x"),)))._replace(home=home)

    assert github.of_reports([one]) == "::error title=A::title of A.\n"


def test_what_must_be_escaped() -> None:
    """A line break would end the command, and a comma its property."""
    shown = github.of_reports([working(found("A:B,C", title="50 %\r\n::error::x\udcff"))])

    assert shown == "::error title=A%3AB%2CC::50 %25%0A�:error::x�.\n"


def test_crashes_and_homes_that_cannot_be_read() -> None:
    """They are errors, too."""
    crashed = CheckResult("a", "data", Status.CRASHED, reason="ValueError at b.py:3")

    lines = github.of_reports([working(checks=(crashed,))]).splitlines()

    assert lines == [
        "::error title=hermes-doctor::the check a crashed: ValueError at b.py:3",
        "::error title=hermes-doctor::No check could look at /srv/hermes: 1 crashed.",
    ]


def test_an_unknown_verdict() -> None:
    """Nobody may take silence for health."""
    unknown = working()._replace(verdict=Verdict(VerdictKind.UNKNOWN, "Nobody knows."))

    assert github.of_reports([unknown]) == "::warning title=hermes-doctor::Nobody knows.\n"


def test_several_homes() -> None:
    """Each annotation names its home."""
    two = working(found("A"))._replace(home=Path("/home/two"))

    assert github.of_reports([working(), two]) == "::error title=A::/home/two: title of A.\n"


def test_a_folder_that_was_deleted(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a current folder, the path is absolute."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    one = working(found("A", evidence=(Evidence("config.yaml:1", "x"),)))._replace(home=home)

    assert f"file={home}/config.yaml,line=1" in github.of_reports([one])


def test_a_check_that_could_not_run() -> None:
    """The log of the job shows it like a problem."""
    assert github.of_trouble("No home.") == "::error title=hermes-doctor::No home.\n"
