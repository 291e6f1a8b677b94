"""Which fixes refuse their findings."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix, Finding, Safety, Severity
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.diagnosis.examination import offers
from hermes_doctor.diagnosis.plugins.declare import Fix
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import Step
from hermes_doctor.repair.steps.files import SetMode

ONE = Finding("A", Severity.ERROR, "title", subject="x", fix="cure")


def fix(plan: Callable[[Probes, Finding], Iterator[Step]], id: str = "cure") -> Fix:
    """A fix with this plan."""
    return Fix(id, ("A",), Safety.SAFE, "Cure it", plan)


def refuse(probes: Probes, finding: Finding) -> Iterator[Step]:
    """A plan that declines."""
    raise CannotFix("systemd is not running.")
    yield


def crash(probes: Probes, finding: Finding) -> Iterator[Step]:
    """A plan with a bug."""
    raise ValueError("boom")
    yield


def test_a_refusal_is_kept_with_its_reason(tmp_path: Path) -> None:
    """It is found by code, subject and fix."""
    probes = Probes(Home(tmp_path))

    assert offers.refusals(probes, [fix(refuse)], [ONE]) == {
        ("A", "x", "cure"): "systemd is not running."
    }


def test_other_findings_are_offered(tmp_path: Path) -> None:
    """A plan that works, one that crashes, a finding without a fix, and a fix that is missing."""
    probes = Probes(Home(tmp_path))
    works = fix(lambda probes, finding: iter(()))
    others = [ONE, ONE._replace(fix=None), ONE._replace(fix="missing")]

    assert offers.refusals(probes, [works], others) == {}
    assert offers.refusals(probes, [fix(crash)], others) == {}


def test_only_so_many_are_planned(tmp_path: Path) -> None:
    """A home with hundreds of findings is not planned for minutes."""
    probes = Probes(Home(tmp_path))
    many = [ONE._replace(subject=str(number)) for number in range(offers.MAX_PLANS + 5)]

    assert len(offers.refusals(probes, [fix(refuse)], many)) == offers.MAX_PLANS


def test_a_plan_without_an_end_does_not_hold_up_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that yields for ever, and one that hangs; refusals found before are kept."""
    monkeypatch.setattr(offers, "LIMIT", 0.2)
    gate = threading.Event()

    def endless(probes: Probes, finding: Finding) -> Iterator[Step]:
        while True:
            yield Step()

    def hangs(probes: Probes, finding: Finding) -> Iterator[Step]:
        gate.wait(60)
        yield Step()

    probes = Probes(Home(tmp_path))
    fixes = [fix(refuse), fix(endless, "endless"), fix(hangs, "hangs")]
    findings = [ONE, ONE._replace(fix="endless"), ONE._replace(fix="hangs")]
    started = time.monotonic()
    try:
        found = offers.refusals(probes, fixes, findings)
    finally:
        gate.set()

    assert time.monotonic() - started < 30
    assert found == {("A", "x", "cure"): "systemd is not running."}


def writes(probes: Probes, finding: Finding) -> Iterator[Step]:
    """A plan that changes the mode of a file of the home."""
    path = probes.home / ".env"
    yield SetMode(path, 0o600, why="close it", expect=snapshot(path))


@pytest.mark.parametrize(
    ("mine", "writable", "reason"),
    [
        (True, False, "cannot be written: the disk is read-only"),
        (False, True, "The home belongs to another user"),
        (True, True, ""),
    ],
)
def test_what_this_user_cannot_do_is_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: bool, writable: bool, reason: str
) -> None:
    """Because `fix --apply` would refuse it."""
    (tmp_path / ".env").write_text("B=1\n")
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner if mine else owner + 1)
    monkeypatch.setattr("os.access", lambda *_: writable)

    found = offers.refusals(Probes(Home(tmp_path)), [fix(writes)], [ONE])

    assert [reason in said for said in found.values()] == ([True] if reason else [])


def test_a_file_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the user's own home, but belongs to somebody else."""
    (tmp_path / ".env").write_text("B=1\n")
    user = os.geteuid() or 1234
    os.chown(tmp_path, user, -1)
    monkeypatch.setattr("os.geteuid", lambda: user)

    def foreign(probes: Probes, finding: Finding) -> Iterator[Step]:
        path = probes.home / ".env"
        taken = snapshot(path)._replace(uid=user + 1)
        yield SetMode(path, 0o600, why="close it", expect=taken)

    [said] = offers.refusals(Probes(Home(tmp_path)), [fix(foreign)], [ONE]).values()

    assert said == (
        f".env belongs to uid {user + 1}, so you may not change it. Run hermes-doctor with sudo."
    )
