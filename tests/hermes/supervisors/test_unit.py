"""Was a unit stopped on purpose, or did it end by itself?"""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.repair.gateway.service_managers import SystemdManager, SystemdUnit
from tests.helpers.unit_ends import CRASHED, NEVER, STOPPED, WAITED


@pytest.mark.parametrize("restart", ["always", "on-failure", "no"])
@pytest.mark.parametrize(
    ("changes", "stopped"),
    [
        ({}, True),
        ({"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}, True),
        ({"Result": "timeout"}, True),
        ({"ActiveState": "deactivating"}, True),
        ({"ActiveState": "active"}, False),
        ({"ActiveState": "activating"}, False),
        ({"Result": "watchdog"}, False),
        (CRASHED, False),
        ({"InactiveExitTimestampMonotonic": "647000000"}, False),  # a later start failed
        (WAITED, True),
        (WAITED | {"ActiveState": "failed"}, False),  # systemd gave it up
        (WAITED | {"StateChangeTimestampMonotonic": "660000000"}, False),  # `reset-failed`
        (NEVER, False),
    ],
)
def test_stopped_on_purpose(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, str],
    stopped: bool,
    restart: str,
) -> None:
    """The order of the ends decides, whatever the restart setting and the exit status are."""
    told = STOPPED | {"Restart": restart} | changes
    monkeypatch.setattr(SystemdManager, "property_of", lambda _, unit, name: told[name])

    unit = SystemdUnit(Home(home), "x.service", SystemdManager(None))

    assert unit.was_stopped_on_purpose() is stopped
