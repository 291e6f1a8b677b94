"""What this tool stopped, started, repaired and proved, as its receipts say."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.backup.records import receipts
from hermes_doctor.backup.records.journal import ItemRecord, Journal
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Gateway
from hermes_doctor.core.system import privileges, separate_process
from hermes_doctor.diagnosis.probes import gateway_view
from hermes_doctor.hermes.processes.process_stat import start_moment, stat
from hermes_doctor.hermes.processes.runtime_files import GatewayLife
from hermes_doctor.hermes.supervisors.units import SYSTEMD_USER, Unit
from tests.helpers import crash_server, support

NOW = datetime.now(UTC)
"""The time when each test starts: this file may have been loaded long before."""
STOPPED = "INFO gateway.run: Received SIGTERM — initiating shutdown"


@pytest.fixture(autouse=True)
def current_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let NOW be the time of this test."""
    monkeypatch.setitem(globals(), "NOW", datetime.now(UTC))


def receipt(home: Path, ago: float, **more: object) -> None:
    """Write the receipt of a run that started so many seconds ago, and took ten seconds."""
    began = NOW - timedelta(seconds=ago)
    items = [
        ItemRecord("salvage-rows", code, "state.db", "database-pages", outcome=outcome)
        for code, outcome in (("DB-MALFORMED", "verified"), ("TG-409", "failed"))
    ]
    journal = Journal(
        f"{began:%Y%m%d-%H%M%S}-0001a", "fix", str(home), "", began.isoformat(),
        state="done", gateway="started", items=items,
        ended_at=(began + timedelta(seconds=10)).isoformat(),
    )  # fmt: skip
    for name, value in more.items():
        setattr(journal, name, value)
    journal.save()


def test_receipts(home: Path) -> None:
    """The newest runs, with what they proved; an undone or interrupted one proves nothing."""
    for ago, more in (
        (90_000, {}),
        (500, {}),
        (400, {"gateway": None}),
        (300, {"state": "undone"}),
        (200, {"state": "verifying", "ended_at": None}),
        (100, {"state": "rolled-back"}),
        (50, {"kind": "undo"}),
    ):
        receipt(home, ago, **more)
    support.put(home / "backups/doctor/runs/99999999-000000-0001a/run.json", "[]")

    found = receipts.when_handled(Home(home), time.time() - 3600)

    assert [(round(NOW.timestamp() - one.began), one.proved, set(one.codes)) for one in found] == [
        (500, True, {"DB-MALFORMED"}),
        (400, False, {"DB-MALFORMED"}),
        (300, False, set()),
        (100, False, set()),
        (50, True, set()),
    ]
    assert all(round(one.ended - one.began) == 10 for one in found)


@pytest.mark.parametrize("state", ["done", "rolled-back", "none"])
def test_stops_before_and_by_a_repair(home: Path, state: str) -> None:
    """Four stops are a problem. After a proved repair they are over; its own stop never counts."""
    at = [NOW - timedelta(seconds=ago) for ago in (300, 250, 200, 95)]
    lines = [f"{one.astimezone():%Y-%m-%d %H:%M:%S},004 {STOPPED}\n" for one in at]
    support.put(home / "logs" / "gateway.log", "".join(lines))
    if state != "none":
        receipt(home, 100, state=state)

    assert ("GW-RESTART-SPAM" in support.check(home).codes) is (state == "none")


def test_counted_restarts_before_a_repair(home: Path) -> None:
    """Hermes' own counter of restarts is older than the repair."""
    boots = [time.time() - one for one in (300, 250, 200)]
    support.put(home / "gateway/restart_loop.json", json.dumps({"boots": boots}))
    assert "GW-CRASH-LOOP" in support.check(home).codes
    receipt(home, 100)
    assert "GW-CRASH-LOOP" not in support.check(home).codes


def test_whose_start_it_was() -> None:
    """systemd counts its own restarts; without a supervisor the gateway must outlast the others."""
    seen = stat(1)
    assert seen is not None
    first = start_moment(seen.start_time)

    def unit(again: str) -> Unit:
        return Unit(
            SYSTEMD_USER, "x.service", None, None, 1, "active", {"NRestarts": again}, {}, None
        )

    def own(seconds: float, *lives: float) -> bool:
        gateway = Gateway(2, NOW - timedelta(seconds=seconds), "python")
        before = NOW - timedelta(seconds=1800)
        ended = [
            GatewayLife(9, before, before + timedelta(seconds=one), "exception") for one in lives
        ]
        return gateway_view.is_own(gateway, None, lambda: ended)

    assert gateway_view.is_own(Gateway(2, first + timedelta(seconds=2), "python"), unit("0"), list)
    assert not gateway_view.is_own(Gateway(2, first, "python"), unit("3"), list)
    later = Gateway(2, first + timedelta(seconds=90), "python")
    assert not gateway_view.is_own(later, unit("0"), list), "a loop inside the unit"
    assert own(70, 5, 6) and not own(40, 5) and not own(70, 50)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_a_vault_below_a_closed_folder(home: Path) -> None:
    """A user who may not look into that folder cannot know whether the vault is gone."""
    with support.reachable_folder() as place:
        (place / "closed").mkdir(0o700)
        vault = place / "closed" / "vault"
        theirs = support.copy_home(home, place / "home")
        document = {"state": "done", "vault": str(vault), "saved": ["20261115-031500-1234f"]}
        support.put(theirs / "backups/doctor/runs/one/run.json", json.dumps(document))
        crash_server.chown(theirs)
        user = privileges.owner_of_home(theirs)
        assert user is not None

        def work() -> list[str]:
            return [log.id for log in receipts.unsettled_logs(Home(theirs))]

        assert separate_process.run_as(user, work, {}) == ["20261115-031500-1234f"]
        assert work() == ["20261115-031500-1234f"], "it may be mounted again"
        vault.mkdir()
        assert work() == [], "it is gone"
