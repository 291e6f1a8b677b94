"""Healing on a real home, with the real engine, within its bounds."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.backup.records.home_lock import lock_home
from hermes_doctor.backup.records.journal import Journal
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Report, Severity, Trouble
from hermes_doctor.diagnosis.examination.report import report as examine
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.operations.watch import repair_runs
from hermes_doctor.operations.watch.consent import RepairBudget
from hermes_doctor.operations.watch.heal import Healer
from hermes_doctor.operations.watch.rounds import Watch
from hermes_doctor.operations.watch.signals import Signals
from hermes_doctor.operations.watch.store import WatchStateFiles
from hermes_doctor.repair.schedule.jobs import Budget
from hermes_doctor.repair.transaction.plan import PlannedItem
from tests.helpers import fake_gateway, support
from tests.helpers.watch_parts import AT, Hands, Heard, watch

PLUGINS = load.load()
FAILING = """
from hermes_doctor.api import *

@check(id="never-well", group="tests", codes=["NEVER-WELL"])
def never_well(probes):
    \"\"\"Is it well?\"\"\"
    yield Finding("NEVER-WELL", Severity.ERROR, "it is never well", subject="x", fix="try-it")
"""
TRYING = """
from hermes_doctor.api import *

@fix(id="try-it", codes=["NEVER-WELL"], safety=Safety.SAFE)
def try_it(probes, finding):
    \"\"\"Try it in vain.\"\"\"
    yield MoveAside(probes.home / "auth.json", why="it may help")
"""


class Ward:
    """A home under a healing watch, and the clock that it goes by."""

    def __init__(self, home: Path, loaded: Any = PLUGINS, **more: Any) -> None:
        self.home = home
        self.plugins = loaded
        self.watch: Watch
        self.heard: Heard
        self.clock: Hands
        self.watch, self.heard, self.clock = watch(home, self.look, after=more.get("after", 3))
        self.ledger = RepairBudget(more.get("budget", Budget(3, 1800.0)))
        self.healer = Healer(
            home=Home(home),
            plugins=loaded,
            store=self.watch.store,
            ledger=self.ledger,
            clock=self.clock,
            signals=Signals(),
            min_rounds=more.get("after", 3),
            timeout=more.get("patience", 600.0),
            confirmed=frozenset(more.get("agreed", ())),
            busy=more.get("busy", lambda _: False),
        )
        self.watch.enable(self.healer)

    def look(self) -> Report:
        probes = Probes(Home(self.home))
        try:
            return examine(probes, self.plugins, self.plugins.checks)
        finally:
            probes.close()

    def rounds(self, count: int, every: float = 30.0) -> list[str]:
        """So many rounds; what was told in them."""
        before = len(self.heard)
        for _ in range(count):
            self.clock.turn(every)
            self.watch.round(begins=self.watch.rounds == 0)
        told = self.heard[before:]
        return [f"{one.kind} {one.code}".strip() for one in told if one.kind != "start"]


def blot(home: Path) -> None:
    """Give .env a byte order mark: a fault with a fix that is safe."""
    support.put(home / ".env", b"\xef\xbb\xbf" + support.ENV.encode())


def blotted(home: Path) -> bool:
    return (home / ".env").read_bytes().startswith(b"\xef")


def straw_hermes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks like an installation, so that a start can be planned."""
    hermes = folder / "venv"
    (hermes / "bin").mkdir(parents=True)
    (hermes / "bin" / "python").symlink_to(sys.executable)
    (hermes / "lib/python3.11/site-packages/hermes_agent-0.19.0.dist-info").mkdir(parents=True)
    called = f"open({str(folder / 'called')!r}, 'w')"
    support.put(hermes / "bin" / "hermes", f"#!{hermes}/bin/python\n{called}\n", 0o755)
    monkeypatch.setenv("PATH", f"{hermes}/bin:/usr/bin:/bin")


def own(folder: Path) -> Any:
    """The built-in plugins, and one fix that never helps."""
    support.put(folder / "own" / "checks" / "never_well.py", FAILING)
    support.put(folder / "own" / "fixes" / "try_it.py", TRYING)
    return load.load([folder / "own"])


def test_after_so_many_times_in_a_row(home: Path) -> None:
    """After so many times in a row."""
    ward = Ward(home)
    blot(home)

    assert ward.rounds(2) == ["found ENV-BOM"]
    assert blotted(home)
    assert ward.rounds(1) == ["healed ENV-BOM"]
    assert not blotted(home)
    assert ward.rounds(2) == ["gone ENV-BOM"]
    healed = next(one for one in ward.heard if one.kind == "healed")
    assert healed.command.startswith("hermes-doctor undo ")
    run = healed.command.split()[2]
    assert support.doctor("undo", run, "--yes", "--home", home).code == 0
    assert blotted(home), "a receipt like any other"


