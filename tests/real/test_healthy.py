"""A healthy home of every release is healthy to the doctor."""

from __future__ import annotations

import pytest

from tests.helpers.real.release_homes import MakeHome, Patient
from tools import releases

pytestmark = pytest.mark.real


@pytest.mark.parametrize("version", releases.ALL)
def test_healthy_home(version: str, hermes_home: MakeHome) -> None:
    """No finding of warning or above, no doubt, exit 0, and the very version that is installed."""
    done = Patient(version, hermes_home(version)).check("--fail-on", "warning,unknown,crashed")

    assert [f for f in done.json["findings"] if f["severity"] != "info"] == []
    assert {check["status"] for check in done.json["checks"]} <= {"ok", "skipped"}
    assert done.json["hermes"]["version"] == version
    assert done.json["summary"]["status"] == "ok"
    assert done.code == 0
