"""CFG-BASE-URL: addresses that are not whole or do not count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_doctor.diagnosis.examination.report import examine
from tests.helpers import settings_verdicts, support
from tests.helpers.provider_mistakes import MISTAKES


def test_names_the_address(tmp_path: Path) -> None:
    """What to write is said, and a password in an address is not."""
    mistake = MISTAKES["doubled"]
    config = mistake.config.replace("https://", "https://user:canary@")
    home = settings_verdicts.write(tmp_path / "home", replace(mistake, config=config))

    [finding] = settings_verdicts.look(home, "0.19.0", "CFG-BASE-URL")

    assert "api.relay.example/v1" in finding.detail
    assert "canary" not in finding.title + finding.detail + str(finding.evidence)


_RELAY = "  default: m\n  api_key: sk-abcdefghijklmnop\n"
_ROUTER = "model:\n  provider: openrouter\n  default: openai/gpt-4o-mini\n"
_BRACKET = "https://[your-resource].openai.azure.com/v1"


@pytest.mark.parametrize(
    ("env", "config", "subject"),
    [
        ("", f'model:\n  provider: custom\n  base_url: "{_BRACKET}"\n{_RELAY}', "model.base_url"),
        ("", f'model:\n  provider: custom\n  base_url: "http://[::1"\n{_RELAY}', "model.base_url"),
        ("", f"model:\n  provider: custom\n  base_url: http://a:99999/v1\n{_RELAY}",
         "model.base_url"),
        ("OPENROUTER_API_KEY=sk-or-v1-0123456789abcdef0123456789abcdef\n",
         f'{_ROUTER}fallback_providers:\n- {{provider: custom, base_url: "{_BRACKET}", model: m, '
         'api_key: sk-abcdefghijkl}\n', "fallback_providers[0].base_url"),
        (f"GLM_API_KEY=0123456789abcdef.abcdefghijklmnop\nGLM_BASE_URL={_BRACKET}\n",
         "model:\n  provider: zai\n  default: glm-4.6\n", "GLM_BASE_URL"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", ["0.13.0", "0.17.0", "0.19.0"])
def test_an_address_that_cannot_be_one(
    tmp_path: Path, env: str, config: str, subject: str, version: str
) -> None:
    """It is a finding, and no other look stumbles over it."""
    home = tmp_path / "home"
    support.put(home / ".env", env)
    support.put(home / "config.yaml", config)

    checks = [check for check in settings_verdicts.LOADED.checks if check.group == "configuration"]

    results, findings = examine(settings_verdicts.Seen(home, version), checks)

    assert not [one for one in results if one.status == "crashed"]
    [finding] = [
        one
        for one in findings
        if one.code == "CFG-BASE-URL" and "the address is not valid" in one.title
    ]
    assert (finding.subject, finding.fix) == (subject, None)
