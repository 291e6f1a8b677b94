"""GW-API-KEY-MISSING: a key that is good enough for where the API server listens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.gateway_home import Scene, ask

PUBLIC = "API_SERVER_HOST=0.0.0.0\n"
EIGHT, SIXTEEN = "API_SERVER_KEY=canary8x\n", "API_SERVER_KEY=canarycanary16xx\n"
FOUR = "API_SERVER_KEY=can4\n"
CASES = [
    ("0.13.0", "", None),
    ("0.13.0", PUBLIC, "error"),
    ("0.13.0", FOUR, None),
    ("0.13.0", PUBLIC + FOUR, "error"),
    ("0.13.0", PUBLIC + EIGHT, "warning"),
    ("0.13.0", PUBLIC + SIXTEEN, None),
    ("0.15.0", "", "error"),
    ("0.15.0", FOUR, None),
    ("0.17.0", PUBLIC + EIGHT, "warning"),
    ("0.17.0", PUBLIC + "API_SERVER_KEY=your-api-key\n", "error"),
    ("0.18.0", EIGHT, "error"),
    ("0.18.0", SIXTEEN, None),
    ("0.19.0", "", "error"),
    ("0.19.0", PUBLIC + SIXTEEN, None),
    ("0.19.0", "API_SERVER_HOST=::1\n" + SIXTEEN, None),
]


@pytest.mark.parametrize(("version", "env", "severity"), CASES)
def test_key(home: Path, version: str, env: str, severity: str | None) -> None:
    """The rules of each release, and what it lets pass although it is weak."""
    support.put(home / ".env", "API_SERVER_ENABLED=true\n" + env)

    _, findings = ask("api-exposure", Scene(home, {}, running=False, version=version))

    assert [one.severity for one in findings] == ([severity] if severity else [])
    assert "can" + "ary" not in repr(findings)


def test_place_of_the_key(home: Path) -> None:
    """The line is named, also in config.yaml."""
    config = "platforms:\n  api_server:\n    enabled: true\n    extra:\n      key: canary8x\n"
    support.put(home / "config.yaml", support.CONFIG + config)

    _, [finding] = ask("api-exposure", Scene(home, {}, running=False))

    assert finding.evidence[0].where == "config.yaml:10"


def test_switched_off(home: Path) -> None:
    """No API server, no key."""
    result, _ = ask("api-exposure", Scene(home, {}, running=False))

    assert result.status == "skipped"
