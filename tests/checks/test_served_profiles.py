"""A profile that the root home lists as served, although its gateway serves only itself."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Severity, Status
from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.installation.find import Installation
from tests.helpers import fake_gateway, support
from tests.helpers.one_check import ask

CHECK = "served-profiles"


def settings(home: Path, words: str) -> None:
    """Write the settings of the root home, before its gateway starts."""
    path = support.put(home / "config.yaml", words)
    os.utime(path, (time.time() - 60,) * 2)


def lists(home: Path) -> None:
    """Let the state file list a profile, as an earlier gateway wrote it."""
    path = home / "gateway_state.json"
    said = json.loads(path.read_text()) | {"served_profiles": ["default", "coder"]}
    support.put(path, json.dumps(said))


@pytest.mark.parametrize(
    ("words", "stale"),
    [
        ("gateway:\n  multiplex_profiles: false\n", True),
        ("multiplex_profiles: false\n", True),
        ("multiplex_profiles: true\n", False),
        ("gateway:\n  multiplex_profiles: true\nmultiplex_profiles: false\n", False),
        ("model: x\n", False),
    ],
)
@pytest.mark.parametrize(("version", "by_list"), [("0.21.0", True), ("0.20.5", False)])
def test_stale(
    home: Path,
    words: str,
    stale: bool,
    version: str,
    by_list: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Newer releases refuse to start by the list; a stale list serves nobody in any release."""
    found = Installation(version, Path("/nowhere"), running=False)
    monkeypatch.setattr(HermesView, "installation", lambda _: found)
    coder = support.healthy(home / "profiles" / "coder")
    fake_gateway.ended(coder, ("gateway.exit_nonzero", {}))
    settings(home, words)
    with fake_gateway.gateway(home):
        lists(home)
        result, findings = ask(CHECK, coder)
        running = ask("gateway-running", coder)

    refused = [("GW-EXIT78", Severity.ERROR)] if stale and by_list else []
    assert [(one.code, one.severity) for one in findings] == refused
    assert (running[0].status is Status.SKIPPED) is not stale
    assert ("GW-DOWN" in [one.code for one in running[1]]) is stale
    assert result.status in (Status.OK, Status.PROBLEM)


def test_not_asked(home: Path) -> None:
    """The root home itself, and a profile that is not listed."""
    coder = support.healthy(home / "profiles" / "coder")
    assert ask(CHECK, home)[0].status is Status.SKIPPED
    with fake_gateway.gateway(home):
        assert ask(CHECK, coder)[0].status is Status.SKIPPED


@pytest.mark.parametrize("place", ["later", "env"])
def test_it_may_still_serve(home: Path, place: str) -> None:
    """Settings that were changed after its start, or that a variable overrides."""
    coder = support.healthy(home / "profiles" / "coder")
    settings(home, "multiplex_profiles: false\n")
    if place == "env":
        support.put(home / ".env", "GATEWAY_MULTIPLEX_PROFILES=1\n")
    with fake_gateway.gateway(home):
        lists(home)
        if place == "later":
            os.utime(home / "config.yaml", (time.time() + 60,) * 2)
        assert ask(CHECK, coder)[1] == []
        assert Probes(Home(coder)).gateway.served_by()