def test_not_when_it_came_and_went(home: Path) -> None:
    """Not when it came and went."""
    ward = Ward(home)
    for _ in range(3):
        blot(home)
        ward.rounds(2)
        support.put(home / ".env", support.ENV)
        ward.rounds(1)

    assert "healed" not in ward.heard.kinds and not (home / "backups").exists()


def test_what_wavers_is_healed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in one round, critical in the next: it lasts."""
    ward = Ward(home)
    blot(home)
    real = ward.look
    worse = itertools.cycle([Severity.ERROR, Severity.CRITICAL])

    def look() -> Report:
        report, now = real(), next(worse)
        found = tuple(one._replace(severity=now) for one in report.findings)
        return report._replace(findings=found)

    ward.watch.examine = look

    assert "healed ENV-BOM" in ward.rounds(3)


def test_the_gateway_is_steered_only_for_an_error_that_lasted(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two warnings and an error are no error that was seen three times."""
    straw_hermes(tmp_path, monkeypatch)
    fake_gateway.ended(home)
    ward = Ward(home)
    real = ward.look
    levels = itertools.chain([Severity.WARNING] * 2, itertools.repeat(Severity.ERROR))

    def look() -> Report:
        report, now = real(), next(levels)
        found = tuple(one._replace(severity=now) for one in report.findings)
        return report._replace(findings=found)

    ward.watch.examine = look
    carried: list[object] = []

    def carry_out(*given: object) -> None:
        carried.append(given)
        raise Trouble("enough")

    monkeypatch.setattr(repair_runs, "apply_plans", carry_out)
    assert "waits" not in str(ward.rounds(4)) and not carried
    ward.rounds(1)
    assert len(carried) == 1


def test_a_gateway_that_does_not_connect_is_not_healed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs, but its platform stays away: that is a failed repair, with the platform's reason."""
    straw_hermes(tmp_path, monkeypatch)
    fake_gateway.ended(home)

    def apply(home: Home, _vault: object, chosen: list[PlannedItem], _verify: object) -> Journal:
        records = [one.item().record for one in chosen]
        for record in records:
            record.outcome, record.reason = "not-connected", "QQ: closed"
        return Journal("run", "fix", str(home.path), "", AT.isoformat(), items=records)

    monkeypatch.setattr(repair_runs, "apply_plans", apply)
    ward = Ward(home)
    told = str(ward.rounds(5))
    assert "healed" not in told and "failed GW-DOWN" in told
    [event] = [one for one in ward.heard if one.code == "GW-DOWN" and one.kind.value == "failed"]
    assert "started, not connected yet (QQ: closed)" in event.title


def test_what_would_ask_is_left_alone(home: Path) -> None:
    """What would ask is left alone."""
    support.put(home / "config.yaml", "model: [\n")
    support.put(home / "config.yaml.bak", support.CONFIG)
    ward = Ward(home)
    ward.rounds(6)

    assert "healed" not in ward.heard.kinds and not (home / "backups").exists()
    assert (home / "config.yaml").read_text() == "model: [\n"


def test_unless_it_was_agreed_to_beforehand(home: Path) -> None:
    """Unless it was agreed to beforehand."""
    support.put(home / "config.yaml.bak", support.CONFIG)
    support.put(home / "config.yaml", "model: [\n")
    told = Ward(home, agreed=["CFG-YAML"]).rounds(4)

    assert told == ["found CFG-YAML", "healed CFG-YAML", "gone CFG-YAML"]
    assert (home / "config.yaml").read_text() == support.CONFIG


def test_a_fix_that_turns_out_to_ask_is_not_carried_on(home: Path) -> None:
    """Where a safe fix is not enough, the next one asks: then nothing is changed."""
    data = (home / "state.db").read_bytes()
    support.clobber(home / "state.db", b"\xff" * 8192, at=0)
    before = (home / "state.db").read_bytes()
    ward = Ward(home)
    ward.rounds(4)

    assert "healed" not in ward.heard.kinds
    assert (home / "state.db").read_bytes() == before != data


