"""GW-UNSUPERVISED and GW-WSL-NO-SYSTEMD; with a real systemd in tests/real/test_supervision.py."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_doctor.hermes.supervisors.starters import WatchKeeper
from tests.helpers import support
from tests.helpers.fake_supervision import ask, codes, unit
from tests.helpers.one_check import ask as look
from tests.helpers.real.gateways import end, until


def test_healthy(home: Path) -> None:
    """A home on which nothing runs and nothing should has no such question."""
    result, findings = look("service-restart", home)

    assert (result.status, findings) == ("skipped", [])


def test_looked_after(home: Path) -> None:
    """A gateway that its unit brings back is fine."""
    assert codes("service-restart", home, unit(home)) == []


def test_started_by_hand(tmp_path: Path) -> None:
    """A process that a person started is named, with since when and the fix."""
    home = support.put(tmp_path / "home/config.yaml", support.CONFIG).parent
    script = support.put(tmp_path / "hermes", "import time\ntime.sleep(100)\n")
    process = subprocess.Popen(
        [sys.executable, script, "gateway", "run"], env={"HERMES_HOME": str(home)}
    )
    try:
        until(lambda: bool(look("service-restart", home)[1]), "the gateway to be seen")
        result, [finding] = look("service-restart", home)
    finally:
        end(process)

    assert result.status == "problem"
    assert (finding.code, finding.severity) == ("GW-UNSUPERVISED", "warning")
    assert finding.fix == "install-service"
    assert finding.since is not None
    assert finding.data["pid"] == process.pid


def test_a_loop_in_a_shell(tmp_path: Path) -> None:
    """A script that has outlived an earlier gateway may start the next one, too."""
    home = support.put(tmp_path / "home/config.yaml", support.CONFIG).parent
    hermes = support.put(tmp_path / "hermes", "import time\ntime.sleep(100)\n")
    loop = subprocess.Popen(
        ["sh", "-c", f"'{sys.executable}' '{hermes}' gateway run; exit"],
        env={"HERMES_HOME": str(home)},
        start_new_session=True,
    )
    try:
        until(lambda: bool(look("service-restart", home)[1]), "the gateway to be seen")
        for began, result in (("2026-01-01T00:00:00Z", "problem"), (f"{datetime.now(UTC)}", "ok")):
            start = {"tag": "gateway.start", "pid": 1, "ts": began}
            support.put(home / "logs/gateway-exit-diag.log", json.dumps(start) + "\n")
            assert look("service-restart", home)[0].status == result
    finally:
        os.killpg(loop.pid, signal.SIGKILL)
        loop.wait()


def test_a_unit_that_does_not_restart(home: Path) -> None:
    """A unit alone is not enough, and installing one more would not help."""
    _, [finding] = ask("service-restart", home, unit(home), revives=False)

    assert (finding.code, finding.fix) == ("GW-UNSUPERVISED", None)


@pytest.mark.parametrize(("file", "fix"), [("disabled", "enable-service"), ("static", None)])
def test_a_unit_that_nothing_starts(home: Path, file: str, fix: str | None) -> None:
    """It runs, and would not run after a reboot; without [Install] it cannot be enabled."""
    off = unit(home, settings={"UnitFileState": file})

    _, [finding] = ask("service-restart", home, off, revives=True)

    assert (finding.code, finding.severity) == ("GW-NOT-ENABLED", "warning")
    assert finding.title == "hermes-gateway.service is not enabled"
    assert finding.fix == fix
    assert ("[Install]" in finding.next) is (fix is None)
    by_timer = unit(home, settings={"UnitFileState": file, "TriggeredBy": "hermes.timer"})
    assert codes("service-restart", home, by_timer, revives=True) == []


def test_windows_subsystem(home: Path) -> None:
    """Under WSL the way out is another one."""
    assert codes("service-restart", home, revives=False, wsl=True) == [
        ("GW-WSL-NO-SYSTEMD", "warning")
    ]
    assert codes("service-restart", home, revives=False, wsl=True, booted=True) == [
        ("GW-UNSUPERVISED", "warning")
    ]


def test_a_crontab_line_restarts_it(home: Path) -> None:
    """A watch that cron starts counts as what restarts the gateway."""
    keeper = WatchKeeper("cron", True, "a crontab line starts it again (`watch --heal`)")

    assert codes("service-restart", home, revives=True, keeper=keeper) == []


def test_windows_subsystem_has_a_fix(home: Path) -> None:
    """Cron works there without systemd."""
    _, [finding] = ask("service-restart", home, revives=False, wsl=True)

    assert finding.fix == "install-service"


def test_no_telling(home: Path) -> None:
    """What could not be asked makes it unknown, never fine."""
    result, findings = ask("service-restart", home, unit(home), revives=None, unsure=("no bus",))

    assert (result.status, findings) == ("unknown", [])
    assert "no bus" in (result.reason or "")
