"""CRED-SHAPE and CRED-STRANGER: keys that are not sent alone, or not to their owner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_doctor.core.model import Severity
from tests.helpers import settings_verdicts, support
from tests.helpers.provider_mistakes import MISTAKES


def test_a_key_that_may_be_meant(tmp_path: Path) -> None:
    """In older releases OPENAI_API_KEY often is the relay's own: that is information."""
    mistake = replace(MISTAKES["a stranger gets the key"], env="OPENAI_API_KEY=relay-canary-1\n")
    home = settings_verdicts.write(tmp_path / "home", mistake)

    [finding] = settings_verdicts.look(home, "0.13.0", "CRED-STRANGER")

    assert (finding.severity, finding.fix) == (Severity.INFO, None)
    assert settings_verdicts.look(home, "0.16.0", "CRED-STRANGER") == []


TWO = """\
model: {provider: openrouter, default: deepseek/deepseek-chat}
fallback_providers:
- {provider: openrouter, model: openai/gpt-4o}
"""


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ('"Bearer sk-or-v1-0123456789abcdef0123456789abcdef"', "CRED-SHAPE"),
        ("sk-or-v1-abc…ef12", "ENV-REDACTED"),
        ("changeme", "PROVIDER-KEY"),
    ],
)
def test_a_line_that_two_routes_use_is_reported_once(tmp_path: Path, key: str, code: str) -> None:
    """The main model and its fallback use one key: one problem, as bad as for the main model."""
    home = support.put(tmp_path / "home" / "config.yaml", TWO).parent
    support.put(home / ".env", f"OPENROUTER_API_KEY={key}\n")

    [finding] = settings_verdicts.look(home, "0.19.0", code)

    assert (finding.subject, finding.severity) == ("model", Severity.ERROR)


def test_each_key_has_its_own_finding(tmp_path: Path) -> None:
    """Two keys with the same mistake are two problems."""
    text = TWO.replace("{provider: openrouter, model", "{provider: deepseek, model")
    home = support.put(tmp_path / "home" / "config.yaml", text).parent
    lines = (f"{name}_API_KEY=Bearer sk-0123456789abcdef" for name in ("OPENROUTER", "DEEPSEEK"))
    support.put(home / ".env", "\n".join(lines) + "\n")

    found = settings_verdicts.look(home, "0.19.0", "CRED-SHAPE")

    assert [one.subject for one in found] == ["model", "fallback_providers[0]"]


def test_plan_and_result_have_the_same_numbers(tmp_path: Path) -> None:
    """One line of .env is one problem in the plan, and one in the result."""
    home = support.put(tmp_path / "home" / "config.yaml", TWO).parent
    key = '"Bearer sk-or-v1-0123456789abcdef0123456789abcdef"'
    support.put(home / ".env", f"OPENROUTER_API_KEY={key}\n")
    home.chmod(0o700)
    (home / ".env").chmod(0o600)

    plan = support.doctor("fix", "CRED-SHAPE", "--home", home).out
    result = support.doctor("fix", "CRED-SHAPE", "--apply", "--home", home).out

    assert "1 of 1 problem, " in plan and plan.count("keep only the key") == 1
    assert "Repaired 1 of 1. " in result
