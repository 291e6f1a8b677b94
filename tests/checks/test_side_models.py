"""CFG-MODEL-AUX: a side task whose provider or model cannot do it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.model import Finding
from tests.helpers import support
from tests.helpers.gateway_home import Scene, ask

MAIN = "model:\n  default: anthropic/claude-sonnet-4.6\n  provider: openrouter\n"
KEY = {"OPENROUTER_API_KEY": "sk-or-v1-86b186f48b3b0a8c17a61f405de0dcbb66f1909d22fcaf473c815c20"}


def _ask(home: Path, auxiliary: str) -> list[Finding]:
    support.put(home / "config.yaml", MAIN + auxiliary)
    return ask("side-models", Scene(home, KEY, running=False))[1]


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("provider: nowhere\n    model: x", "unknown provider"),
        ("provider: zai\n    model: glm-5v", "no usable login"),
        ("provider: openrouter\n    model: deepseek/deepseek-chat-v3", "takes only text"),
    ],
)
def test_unusable(home: Path, block: str, words: str) -> None:
    """A name that Hermes does not know, a missing key, a model without eyes."""
    [finding] = _ask(home, f"auxiliary:\n  vision:\n    {block}\n")

    assert (finding.code, finding.severity, finding.subject) == (
        "CFG-MODEL-AUX",
        "warning",
        "auxiliary.vision",
    )
    assert words in finding.title


@pytest.mark.parametrize(
    "auxiliary",
    [
        "",
        "auxiliary:\n  vision:\n    provider: auto\n",
        "auxiliary:\n  vision:\n    provider: openrouter\n    model: google/gemini-2.5-flash\n",
        "auxiliary:\n  title:\n    base_url: http://localhost:1234/v1\n    api_key: x\n",
    ],
)
def test_healthy(home: Path, auxiliary: str) -> None:
    """Defaults, a provider with a key, or an address with its own key."""
    assert _ask(home, auxiliary) == []
