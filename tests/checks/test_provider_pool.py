"""CRED-POOL-STALE: what to do about stored keys that cannot be used."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.gateway_home import Scene, ask


def stored(home: Path, code: int) -> None:
    """A home whose only key was refused a minute ago with this HTTP status."""
    support.put(home / ".env", "")
    support.put(home / "config.yaml", "model: {provider: deepseek, default: deepseek-chat}\n")
    key = {
        "id": "a1",
        "label": "work",
        "source": "manual",
        "auth_type": "api_key",
        "access_token": "sk-canary-1234567890abcdef",
        "last_status": "exhausted",
        "last_status_at": time.time() - 60,
        "last_error_code": code,
    }
    support.put(home / "auth.json", json.dumps({"credential_pool": {"deepseek": [key]}}))


@pytest.mark.parametrize(
    ("code", "running", "words"),
    [
        (402, False, "Add credit at deepseek."),
        (402, True, "Add credit at deepseek."),
        (429, False, "Run `hermes auth reset deepseek`"),
        (429, True, "Stop the gateway, then run"),
    ],
)
def test_next_step(home: Path, code: int, running: bool, words: str) -> None:
    """Without credit no reset helps, and only a gateway that runs has to be stopped."""
    stored(home, code)

    _, [finding] = ask("provider-pool", Scene(home, {}, running=running))

    assert finding.code == "CRED-POOL-STALE"
    assert finding.next.startswith(words)
    assert "canary" not in repr(finding)
