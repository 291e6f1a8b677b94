"""Repairs of a watch in a process of their own: counted as ever, and nothing of them stays."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.operations.watch import assembly, repair_runs
from hermes_doctor.operations.watch.store import WatchStateFiles
from hermes_doctor.repair.schedule.jobs import Budget
from tests.helpers import support
from tests.helpers.watch_parts import copies
from tests.operations.watch.test_heal import Ward, blot, blotted, own


@pytest.fixture(autouse=True)
def unfrozen() -> object:
    """What a watch loads stays for its whole life; a test ends sooner."""
    yield None
    gc.unfreeze()


def ward_of(home: Path, *given: object, **more: object) -> Ward:
    ward = Ward(home, *given, **more)
    assembly.use_child_processes(ward.watch, ward.plugins)
    return ward


def test_a_repair_counts_and_can_be_undone(home: Path) -> None:
    """The events, the budget and the receipt are those of a repair in the watch itself."""
    ward = ward_of(home, after=2, budget=Budget(1, 1800.0))
    blot(home)
    support.doctor("--version")  # starts the server of this helper
    before = len(os.listdir("/proc/self/fd"))

    assert ward.rounds(1) == ["found ENV-BOM"]
    assert ward.rounds(1) == ["healed ENV-BOM"]
    assert not blotted(home)
    assert ward.ledger.repairs == ward.watch.memory.repairs and len(ward.ledger.repairs) == 1
    assert ward.watch.memory.repaired == 1
    known = WatchStateFiles(Home(home), home.parent / "state").load("one")
    assert known and len(known.repairs) == 1 and known.deeds
    run = next(one for one in ward.heard if one.kind == "healed").command.split()[2]
    assert support.doctor("undo", run, "--yes", "--home", home).code == 0
    assert blotted(home)
    told = ward.rounds(3)
    assert "waits" in told and "healed ENV-BOM" not in told, "the budget is used up"
    assert len(os.listdir("/proc/self/fd")) == before + 2, "the lock and the lease"
    assert not copies()


def test_the_lease_that_a_repair_took_is_the_watchs(home: Path) -> None:
    """Another watch, with another state folder, does not heal in between."""
    ward = ward_of(home, after=1)
    blot(home)
    assert "healed ENV-BOM" in ward.rounds(1)
    assert ward.healer.lease.descriptor is not None
    other = Ward(home, after=1)
    other.healer.store = WatchStateFiles(Home(home), home.parent / "other")
    other.healer.lease.owner_id = "another"
    assert "another watch" in str(other.healer.lease.refusal())


def test_what_fails_pauses(home: Path, tmp_path: Path) -> None:
    """Failures of repairs are remembered by the watch, not by their processes."""
    ward = ward_of(home, own(tmp_path), after=1, budget=Budget(100, 600.0))
    assert ward.rounds(1) == ["found NEVER-WELL", "failed NEVER-WELL"]
    assert (home / "auth.json").exists(), "rolled back"
    assert ward.rounds(4, every=140.0) == []
    assert ward.rounds(1, every=140.0) == ["failed NEVER-WELL"]
    assert ward.ledger.failures["NEVER-WELL", "x"].times == 2


def test_patience_is_remembered(home: Path) -> None:
    """A repair that waits for an answer is due once the time is over."""
    ward = ward_of(home, after=1, patience=100.0, busy=lambda _: True)
    blot(home)
    assert ward.rounds(3) == ["found ENV-BOM", "waits"]
    assert "healed ENV-BOM" in ward.rounds(3)


def test_a_repair_whose_process_is_killed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a failure that counts, and later the repair is made."""
    ward = ward_of(home, after=1, budget=Budget(100, 600.0))
    blot(home)
    monkeypatch.setattr(repair_runs, "apply_plans", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    assert ward.rounds(1) == ["found ENV-BOM", "failed ENV-BOM"]
    failed = ward.heard[-1].title
    assert "the repair was cut off: its process was killed (SIGKILL" in failed, failed
    assert "next try at" in failed
    assert len(ward.ledger.repairs) == 1, "it was counted before it began"
    monkeypatch.undo()
    assert ward.rounds(1, every=30.0) == []
    assert "healed ENV-BOM" in ward.rounds(1, every=700.0)
    assert not copies()


def test_a_repair_loads_nothing_into_the_watch(home: Path) -> None:
    """What only a repair needs is gone with it."""
    program = f"""
import os, sys
os.environ["XDG_STATE_HOME"] = {str(home.parent / "state")!r}
from pathlib import Path
from tests.operations.watch.test_heal import Ward, blot
from hermes_doctor.operations.watch import assembly
names = ("hermes_doctor.repair.transaction.run", "hermes_doctor.backup.vault.vault")
for name in names:
    sys.modules.pop(name, None)
home = Path({str(home)!r})
ward = Ward(home, after=1)
assembly.use_child_processes(ward.watch, ward.plugins)
blot(home)
assert "healed ENV-BOM" in ward.rounds(1)
print([name in sys.modules for name in names])
"""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.strip() == "[False, False]", done.stderr


def test_sigterm_reaches_the_repair_and_it_is_rolled_back(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch passes the signal on, and waits until the files are as they were."""
    ward = ward_of(home, after=1)
    blot(home)
    real = repair_runs.make_verifier

    def slow(*given: object) -> object:
        verify = real(*given)  # type: ignore[arg-type]

        def wait(items: object) -> object:
            os.kill(os.getppid(), signal.SIGTERM)
            time.sleep(60)
            return verify(items)  # type: ignore[arg-type]

        return wait

    monkeypatch.setattr(repair_runs, "make_verifier", slow)
    with ward.healer.signals.heard():
        told = ward.rounds(1)
    assert "failed" in told and ward.heard[-1].title == "a repair was interrupted and rolled back"
    assert ward.healer.signals.ending
    assert blotted(home), "as it was"
    assert not copies()
