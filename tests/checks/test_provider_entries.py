"""CFG-PROVIDERS-SHAPE: own providers in a form that Hermes does not read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hermes_doctor.core.model import Severity
from tests.helpers import settings_verdicts
from tests.helpers.provider_mistakes import MISTAKES


def test_what_nothing_uses_is_information(tmp_path: Path) -> None:
    """A form that is wrong where nobody looks harms nobody."""
    mistake = MISTAKES["the mapping as a list"]
    config = mistake.config.replace("provider: openkey", "provider: openrouter")
    home = settings_verdicts.write(tmp_path / "home", replace(mistake, config=config))

    [finding] = settings_verdicts.look(home, "0.19.0", "CFG-PROVIDERS-SHAPE")

    assert finding.severity is Severity.INFO
