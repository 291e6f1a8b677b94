"""CRED-IN-CONFIG and CRED-IN-GIT: keys where they are seen."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.gateway_home import Scene, ask

KEY = "sk-canary1234567890"


def look(home: Path, config: str = "") -> list[tuple[str, str]]:
    """Code and severity of what is found."""
    support.put(home / "config.yaml", support.CONFIG + config)
    _, findings = ask("clear-secrets", Scene(home, {}, running=False))
    assert "canary" not in repr(findings)
    return [(one.code, one.severity) for one in findings]


CLEAR = {
    "a provider's": f"providers:\n  relay:\n    base_url: https://x.example\n    api_key: {KEY}\n",
    "a platform's": f"platforms:\n  telegram:\n    token: {KEY}\n",
    "in a list": f"custom_providers:\n- name: x\n  api_key: {KEY}\n",
    "a variable's": f"TELEGRAM_BOT_TOKEN: {KEY}\n",
}


@pytest.mark.parametrize("case", CLEAR)
def test_in_clear(home: Path, case: str) -> None:
    """For information, with the line."""
    assert look(home, CLEAR[case]) == [("CRED-IN-CONFIG", "info")]


NOT = {
    "a reference": "providers:\n  relay:\n    api_key: ${RELAY_KEY}\n",
    "a name": "providers:\n  relay:\n    key_env: RELAY_API_KEY\n",
    "a placeholder": "providers:\n  relay:\n    api_key: your-api-key-here\n",
    "a number": "agent:\n  max_tokens: 4096000000\n",
    "nothing": "providers:\n  relay:\n    api_key:\n",
}


@pytest.mark.parametrize("case", NOT)
def test_no_secret(home: Path, case: str) -> None:
    """References, names and placeholders give nothing away."""
    assert look(home, NOT[case]) == []


def test_readable_by_others(home: Path) -> None:
    """Its mode then counts as that of .env does."""
    support.put(home / "config.yaml", support.CONFIG + CLEAR["a provider's"], 0o644)

    _, [finding] = ask("secret-modes", Scene(home, {}, running=False))

    assert (finding.code, finding.subject, finding.fix) == (
        "PERM-SECRETS",
        "config.yaml",
        "tighten-modes",
    )


@pytest.mark.needs("git")
def test_in_a_repository(home: Path) -> None:
    """What the index of a real repository lists."""
    (home / ".gitignore").write_text("*.db\n")
    quiet = {"HOME": str(home), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (["init", "-q"], ["add", "config.yaml", "SOUL.md", ".gitignore"]):
        support.put(home / "SOUL.md", "x")
        subprocess.run(["git", *words], cwd=home, env=quiet, check=True)

    assert look(home) == []
    assert ("CRED-IN-GIT", "warning") in look(home, CLEAR["a provider's"])
    subprocess.run(["git", "add", ".env"], cwd=home, env=quiet, check=True)
    assert look(home) == [("CRED-IN-GIT", "warning")]


def test_an_index_that_is_none(home: Path) -> None:
    """Whatever lies there."""
    for data in (b"", b"DIRC", b"\0" * 100, b"DIRC" + b"\0\4.env"):
        support.put(home / ".git/index", data)
        assert look(home) == []


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (f"model:\n  provider: custom\n  api_key: {KEY}\n", "`api_key: ${NAME}`"),
        (CLEAR["a provider's"], "`api_key: ${NAME}`"),
        (f"fallback_providers:\n- provider: x\n  api_key: {KEY}\n", "`key_env: NAME`"),
        (CLEAR["a platform's"], "delete the line"),
        (CLEAR["a platform's"] + CLEAR["a provider's"], "explain CRED-IN-CONFIG"),
    ],
)
def test_where_it_belongs(home: Path, config: str, words: str) -> None:
    """Only what Hermes reads in that place; `model.key_env` is not read."""
    support.put(home / "config.yaml", config)

    _, [finding] = ask("clear-secrets", Scene(home, {}, running=False))

    assert words in finding.next
