"""A busy machine is slower, and `check` finds the same there as on an idle one."""

from __future__ import annotations

import pytest

from tests.helpers import busy_machine, damage, support
from tests.helpers.real.gateways import gateway
from tests.helpers.real.release_homes import MakeHome, Patient
from tests.helpers.support import Done

pytestmark = pytest.mark.real
NEWEST = "0.19.0"


def found(done: Done) -> tuple[set[tuple[str, str, str]], dict[str, str]]:
    """What a look says: its findings, and how each check ended."""
    findings = {(one["code"], one["severity"], one["subject"]) for one in done.json["findings"]}
    sound = {"ok", "skipped"}  # a table may be created between two looks
    ended = {one["id"]: one["status"] for one in done.json["checks"]}
    return findings, {id: "ok" if status in sound else status for id, status in ended.items()}


def same_when_busy(patient: Patient) -> set[str]:
    """Compare looks on a busy machine with one before; return the codes that it found."""
    idle = found(patient.check())
    assert "unknown" not in idle[1].values(), idle[1]
    with busy_machine.machine():
        for _ in range(3):
            findings, ended = found(patient.check())
            assert findings == idle[0]
            assert {*ended.items()} == {*idle[1].items()}
    return {code for code, _, _ in idle[0]}


@pytest.mark.wide
def test_with_a_gateway(hermes_home: MakeHome) -> None:
    """A used home whose gateway runs, with some faults that do not concern it."""
    patient = Patient(NEWEST, hermes_home(NEWEST))
    home = patient.home
    (home / ".env").chmod(0o644)
    with gateway(NEWEST, home):
        codes = same_when_busy(patient)
    assert "PERM-SECRETS" in codes
    assert not {"GW-DOWN", "GW-LOOP-STALLED"} & codes


@pytest.mark.wide
def test_damaged(hermes_home: MakeHome) -> None:
    """A used home with damaged databases, a log that a killed process left, and more faults."""
    patient = Patient(NEWEST, hermes_home(NEWEST))
    home = patient.home
    damage.history(home / "state.db", 20_000, NEWEST)
    damage.ROWS[0](home / "state.db")
    support.clobber(home / "kanban.db")
    support.put(home / ".env", b"\xef\xbb\xbf" + (home / ".env").read_bytes(), 0o644)
    codes = same_when_busy(patient)
    assert {"PERM-SECRETS", "ENV-BOM", "DB-NOTADB", "DB-MALFORMED"} <= codes
