"""CFG-MODEL, CFG-TYPE and CFG-CONTEXT-LENGTH: the model's name and its room."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import settings_verdicts
from tests.helpers.provider_mistakes import MISTAKES


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("128K", 128_000),
        ("1M", 1_000_000),
        ("'128,000'", 128_000),
        ("'128.000'", 128_000),
        ("1.5M", 1_500_000),
        ("200k tokens", 200_000),
        ("big", None),
        ("8K", None),
        ("[128000]", None),
    ],
)
def test_lengths(tmp_path: Path, written: str, meant: int | None) -> None:
    """What somebody meant by a length, and what cannot be told."""
    config = MISTAKES["128K"].config.replace("128K", written)
    home = settings_verdicts.write(tmp_path / "home", replace(MISTAKES["128K"], config=config))

    [finding] = settings_verdicts.look(home, "0.19.0", "CFG-CONTEXT-LENGTH")

    assert [edit.value for edit in finding.data["edits"]] == ([meant] if meant else [])
