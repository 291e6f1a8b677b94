"""set-model: the model where the gateway looks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import fix_contract, setting_fix_cycle
from tests.helpers.provider_mistakes import MISTAKES


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["the model is named in the provider", "retired"])
def test_cures_and_undoes(home: Path, name: str) -> None:
    """Found, cured, twice equals once, undone; no secret comes out."""
    setting_fix_cycle.write(home, MISTAKES[name])
    sick = setting_fix_cycle.contents(home)

    setting_fix_cycle.cure(home, MISTAKES[name])

    setting_fix_cycle.undo(home, sick)


PLANTED = fix_contract.mistake("retired")
