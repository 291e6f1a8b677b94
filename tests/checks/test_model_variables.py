"""ENV-IGNORED: variables that say what config.yaml decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import judging

CODES = ("ENV-IGNORED",)


@pytest.mark.parametrize(("name", "version"), judging.fitting(*CODES))
def test_found(tmp_path: Path, name: str, version: str) -> None:
    """Every mistake is found for what it is, under every release that makes one of it."""
    judging.found(tmp_path, name, version)


def test_healthy(tmp_path: Path) -> None:
    """Ordinary homes show nothing of it under any release."""
    judging.is_silent(tmp_path, *CODES)
