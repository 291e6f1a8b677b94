"""What the proof of a start says if something cannot be looked at."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from hermes_doctor.gateway import startup_proof
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.probes.next_start import NextStart
from hermes_doctor.probes.platform_proof import PlatformProof


class _Probes:
    """A running gateway with one platform, whose settings cannot be read."""

    def gateways(self) -> list[Any]:
        return [SimpleNamespace(pid=7, started_at=datetime.now(UTC))]

    def claims(self, gateway: Any) -> dict[str, Any]:
        return {"qqbot": SimpleNamespace(state="connecting")}

    def platforms(self) -> list[Any]:
        raise CouldNotLook("config.yaml cannot be read")

    def platform_proof(self, gateway: Any, name: str) -> PlatformProof:
        return PlatformProof(False, "its server has not accepted the login yet")


def test_a_start_succeeds_although_the_platforms_have_no_labels() -> None:
    """A platform that has no known label is called by its name; the start has not failed."""
    starter: Any = SimpleNamespace(probes=_Probes, trouble=lambda: None)
    [gateway] = _Probes().gateways()
    missing: dict[str, str] = {}

    notes = list(startup_proof._connected(starter, gateway, time.monotonic() + 0.3, missing))

    assert notes == ["not connected yet: qqbot"]
    assert missing == {"qqbot": "qqbot: its server has not accepted the login yet"}


class _Waiting(_Probes):
    """A gateway that Hermes lets wait before its start, again and again."""

    def runtime(self) -> Any:
        return SimpleNamespace(lock_holder=None)

    def next_start(self) -> NextStart:
        return NextStart("Hermes waits", 30.0, 7)


def test_a_gateway_that_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hermes waits 5 minutes at most; after that, the wait for a gateway has an end."""
    monkeypatch.setattr(startup_proof, "LONGEST_WAIT", 0.2)
    starter: Any = SimpleNamespace(probes=_Waiting, trouble=lambda: None)

    with pytest.raises(CannotFix, match="process 7 has no lock yet"):
        startup_proof._appeared(starter, time.monotonic() + 0.1, None)
