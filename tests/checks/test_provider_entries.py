"""CFG-PROVIDERS-SHAPE: own providers in a form that Hermes does not read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_doctor.model import Severity
from tests import judging
from tests.provider_mistakes import MISTAKES

CODES = ("CFG-PROVIDERS-SHAPE",)


@pytest.mark.parametrize(("name", "version"), judging.fitting(*CODES))
def test_found(tmp_path: Path, name: str, version: str) -> None:
    """Every mistake is found for what it is, under every release that makes one of it."""
    judging.found(tmp_path, name, version)


def test_healthy(tmp_path: Path) -> None:
    """Ordinary homes show nothing of it under any release."""
    judging.is_silent(tmp_path, *CODES)


def test_what_nothing_uses_is_information(tmp_path: Path) -> None:
    """A form that is wrong where nobody looks harms nobody."""
    mistake = MISTAKES["the mapping as a list"]
    config = mistake.config.replace("provider: openkey", "provider: openrouter")
    home = judging.write(tmp_path / "home", replace(mistake, config=config))

    [finding] = judging.look(home, "0.19.0", "CFG-PROVIDERS-SHAPE")

    assert finding.severity is Severity.INFO
