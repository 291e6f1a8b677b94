"""Was a unit stopped by somebody, or did it come to rest by itself?"""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.gateway.systemd import SystemdManager, SystemdUnit
from hermes_doctor.home import Home

RESTING = {
    "ActiveState": "inactive",
    "Restart": "always",
    "ExecMainStatus": "0",
    "RestartPreventExitStatus": "78",
    "ExecMainExitTimestampMonotonic": "1000000",
    "StateChangeTimestampMonotonic": "1200000",
    "RestartUSec": "5s",
}


@pytest.mark.parametrize(
    ("changes", "laid"),
    [
        ({}, True),
        ({"ActiveState": "failed", "ExecMainStatus": "1"}, True),
        ({"ActiveState": "deactivating"}, True),
        ({"ActiveState": "deactivating", "Restart": "no"}, True),
        ({"ActiveState": "active"}, False),
        ({"ActiveState": "activating"}, False),
        ({"Restart": "on-failure"}, False),
        ({"ExecMainStatus": "78"}, False),
        ({"StateChangeTimestampMonotonic": "6100000"}, False),
    ],
)
def test_laid_down(
    home: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], laid: bool
) -> None:
    """Also while it is on its way: what is being stopped must not be started against that."""
    told = RESTING | changes
    monkeypatch.setattr(SystemdManager, "tell", lambda _, unit, name: told[name])

    assert (
        SystemdUnit(Home(home), "x.service", SystemdManager(None)).was_stopped_on_purpose() is laid
    )