def test_a_gateway_that_was_stopped_on_purpose_is_not_started(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that was stopped on purpose is not started."""
    straw_hermes(tmp_path, monkeypatch)
    fake_gateway.ended(home, ("gateway.exit_clean", {"exit_code": 0}), gateway_state="stopped")
    ward = Ward(home)
    told = ward.rounds(5)

    assert not [one for one in told if one.startswith(("healed", "failed"))]
    [down] = [one for one in ward.look().findings if one.code == "GW-DOWN"]
    assert down.severity is Severity.INFO and "stopped on purpose" in down.title
    assert not (tmp_path / "called").exists(), "hermes was run"
    assert list(Probes(Home(home)).gateway.running()) == []
    assert not (home / "backups").exists()


def test_the_budget_is_kept_and_its_end_is_told_once(home: Path) -> None:
    """The budget is kept and its end is told once."""
    ward = Ward(home, after=1, budget=Budget(2, 1800.0))
    for _ in range(2):
        blot(home)
        ward.rounds(1)
        ward.rounds(1)
    blot(home)
    told = ward.rounds(10)

    assert told == ["new ENV-BOM", "waits"]
    [held] = [one for one in ward.heard if one.kind == "waits"]
    assert "the budget of 2 in 30 min is used up; the next repair is possible at " in held.title
    assert blotted(home)
    later = [one for one in ward.rounds(13, every=140.0) if one != "stable ENV-BOM"]
    assert later[0] == "healed ENV-BOM", "and later it may again"


def test_a_new_process_has_no_new_budget(home: Path) -> None:
    """A new process has no new budget."""
    blot(home)
    first = Ward(home, after=1, budget=Budget(1, 1800.0))
    assert "healed ENV-BOM" in first.rounds(1)
    known = WatchStateFiles(Home(home), home.parent / "state").load("one")

    assert known and len(known.repairs) == 1


def test_what_fails_is_not_repeated_soon_and_not_for_ever(home: Path, tmp_path: Path) -> None:
    """What fails is not repeated soon and not for ever."""
    ward = Ward(home, own(tmp_path), after=1, budget=Budget(100, 600.0))
    told = ward.rounds(1)
    assert told == ["found NEVER-WELL", "failed NEVER-WELL"]
    assert (home / "auth.json").exists(), "taken back"
    assert ward.rounds(4, every=140.0) == []
    assert ward.rounds(1, every=140.0) == ["failed NEVER-WELL"]
    assert ward.rounds(8, every=140.0) == [], "twice as long"
    assert ward.rounds(1, every=140.0) == ["failed NEVER-WELL"]
    assert "failed NEVER-WELL" not in ward.rounds(3, every=1e6)
    last = [one for one in ward.heard if one.kind == "failed"][-1]
    assert "tried 3 times, so you have to repair it" in last.title


def test_one_that_fails_does_not_keep_the_others_from_it(home: Path, tmp_path: Path) -> None:
    """One that fails does not keep the others from it."""
    ward = Ward(home, own(tmp_path), after=1)
    ward.rounds(2)
    blot(home)

    assert "healed ENV-BOM" in ward.rounds(1)


def test_never_while_an_answer_is_written_up_to_a_limit(home: Path) -> None:
    """Never while an answer is written up to a limit."""
    busy = True
    ward = Ward(home, after=1, patience=600.0, busy=lambda _: busy)
    blot(home)

    assert ward.rounds(10) == ["found ENV-BOM", "waits"]
    assert blotted(home)
    assert "healed ENV-BOM" in ward.rounds(12), "patience ends"
    blot(home)
    assert ward.rounds(3) == ["new ENV-BOM", "waits"]
    busy = False
    assert ward.rounds(1) == ["healed ENV-BOM"]


def test_another_run_goes_first(home: Path) -> None:
    """Another run goes first."""
    ward = Ward(home, after=1)
    blot(home)
    with lock_home(Home(home)):
        assert ward.rounds(3) == ["found ENV-BOM", "waits"]
    assert ward.rounds(1) == ["healed ENV-BOM"]


def test_another_watch_heals(home: Path) -> None:
    """The second one says so and looks; when the first is gone, it takes over."""
    ward = Ward(home, after=1)
    store = ward.watch.store
    script = f"""
import sys
from pathlib import Path
from hermes_doctor.core.home import Home
from hermes_doctor.operations.watch.store import WatchStateFiles
assert WatchStateFiles(Home(Path({str(home)!r})), Path({str(store.folder)!r})).take()
print("held", flush=True)
sys.stdin.read()
"""
    other = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout and other.stdout.readline() == "held\n"
        blot(home)
        assert ward.rounds(3) == ["found ENV-BOM", "waits"]
        [held] = [one for one in ward.heard if one.kind == "waits"]
        assert f"another watch (process {other.pid}) repairs this home" in held.title
    finally:
        other.communicate()
    assert ward.rounds(1) == ["healed ENV-BOM"]


def test_what_cannot_be_planned_is_told_once_and_asked_again_later(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be planned is told once and asked again later."""
    monkeypatch.setenv("_HERMES_GATEWAY", "1")
    fake_gateway.ended(home)
    ward = Ward(home, after=1)
    planned = 0
    real: Callable[..., Any] = repair_runs.plan_repairs

    def counting(*args: Any) -> Any:
        nonlocal planned
        planned += 1
        return real(*args)

    monkeypatch.setattr(repair_runs, "plan_repairs", counting)
    told = ward.rounds(8)

    assert told.count("waits GW-DOWN") == 1 and "failed GW-DOWN" not in told
    assert planned == 3, "soon once more, then every two minutes"


def test_no_gateway_is_started_into_the_service_of_the_watch(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No gateway is started into the service of the watch."""
    fake_gateway.ended(home)
    straw_hermes(tmp_path, monkeypatch)
    monkeypatch.setenv("HERMES_DOCTOR_SERVICE", "1")
    ward = Ward(home, after=1)
    ward.rounds(1)

    held = [one.title for one in ward.heard if one.kind == "waits"]
    assert held and "would be part of the service of the watch" in held[0]
