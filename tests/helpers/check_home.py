"""Run one check on a home with a given .env and config.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hermes_doctor.core.model import CheckResult, Finding
from tests.helpers import support
from tests.helpers.gateway_home import Scene, ask

TELEGRAM = "TELEGRAM_BOT_TOKEN=7123456789:AAHfakefakefakefakefakefakefakefak1\n"
CANARY = "zQcanaryKx9pLm2Tw"
"""Part of values that no finding may show."""


def look(
    home: Path,
    check: str,
    env: str = "",
    config: str = "",
    *,
    version: str = "0.19.0",
    running: bool = False,
    environment: Mapping[str, str] | None = None,
) -> tuple[CheckResult, list[Finding]]:
    """Return the result and the findings of one check on a home with these files."""
    support.put(home / ".env", env)
    support.put(home / "config.yaml", config)
    scene = Scene(home, environment or {}, running=running, version=version)
    result, found = ask(check, scene)
    assert CANARY not in repr(found)
    return result, found


def said(found: list[Finding]) -> list[tuple[str, str]]:
    """Return the severity and the first place of each finding."""
    return sorted((one.severity.value, one.evidence[0].where) for one in found)
