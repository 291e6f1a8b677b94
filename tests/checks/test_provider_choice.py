"""CFG-PROVIDER-LEFT and CFG-MODEL-PREFIX: the model names one provider, the setting another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import settings_verdicts
from tests.helpers.provider_mistakes import MISTAKES


def test_says_both_edits(tmp_path: Path) -> None:
    """The operators' classic: provider and prefix, each with its line."""
    finding = settings_verdicts.found(tmp_path, "the old provider is left", "0.19.0")

    assert [one.where for one in finding.evidence] == [
        "config.yaml:2",
        "config.yaml:3",
        "config.yaml:5",
    ]
    assert "`provider: openkey`" in finding.detail
    assert "`gpt-4o-mini`" in finding.detail


def test_a_variable_that_decides(tmp_path: Path) -> None:
    """Where the variable names the provider, an edit of config.yaml alone would not help."""
    mistake = MISTAKES["the old provider is left"]
    variable = mistake.env + "HERMES_INFERENCE_PROVIDER=openrouter\n"
    home = settings_verdicts.write(tmp_path / "home", replace(mistake, env=variable))

    [finding] = settings_verdicts.look(home, "0.13.0", "CFG-PROVIDER-LEFT")

    assert finding.fix is None
    assert "HERMES_INFERENCE_PROVIDER" in finding.detail


LITELLM = (
    "model:\n  provider: {provider}\n  default: groq/llama-3.3-70b\n{more}providers:\n"
    "  litellm:\n    base_url: http://127.0.0.1:4000/v1\n    key_env: MY_KEY\n"
    "  groq:\n    base_url: https://api.groq.com/openai/v1\n    key_env: MY_KEY\n"
)


@pytest.mark.parametrize("version", settings_verdicts.VERSIONS)
@pytest.mark.parametrize(
    ("provider", "more"), [("litellm", ""), ("custom", "  base_url: http://127.0.0.1:4000/v1\n")]
)
def test_a_relay_with_names_like_that(
    tmp_path: Path, provider: str, more: str, version: str
) -> None:
    """Relays call their models after whom they come from: at most it is worth knowing."""
    mistake = MISTAKES["the old provider is left"]
    config = LITELLM.format(provider=provider, more=more)
    home = settings_verdicts.write(tmp_path / "home", replace(mistake, config=config))

    found = settings_verdicts.look(home, version, "CFG-PROVIDER-LEFT")

    assert {one.severity for one in found} <= {"info"}
    assert {one.fix for one in found} <= {None}
