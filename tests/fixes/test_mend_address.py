"""mend-address: the address that is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import settling
from tests.provider_mistakes import MISTAKES


@pytest.mark.parametrize("name", ["doubled", "CUSTOM_BASE_URL"])
def test_cures_and_undoes(home: Path, name: str) -> None:
    """Found, cured, twice equals once, undone; no secret comes out."""
    settling.write(home, MISTAKES[name])
    sick = settling.contents(home)

    settling.cure(home, MISTAKES[name])

    settling.undo(home, sick)
