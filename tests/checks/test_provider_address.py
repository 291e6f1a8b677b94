"""CFG-BASE-URL: addresses that are not whole or do not count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests import judging
from tests.provider_mistakes import MISTAKES

CODES = ("CFG-BASE-URL",)


@pytest.mark.parametrize(("name", "version"), judging.fitting(*CODES))
def test_found(tmp_path: Path, name: str, version: str) -> None:
    """Every mistake is found for what it is, under every release that makes one of it."""
    judging.found(tmp_path, name, version)


def test_healthy(tmp_path: Path) -> None:
    """Ordinary homes show nothing of it under any release."""
    judging.is_silent(tmp_path, *CODES)


def test_names_the_address(tmp_path: Path) -> None:
    """What to write is said, and a password in an address is not."""
    mistake = MISTAKES["doubled"]
    config = mistake.config.replace("https://", "https://user:canary@")
    home = judging.write(tmp_path / "home", replace(mistake, config=config))

    [finding] = judging.look(home, "0.19.0", "CFG-BASE-URL")

    assert "api.relay.example/v1" in finding.detail
    assert "canary" not in finding.title + finding.detail + str(finding.evidence)
