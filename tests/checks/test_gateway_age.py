"""A gateway older than its code or its settings, and which of them need a restart."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.model import Finding, Severity, Status
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.hermes.installation import last_update
from hermes_doctor.hermes.installation.find import Installation
from tests.helpers import fake_gateway, support
from tests.helpers.one_check import ask

CHECK = "gateway-age"


def later(path: Path, seconds: float = 300) -> Path:
    """As if it had been written after the gateway's start."""
    os.utime(path, (time.time() + seconds,) * 2)
    return path


def look(home: Path) -> dict[str, Finding]:
    """By subject."""
    result, findings = ask(CHECK, home)
    assert result.status in (Status.OK, Status.PROBLEM), result
    return {finding.subject: finding for finding in findings}


def installed(
    monkeypatch: pytest.MonkeyPatch, version: str, where: Path = Path("/nowhere")
) -> None:
    """Let the gateway be of a release."""
    found = Installation(version, where, running=True)
    monkeypatch.setattr(HermesView, "installation", lambda _: found)


def test_healthy(home: Path) -> None:
    """Nothing changed since; without a gateway it is not asked."""
    assert ask(CHECK, home)[0].status is Status.SKIPPED
    with fake_gateway.gateway(home):
        assert look(home) == {}


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("TELEGRAM_BOT_TOKEN=1:x", Severity.WARNING),
        ("export API_SERVER_PORT=9", Severity.WARNING),
        ("ANTHROPIC_API_KEY=x", Severity.INFO),
        ("TELEGRAM_ALLOWED_USERS=1", Severity.INFO),
        ("QQBOT_HOME_CHANNEL=1", Severity.INFO),
        ("# TELEGRAM_BOT_TOKEN=1:x", Severity.INFO),
    ],
)
def test_env(home: Path, line: str, severity: Severity, monkeypatch: pytest.MonkeyPatch) -> None:
    """Platform tokens and ports need a restart; the rest is read anew. No value is shown."""
    installed(monkeypatch, "0.19.0")
    with fake_gateway.gateway(home):
        later(support.put(home / ".env", f"OPENROUTER_API_KEY=s3cret\n{line}\n"))
        finding = look(home)[".env"]

    assert (finding.code, finding.severity) == ("GW-STALE-SETTINGS", severity)
    assert finding.fix == ("restart-gateway" if severity is Severity.WARNING else None)
    assert "s3cret" not in repr(finding)


@pytest.mark.parametrize(
    ("version", "severity"), [("0.18.0", Severity.WARNING), ("0.18.1", Severity.INFO)]
)
def test_references(
    home: Path, version: str, severity: Severity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """${NAME} in config.yaml keeps its old value up to 0.18.0."""
    installed(monkeypatch, version)
    support.put(home / "config.yaml", "model:\n  api_key: ${MY_KEY}\n")
    later(home / "config.yaml", -300)
    with fake_gateway.gateway(home):
        later(home / ".env")
        assert look(home)[".env"].severity is severity


def test_config(home: Path) -> None:
    """config.yaml is read anew for the most part."""
    with fake_gateway.gateway(home):
        later(home / "config.yaml")
        assert look(home)["config.yaml"].severity is Severity.INFO


@pytest.mark.parametrize(
    ("log", "code"),
    [
        ("", "GW-CODE-SKEW"),
        ("Already up to date!\n", "GW-CODE-SKEW"),
        ("✓ Update complete!\n", "GW-UPDATE-NOT-RESTARTED"),
    ],
)
def test_code(
    home: Path, log: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of the installation that are newer than the process, by whom they were changed."""
    place = tmp_path / "venv"
    record = "lib/python3.11/site-packages/hermes_agent-0.19.0.dist-info/RECORD"
    installed(monkeypatch, "0.19.0", place)
    with fake_gateway.gateway(home):
        later(support.put(place / record, ""))
        if log:
            later(support.put(home / "logs" / "update.log", log))
        finding = look(home)["gateway"]

    assert (finding.code, finding.severity) == (code, Severity.WARNING)
    assert finding.fix == "restart-gateway"


def test_checkout(tmp_path: Path) -> None:
    """A checkout tells by the log of its HEAD, and only where it is Hermes'."""
    place = tmp_path / "hermes-agent" / "venv"
    place.mkdir(parents=True)
    head = support.put(place.parent / ".git" / "logs" / "HEAD", "")
    assert last_update.code_change(place) is None

    (place.parent / "hermes_cli").mkdir()
    found = last_update.code_change(place)

    assert found is not None
    assert found.path == head
    assert datetime.now(UTC) - found.at < timedelta(minutes=1)


@pytest.mark.parametrize(("on_disk", "code"), [("a" * 40, None), ("b" * 40, "GW-CODE-SKEW")])
def test_commit(
    home: Path,
    on_disk: str,
    code: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gateway that writes its commit is compared by it: a stash moves HEAD and comes back."""
    place = tmp_path / "hermes-agent"
    support.put(place / "pyproject.toml", 'name = "hermes-agent"\n')
    support.put(place / "hermes_cli" / "main.py", "")
    support.put(place / ".git" / "HEAD", f"{on_disk}\n")
    installed(monkeypatch, "0.20.5", place / "venv")
    with fake_gateway.gateway(home):
        state = home / "gateway_state.json"
        support.put(state, json.dumps(json.loads(state.read_text()) | {"code_sha": "a" * 40}))
        later(support.put(place / ".git" / "logs" / "HEAD", ""))
        findings = look(home)

    assert [one.code for one in findings.values()] == ([code] if code else [])


def test_a_gateway_that_cannot_be_seen(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files say when it started; it can only be restarted where it runs."""
    fake_gateway.note(home, fake_gateway.DEAD, datetime.now(UTC), "gateway.start")
    later(support.put(home / ".env", "TELEGRAM_BOT_TOKEN=1:x\n"))
    assert ask(CHECK, home)[0].status is Status.SKIPPED, "it is gone"

    known = GatewayView.runtime
    monkeypatch.setattr(GatewayView, "runtime", lambda self: known(self)._replace(unseen="hidden"))
    finding = look(home)[".env"]

    assert (finding.code, finding.severity, finding.fix) == (
        "GW-STALE-SETTINGS",
        Severity.WARNING,
        None,
    )
    assert "where it runs" in finding.next
