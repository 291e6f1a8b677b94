"""What the last `hermes update` left, judged by the code that is on disk and in memory."""

from __future__ import annotations

import json
import os
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.model import Finding, Severity, Status
from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from tests.helpers import fake_gateway, recorded_homes, support
from tests.helpers.one_check import ask

CHECK = "update-receipts"
OLD, NEW = "a" * 40, "b" * 40


def receipt(home: Path, outcome: str, ago: float = 60, after: str = NEW, **restart: object) -> None:
    """Write a receipt as Hermes 0.20.5 does."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    said = {
        "schema": 1,
        "started_at": (at - timedelta(seconds=30)).isoformat(),
        "finished_at": at.isoformat(),
        "outcome": outcome,
        "pre_update": {"sha": OLD},
        "post_update": {"sha": after},
        "steps": [{"name": "git_pull", "ok": outcome != "failed", "detail": "x"}],
        "gateway_restart": restart,
        "fleet": [],
    }
    support.put(home / "logs/update_receipts/latest.json", json.dumps(said))


def loaded(home: Path, commit: str) -> None:
    """Let the last gateway have written the commit of its code."""
    path = home / "gateway_state.json"
    support.put(path, json.dumps(json.loads(path.read_text()) | {"code_sha": commit}))


def on_disk(monkeypatch: pytest.MonkeyPatch, commit: str | None) -> None:
    """Let the checkout be at a commit."""
    monkeypatch.setattr(HermesView, "code_commit", lambda _: commit)


def found(home: Path) -> list[tuple[str, Severity]]:
    """Codes and severities."""
    result, findings = ask(CHECK, home)
    assert result.status in (Status.OK, Status.PROBLEM), result
    return [(one.code, one.severity) for one in findings]


NOTE = [("UPD-RECEIPT", Severity.INFO)]
NOT_STARTED = [("GW-UPDATE-NOT-RESTARTED", Severity.ERROR)]


def test_healthy(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a receipt there is no question; a good one says nothing, whatever came after."""
    assert ask(CHECK, home)[0].status is Status.SKIPPED
    on_disk(monkeypatch, NEW)
    fake_gateway.ended(home)
    for outcome in ("success", "refused"):
        receipt(home, outcome)
        assert found(home) == []
    on_disk(monkeypatch, "c" * 40)
    receipt(home, "success")
    assert found(home) == []


