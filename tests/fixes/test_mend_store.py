"""mend-store: the flaw goes, every entry stays."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes_doctor.home import Home
from hermes_doctor.model import Gateway
from hermes_doctor.probes import Probes
from tests import planned, stored, support
from tests.curing import cure

PAIRED = "platforms/pairing/telegram-approved.json"
CODES = {
    "auth.json": "AUTHJSON",
    "cron/jobs.json": "CRON-JOBS-CORRUPT",
    "sessions/sessions.json": "SESSION-ROUTE-STALE",
    PAIRED: "PAIRING-CORRUPT",
    "webhook_subscriptions.json": "STORE-CORRUPT",
}


@pytest.mark.parametrize("name", CODES)
def test_cures_and_undoes(home: Path, name: str) -> None:
    """NUL bytes behind each store: gone, every entry there, twice is once, undo gives them back."""
    stored.everything(home)
    stored.write(home, name, stored.text(name) + b"\0" * 512)

    cured = cure(home, CODES[name], "mend-store", name)

    assert (home / name).read_bytes() == stored.text(name)
    assert "every entry stays" in cured.steps[0]
    cured.undo()


def test_put_aside_joins(home: Path) -> None:
    """What only the file has that Hermes put aside comes back; what is there now stays."""
    stored.write(home, "auth.json", b'{"version": 1, "providers": {"nous": {"x": 1}}}')
    support.put(home / "auth.json.corrupt", stored.text("auth.json") + b"}")

    cured = cure(home, "AUTHJSON", "mend-store", "auth.json")

    found = json.loads((home / "auth.json").read_text())
    assert found["providers"] == {"nous": {"x": 1}}
    assert found["credential_pool"] == stored.WHOLE["auth.json"]["credential_pool"]
    cured.undo()


@pytest.mark.parametrize("aside", ['{"providers": [1]}', '{"providers": {}, "credential_pool": 7}'])
def test_odd_file_aside(home: Path, aside: str) -> None:
    """What was put aside may be anything."""
    stored.write(home, "auth.json")
    support.put(home / "auth.json.corrupt", aside)

    done = support.doctor("check", "--json", "--home", home)

    assert "AUTHJSON" not in done.codes
    assert "crashed" not in done.out


def test_cache(home: Path) -> None:
    """A list of limits on which Hermes fails goes to the vault: it makes a new one."""
    name = "platforms/pairing/_rate_limits.json"
    stored.write(home, name, b"null")

    cured = cure(home, "PAIRING-CORRUPT", "mend-store", name)

    assert not (home / name).exists()
    cured.undo()


@pytest.mark.parametrize(
    ("name", "restarts"), [("auth.json", True), ("cron/jobs.json", False), (PAIRED, False)]
)
def test_gateway(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, restarts: bool
) -> None:
    """A gateway is down for what it reads at its start and writes by itself, and for no other."""
    stored.write(home, name, stored.text(name) + b"\0")
    running = [Gateway(os.getpid(), Probes(Home(home)).modified(home) or None)]  # type: ignore[arg-type]
    monkeypatch.setattr(Probes, "gateways", lambda _: running)
    planned.owned(monkeypatch, planned.Steady(home, os.getpid(), tmp_path))

    steps = planned.sentences(Probes(Home(home)), planned.finding(CODES[name], "mend-store", name))

    assert any("restart the gateway" in one for one in steps) is restarts
