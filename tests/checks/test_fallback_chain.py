"""CFG-FALLBACK-NONE: a note on every home whose model has no fallback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.check_home import look

ID = "fallback-chain"
ALONE = "model: {provider: deepseek, default: deepseek-chat}\n"
KEY = "DEEPSEEK_API_KEY=sk-0123456789abcdef\nOPENROUTER_API_KEY=sk-or-v1-0123456789abcdef\n"


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize("more", ["", "fallback_providers: []\n"])
def test_no_fallback_is_always_a_note(home: Path, more: str, running: bool) -> None:
    """Whether the gateway runs or not, and whether another provider is set up or not."""
    relay = "providers: {spare: {base_url: 'https://spare.example/v1', key_env: SPARE_KEY}}\n"

    _, [finding] = look(home, ID, KEY, ALONE + more, running=running)
    _, [other] = look(home, ID, KEY, ALONE + more + relay, running=running)

    assert (finding.code, finding.severity, finding.fix) == ("CFG-FALLBACK-NONE", "info", None)
    assert (other.code, other.severity) == ("CFG-FALLBACK-NONE", "info")
    assert "spare" in other.detail


@pytest.mark.parametrize(
    "config", ["", "fallback_providers: [{provider: openrouter, model: z-ai/x}]"]
)
def test_healthy(home: Path, config: str) -> None:
    """No settings yet, or a fallback."""
    assert look(home, ID, KEY, ALONE + config if config else "")[1] == []


def test_every_view_says_it(home: Path) -> None:
    """`check -v`, `check --json` and `config` agree."""
    support.put(home / "config.yaml", ALONE)
    support.put(home / ".env", KEY)
    shown = support.doctor("check", "-v", "--home", home).out
    codes = [one["code"] for one in support.check(home).json["findings"]]

    assert "no fallback is set for when the provider fails" in shown
    assert "CFG-FALLBACK-NONE" in codes
    assert "none: if the provider fails" in support.doctor("config", "--home", home).out
