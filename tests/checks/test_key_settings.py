"""CFG-KEY-ENV: keys that are named where nobody looks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hermes_doctor.core.model import Severity
from tests.helpers import settings_verdicts
from tests.helpers.provider_mistakes import MISTAKES


def test_a_guess_that_hits(tmp_path: Path) -> None:
    """Since 0.15 Hermes guesses a variable from the host: then it works by accident."""
    mistake = MISTAKES["api_key_env"]
    env = "RELAY_API_KEY=sk-relay-canary-1\n"
    home = settings_verdicts.write(tmp_path / "home", replace(mistake, env=env))

    [old] = settings_verdicts.look(home, "0.13.0", "CFG-KEY-ENV")
    [new] = settings_verdicts.look(home, "0.19.0", "CFG-KEY-ENV")

    assert (old.severity, new.severity) == (Severity.ERROR, Severity.INFO)