@pytest.mark.parametrize(
    ("head", "memory", "expected"),
    [(NEW, NEW, NOTE), (NEW, OLD, NOT_STARTED), (None, OLD, NOT_STARTED), ("c" * 40, OLD, NOTE)],
)
def test_partial(
    home: Path,
    head: str | None,
    memory: str,
    expected: list[tuple[str, Severity]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gateway that runs the old code is a problem; the receipt alone is not."""
    on_disk(monkeypatch, head)
    fake_gateway.ended(home)
    loaded(home, memory)
    receipt(home, "partial", failed_units=["hermes-gateway-coder"], incomplete=True)
    assert found(home) == expected


def test_a_start_after_the_update_counts_without_a_commit(home: Path) -> None:
    """An older Hermes writes no commit, so the times decide."""
    fake_gateway.ended(home)
    receipt(home, "partial")
    assert found(home) == NOT_STARTED
    fake_gateway.note(home, fake_gateway.DEAD - 1, datetime.now(UTC), "gateway.start")
    assert found(home) == NOTE


def test_a_start_in_the_log_counts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway that wrote its first line after the update did start, whatever the files say."""
    on_disk(monkeypatch, NEW)
    fake_gateway.ended(home)
    loaded(home, OLD)
    receipt(home, "partial", ago=600)
    line = "{} INFO gateway.run: Starting Hermes Gateway...\n"
    for ago, expected in ((700, NOT_STARTED), (300, NOTE)):
        at = time.time() - ago
        said = time.strftime("%Y-%m-%d %H:%M:%S,000", time.localtime(at))
        log = support.put(home / "logs/gateway.log", line.format(said))
        os.utime(log, (at, at))
        assert found(home) == expected


def test_failed_before_the_code_changed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed fetch; a week later it is no news."""
    on_disk(monkeypatch, OLD)
    receipt(home, "failed", after=OLD)
    [finding] = ask(CHECK, home)[1]
    assert (finding.code, finding.severity) == ("UPD-FAILED", Severity.WARNING)
    assert "git_pull" in finding.evidence[0].what
    receipt(home, "failed", ago=8 * 86400, after=OLD)
    assert found(home) == []


@pytest.mark.parametrize(
    ("reason", "title", "shown"),
    [
        ("KeyboardInterrupt: ", "was interrupted", ["stop_reason: KeyboardInterrupt"]),
        ("OSError: [Errno 28] No space left", "failed", ["stop_reason: OSError: [Errno 28] No sp"]),
        ("sys.exit(1)", "failed", ["stop_reason: sys.exit(1)"]),
        ("completed at command boundary", "failed", []),
        (7, "failed", []),
    ],
)
def test_stop_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch, reason: object, title: str, shown: list[str]
) -> None:
    """How its command ended, and the error that ended it."""
    on_disk(monkeypatch, OLD)
    receipt(home, "failed", after=OLD)
    path = home / "logs/update_receipts/latest.json"
    support.put(path, json.dumps(json.loads(path.read_text()) | {"stop_reason": reason}))

    [finding] = ask(CHECK, home)[1]

    assert finding.title == f"the last Hermes update {title}"
    seen = [one.what for one in finding.evidence[1:]]
    assert len(seen) == len(shown)
    assert all(what.startswith(part) for what, part in zip(seen, shown, strict=True))


def test_the_error_of_the_restart(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why the gateways were not started again."""
    on_disk(monkeypatch, NEW)
    fake_gateway.ended(home)
    loaded(home, OLD)
    receipt(home, "partial", phase_error="ImportError: cannot import name 'x'", incomplete=True)

    [finding] = ask(CHECK, home)[1]

    assert finding.evidence[1].what == "phase_error: ImportError: cannot import name 'x'"


def lost(home: Path) -> Finding:
    """Return the error about a gateway that did not come back."""
    [finding] = ask(CHECK, home)[1]
    assert (finding.code, finding.severity) == ("GW-UPDATE-NOT-RESTARTED", Severity.ERROR)
    return finding


def test_stopped_and_not_started(home: Path) -> None:
    """The detached watcher that should start it has died."""
    fake_gateway.ended(home)
    receipt(home, "success", killed_pids=[fake_gateway.DEAD], relaunched_profiles=["default"])
    assert "nothing started it again" in lost(home).evidence[1].what
    receipt(home, "success", killed_pids=[17])
    assert found(home) == []


@pytest.mark.parametrize(("seconds", "is_lost"), [(20, True), (400, False)])
def test_started_and_died(home: Path, seconds: int, is_lost: bool) -> None:
    """A gateway that dies right after its first start with the new code."""
    now = datetime.now(UTC)
    fake_gateway.note(home, fake_gateway.DEAD, now - timedelta(seconds=590), "gateway.start")
    fake_gateway.note(
        home, fake_gateway.DEAD, now - timedelta(seconds=590 - seconds), "gateway.exit_nonzero"
    )
    receipt(home, "success", ago=595, restarted_services=["hermes-gateway"])
    if is_lost:
        assert "died at once" in lost(home).evidence[1].what
    else:
        assert found(home) == []


def test_marker(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newer releases leave a marker from the change of the code until the restart."""
    on_disk(monkeypatch, NEW)
    fake_gateway.ended(home)
    loaded(home, OLD)
    marker = home / "fleet_restart_pending"
    support.put(marker, f"started={time.time()}\npid={fake_gateway.DEAD}\nexpected_sha={NEW}\n")
    assert found(home) == NOT_STARTED
    loaded(home, NEW)
    assert found(home) == NOTE
    support.put(marker, f"started={time.time()}\npid={os.getpid()}\n")
    assert ask(CHECK, home)[0].status is Status.SKIPPED


def test_a_running_gateway_is_compared_by_another_check(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One finding, not two."""
    on_disk(monkeypatch, NEW)
    with fake_gateway.gateway(home):
        loaded(home, OLD)
        receipt(home, "partial", ago=-5)
        assert found(home) == []
        [finding] = ask("gateway-age", home)[1]
    assert (finding.code, finding.fix) == ("GW-UPDATE-NOT-RESTARTED", "restart-gateway")
    assert OLD[:10] in repr(finding.evidence)


def test_odd(home: Path) -> None:
    """Anything may be in the file."""
    path = home / "logs/update_receipts/latest.json"
    for said in ("[]", "{}", '{"outcome": 5}', '{"outcome": "a b", "finished_at": "x"}'):
        support.put(path, said)
        assert ask(CHECK, home)[0].status is Status.SKIPPED
    support.put(path, "x")
    assert ask(CHECK, home)[0].status is Status.UNKNOWN
    odd = {"steps": [1, {}], "gateway_restart": 3, "pre_update": [], "post_update": {"sha": {}}}
    at = datetime.now(UTC).isoformat()
    support.put(path, json.dumps({"outcome": "failed", "finished_at": at} | odd))
    assert found(home) == [("UPD-FAILED", Severity.WARNING)]


REAL = """
from hermes_cli import update_receipt
update_receipt.begin_update_receipt()
update_receipt.record_step("git_pull", True)
update_receipt.record_gateway_restart(killed_pids=[{pid}], relaunched_profiles=["default"])
assert update_receipt.finalize_update_receipt("{outcome}", fleet=[])
"""


@pytest.mark.real
def test_receipt_of_a_real_release(tmp_path: Path) -> None:
    """Written by the code of 0.20.5 itself."""
    source = recorded_homes.Source("0.20.5", "real", tmp_path)
    python, home = source.python, source.home("plain")
    fake_gateway.ended(home)
    for outcome in ("success", "failed"):
        script = REAL.format(pid=fake_gateway.DEAD, outcome=outcome)
        env = os.environ | {"HERMES_HOME": str(home)}
        subprocess.run([python, "-c", script], env=env, cwd=tmp_path, check=True)
        assert "nothing started it again" in lost(home).evidence[1].what
