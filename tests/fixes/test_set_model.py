"""set-model: the model where the gateway looks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import settling
from tests.provider_mistakes import MISTAKES


@pytest.mark.parametrize("name", ["the model is named in the provider", "retired"])
def test_cures_and_undoes(home: Path, name: str) -> None:
    """Found, cured, twice equals once, undone; no secret comes out."""
    settling.write(home, MISTAKES[name])
    sick = settling.contents(home)

    settling.cure(home, MISTAKES[name])

    settling.undo(home, sick)
