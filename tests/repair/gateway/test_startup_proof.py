"""What the proof of a start says if something cannot be looked at."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.diagnosis.probes.links import PlatformProof
from hermes_doctor.diagnosis.probes.next_start import NextStart
from hermes_doctor.repair.gateway import startup_proof


def _refuse() -> list[Any]:
    raise CouldNotLook("config.yaml cannot be read")


def _one_gateway() -> list[Any]:
    return [SimpleNamespace(pid=7, started_at=datetime.now(UTC))]


class _Probes:
    """A running gateway with one platform, whose settings cannot be read."""

    gateway: Any = SimpleNamespace(
        running=_one_gateway, claims=lambda gateway: {"qqbot": SimpleNamespace(state="connecting")}
    )
    settings: Any = SimpleNamespace(platforms=_refuse)
    health: Any = SimpleNamespace(
        platform_proof=lambda gateway, name: PlatformProof(
            False, "its server has not accepted the login yet"
        )
    )


def test_a_start_succeeds_although_the_platforms_have_no_labels() -> None:
    """A platform that has no known label is called by its name; the start has not failed."""
    starter: Any = SimpleNamespace(probes=_Probes, trouble=lambda: None)
    [gateway] = _one_gateway()
    missing: dict[str, str] = {}

    notes = list(startup_proof._connected(starter, gateway, time.monotonic() + 0.3, missing))

    assert notes == ["not connected yet: qqbot"]
    assert missing == {"qqbot": "qqbot: its server has not accepted the login yet"}


class _Waiting(_Probes):
    """A gateway that Hermes lets wait before its start, again and again."""

    gateway: Any = SimpleNamespace(
        running=_one_gateway, runtime=lambda: SimpleNamespace(lock_holder=None)
    )
    health: Any = SimpleNamespace(next_start=lambda: NextStart("Hermes waits", 30.0, 7))


def test_a_gateway_that_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hermes waits 5 minutes at most; after that, the wait for a gateway has an end."""
    monkeypatch.setattr(startup_proof, "LONGEST_WAIT", 0.2)
    starter: Any = SimpleNamespace(probes=_Waiting, trouble=lambda: None)

    with pytest.raises(CannotFix, match="process 7 has no lock yet"):
        startup_proof._appeared(starter, time.monotonic() + 0.1, None)
