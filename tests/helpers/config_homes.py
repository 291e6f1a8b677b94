"""Run one check on a home with given files under the rules of one release."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CheckResult, Finding, Status
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.knowledge import parse_release
from tests.helpers import support

PLUGINS = load.load()
TOKEN = "12345678:zQcanaryKx9pLm2Tw_abcdefghijklmnop"
"""A token in Telegram's format; no output may contain it."""
TELEGRAM = f"TELEGRAM_BOT_TOKEN={TOKEN}\n"
HEALTHY: dict[str, tuple[str, str]] = {
    "plain": (support.CONFIG, support.ENV),
    "telegram": (
        "telegram:\n  require_mention: true\n  allow_from: [1, 2]\n"
        "platforms:\n  telegram:\n    enabled: true\n    extra: {rich_messages: true}\n",
        TELEGRAM
        + "# a comment\n\nexport SECOND='two words'\nLONG=\"-----BEGIN X\nabc\n-----END X\"\n",
    ),
    "same in both": (
        "telegram: {require_mention: true, allow_from: [1, 2], reply_to_mode: 'off'}\n",
        TELEGRAM + "TELEGRAM_REQUIRE_MENTION=True\nTELEGRAM_ALLOWED_USERS=2, 1\n"
        "TELEGRAM_REPLY_TO_MODE=off\n",
    ),
    "own keys": (
        "my_plugin: {depth: 3}\npersonalities: {helpfull: 'Be kind: “always”'}\n"
        "quick_commands: {modle: {type: exec}}\nmcp_servers: {telegrm: {command: x}}\n",
        "MY_PLUGIN=1\nhttp_proxy=http://proxy.example:3128\n",
    ),
    "unicode": (
        "model: {default: x, provider: openrouter}\nagent:\n  environment_hint: 你好 “world”, ok\n",
        "OPENROUTER_API_KEY='sk-or-v1-abcdef'\nNOTE=caf\u00e9\n",
    ),
    "windows": (
        "\ufeffmodel:\r\n  default: x\r\n",
        "OPENROUTER_API_KEY=sk-or-v1-abcdef\r\nB=2\r\n",
    ),
    "empty": ("", ""),
}
"""Files without any problem."""


def write(home: Path, config: str | None = None, env: str | None = None) -> Path:
    """Write these files into a home."""
    if config is not None:
        support.put(home / "config.yaml", config)
    if env is not None:
        support.put(home / ".env", env)
    return home


class Scene:
    """Fake the installed release and the gateway's environment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def release(self, version: str) -> None:
        """Set the installed release."""
        found = SimpleNamespace(release=parse_release(version), version=version)
        self.monkeypatch.setattr(HermesView, "installation", lambda _: found)

    def started_with(self, variables: Mapping[str, str]) -> None:
        """Set the variables that the gateway is started with."""
        self.monkeypatch.setattr(GatewayView, "start_environment", lambda _: dict(variables))


def look(home: Path, id: str) -> tuple[CheckResult, list[Finding]]:
    """Return the result and the findings of this check on a home."""
    checks = [check for check in PLUGINS.checks if check.id == id]
    [result], findings = examine(Probes(Home(home)), checks)
    assert result.status is not Status.CRASHED, result.reason
    assert "zQcanary" not in str([finding._replace(data={}) for finding in findings])
    return result, findings


def told(findings: list[Finding]) -> list[tuple[Any, ...]]:
    """Return code, severity, subject, place and fix of each finding."""
    return [
        (one.code, one.severity.value, one.subject, one.evidence[0].where, one.fix)
        for one in findings
    ]


def silent(home: Path, id: str) -> None:
    """Assert that this check finds nothing in healthy files."""
    for config, env in HEALTHY.values():
        _, findings = look(write(home, config, env), id)
        assert findings == [], config
