"""use-own-provider: both edits, and not one byte more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import fix_contract, setting_fix_cycle
from tests.helpers.provider_mistakes import MISTAKES


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["the old provider is left", "the model alone, with the prefix"])
def test_cures_and_undoes(home: Path, name: str) -> None:
    """Found, cured, twice equals once, undone; no secret comes out."""
    setting_fix_cycle.write(home, MISTAKES[name])
    sick = setting_fix_cycle.contents(home)

    setting_fix_cycle.cure(home, MISTAKES[name])

    setting_fix_cycle.undo(home, sick)


def test_nothing_else_changes(home: Path) -> None:
    """Comments, order and line endings stay as they are."""
    mistake = MISTAKES["the old provider is left"]
    text = "# mine\r\n" + mistake.config.replace("\n", "  # why\r\n").replace(
        "relay  # why", "relay"
    )
    setting_fix_cycle.write(home, replace(mistake, config=text))

    setting_fix_cycle.cure(home, mistake)

    after = text.replace("provider: openrouter", "provider: openkey").replace("openkey/gpt", "gpt")
    assert (home / "config.yaml").read_bytes() == after.encode()


PLANTED = fix_contract.mistake("the old provider is left")
