"""mend-key: the key alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import fix_contract, setting_fix_cycle
from tests.helpers.provider_mistakes import MINE, MISTAKES, OPEN


@pytest.mark.sampled
@pytest.mark.parametrize(
    "name", ["a comment after the key", "a quote that is not closed", "Bearer in config.yaml"]
)
def test_cures_and_undoes(home: Path, name: str) -> None:
    """Found, cured, twice equals once, undone; no secret comes out."""
    setting_fix_cycle.write(home, MISTAKES[name])
    sick = setting_fix_cycle.contents(home)

    setting_fix_cycle.cure(home, MISTAKES[name])

    setting_fix_cycle.undo(home, sick)


def test_the_comment_is_kept(home: Path) -> None:
    """It moves to a line of its own above the key."""
    mistake = MISTAKES["a comment after the key"]
    setting_fix_cycle.write(home, mistake)

    setting_fix_cycle.cure(home, mistake)

    assert (home / ".env").read_text() == f"A=1\n# mine\nDEEPSEEK_API_KEY={OPEN}\nB=2\n"


def test_what_cannot_be_told(home: Path) -> None:
    """Two words, and nobody knows which one is the key."""
    mistake = replace(
        MISTAKES["Bearer before the key"], env="MY_KEY=Bearer one-canary two-canary\n"
    )
    setting_fix_cycle.write(home, mistake)

    assert "not clear which part is the key" in setting_fix_cycle.refused(home, mistake)


def test_an_unclosed_quote_keeps_what_is_around_it(home: Path) -> None:
    """The margin, `export` and the comment stay; the comment moves above."""
    mistake = MISTAKES["a quote that is not closed"]
    env = mistake.env.replace("MY_KEY=", "  export MY_KEY=").replace(MINE, f"{MINE}  # mine")
    setting_fix_cycle.write(home, replace(mistake, env=env))

    setting_fix_cycle.cure(home, mistake)

    assert (home / ".env").read_text() == f"A=1\n  # mine\n  export MY_KEY={MINE}\n"


def test_a_key_inside_of_another_value(home: Path) -> None:
    """A line that is a part of a longer text is not mended: that text would change."""
    mistake = MISTAKES["a quote that is not closed"]
    setting_fix_cycle.write(home, replace(mistake, env=f'NOTE="see\nMY_KEY=\'{MINE}\nend"\n'))

    assert "NOTE" in setting_fix_cycle.refused(home, mistake)


PLANTED = fix_contract.mistake("a comment after the key")
