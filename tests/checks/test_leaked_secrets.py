"""CRED-IN-LOGS: this home's own keys in its own logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import locked_out_users, support
from tests.helpers.gateway_home import Scene, ask

VALUE = "sk-canary-9pLm2TwKx"
FILLER = "x" * 99 + "\n"


def look(home: Path, *, deep: bool = False) -> list[tuple[str, str, str]]:
    """Code, name and place of what is found; never the value."""
    support.put(home / ".env", f"OPENROUTER_API_KEY={VALUE}\nPLAIN=words\n")
    scene = Scene(home, {}, running=False)
    scene.logs.scope.deep = deep
    _, findings = ask("leaked-secrets", scene)
    assert "canary" not in repr(findings)
    return [(one.code, one.subject, one.evidence[0].where) for one in findings]


@pytest.mark.parametrize("name", ["gateway.log", "agent.log", "errors.log"])
def test_in_a_log(home: Path, name: str) -> None:
    """The line is named where the log was read whole."""
    support.put(home / "logs" / name, f"one\nkey {VALUE} sent\n")

    assert look(home) == [("CRED-IN-LOGS", "OPENROUTER_API_KEY", f"logs/{name}:2")]


def test_far_back(home: Path) -> None:
    """A quick look reads the end; a deep one more."""
    support.put(home / "logs/agent.log", f"{VALUE}\n{FILLER * 2000}")

    assert look(home) == []
    assert look(home, deep=True) == [("CRED-IN-LOGS", "OPENROUTER_API_KEY", "logs/agent.log:1")]


def test_of_config(home: Path) -> None:
    """What stands in config.yaml is a secret of this home, too."""
    support.put(home / "config.yaml", "providers:\n  x:\n    api_key: sk-canary-other-12345\n")
    support.put(home / "logs/agent.log", "sk-canary-other-12345\n")

    assert look(home) == [("CRED-IN-LOGS", "providers.x.api_key", "logs/agent.log:1")]


def test_clean(home: Path) -> None:
    """Masked keys, other words, and values too short to be told from them."""
    support.put(
        home / "logs/agent.log", f"{VALUE[:6]}...{VALUE[-4:]} words\n{locked_out_users.line('x')}"
    )

    assert look(home) == []


def test_no_log(home: Path) -> None:
    """A home that never ran."""
    (home / "logs").rmdir()

    result, _ = ask("leaked-secrets", Scene(home, {}, running=False))

    assert result.status == "skipped"
