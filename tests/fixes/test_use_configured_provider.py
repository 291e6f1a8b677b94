"""use-configured-provider: the same edit as that of `switch-provider NAME`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import fix_contract, setting_fix_cycle, support
from tests.helpers.provider_mistakes import MISTAKES, TELEGRAM

ADDRESS = "the address of a relay, but OpenRouter"
BARE = "a relay, but OpenRouter and a bare name"


@pytest.mark.sampled
@pytest.mark.parametrize(
    "name", [ADDRESS, BARE, "the address of a relay in the older list, but OpenRouter"]
)
def test_cures_and_undoes(home: Path, name: str) -> None:
    """Found, cured, twice equals once, undone; no secret comes out."""
    setting_fix_cycle.write(home, MISTAKES[name])
    sick = setting_fix_cycle.contents(home)

    setting_fix_cycle.cure(home, MISTAKES[name])

    setting_fix_cycle.undo(home, sick)


def test_the_same_bytes_as_a_switch(home: Path, tmp_path: Path) -> None:
    """config.yaml is then as `switch-provider openkey` leaves it."""
    other = support.healthy(tmp_path / "other")
    for one in (home, other):
        setting_fix_cycle.write(one, MISTAKES[ADDRESS])

    setting_fix_cycle.cure(home, MISTAKES[ADDRESS])
    options = ("--no-fallback", "--no-test", "--apply", "--yes")
    switched = support.doctor("switch-provider", "openkey", *options, "--home", other)

    assert switched.code == 0, switched.out + switched.err
    assert (home / "config.yaml").read_bytes() == (other / "config.yaml").read_bytes()


def test_refused_without_a_key(home: Path) -> None:
    """It says which command asks for the key."""
    mistake = replace(MISTAKES[ADDRESS], env=TELEGRAM + "OPENROUTER_API_KEY=sk-or-v1-0123\n")
    setting_fix_cycle.write(home, mistake)

    why = setting_fix_cycle.refused(home, mistake)

    assert "hermes-doctor switch-provider openkey --model gpt-4o-mini --apply" in why


PLANTED = fix_contract.mistake("the address of a relay, but OpenRouter")
