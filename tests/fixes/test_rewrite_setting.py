"""rewrite-setting: the same in the form that Hermes reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import settling
from tests.provider_mistakes import MISTAKES


@pytest.mark.parametrize(
    "name",
    [
        "api_key_env",
        "as a shell writes it",
        "a number for the model",
        "128K",
        "the mapping as a list",
        "the chain as JSON",
    ],
)
def test_cures_and_undoes(home: Path, name: str) -> None:
    """Found, cured, twice equals once, undone; no secret comes out."""
    settling.write(home, MISTAKES[name])
    sick = settling.contents(home)

    settling.cure(home, MISTAKES[name])

    settling.undo(home, sick)


def test_a_comment_stays(home: Path) -> None:
    """Only the number itself is written anew."""
    mistake = MISTAKES["128K"]
    settling.write(home, mistake)

    settling.cure(home, mistake)

    text = mistake.config.replace("128K", "128000")
    assert (home / "config.yaml").read_text() == text
    assert "128000  # tokens" in text
