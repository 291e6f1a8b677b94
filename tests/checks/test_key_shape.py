"""CRED-SHAPE and CRED-STRANGER: keys that are not sent alone, or not to their owner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hermes_doctor.model import Severity
from tests.helpers import settings_verdicts
from tests.helpers.provider_mistakes import MISTAKES


def test_a_key_that_may_be_meant(tmp_path: Path) -> None:
    """In older releases OPENAI_API_KEY often is the relay's own: that is information."""
    mistake = replace(MISTAKES["a stranger gets the key"], env="OPENAI_API_KEY=relay-canary-1\n")
    home = settings_verdicts.write(tmp_path / "home", mistake)

    [finding] = settings_verdicts.look(home, "0.13.0", "CRED-STRANGER")

    assert (finding.severity, finding.fix) == (Severity.INFO, None)
    assert settings_verdicts.look(home, "0.16.0", "CRED-STRANGER") == []
