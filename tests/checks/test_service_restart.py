"""GW-UNSUPERVISED and GW-WSL-NO-SYSTEMD; with a real systemd in tests/real/test_supervision.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_a_unit_that_does_not_restart(home: Path) -> None:
    """A unit alone is not enough, and installing one more would not help."""
    _, [finding] = ask("service-restart", home, unit(home), revives=False)

    assert (finding.code, finding.fix) == ("GW-UNSUPERVISED", None)


def test_windows_subsystem(home: Path) -> None:
    """Under WSL the way out is another one."""
    assert codes("service-restart", home, revives=False, wsl=True) == [
        ("GW-WSL-NO-SYSTEMD", "warning")
    ]
    assert codes("service-restart", home, revives=False, wsl=True, booted=True) == [
        ("GW-UNSUPERVISED", "warning")
    ]


def test_no_telling(home: Path) -> None:
    """What could not be asked makes it unknown, never fine."""
    result, findings = ask("service-restart", home, unit(home), revives=None, unsure=("no bus",))

    assert (result.status, findings) == ("unknown", [])
    assert "no bus" in (result.reason or "")
