"""mend-address: the address that is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.settings.edits import Drop, Edit, Put, Unset
from tests.helpers import fix_contract, setting_fix_cycle
from tests.helpers.provider_mistakes import MISTAKES
from tests.helpers.support import put
from tests.helpers.watch_parts import finding


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["doubled", "CUSTOM_BASE_URL"])
def test_cures_and_undoes(home: Path, name: str) -> None:
    """Found, cured, twice equals once, undone; no secret comes out."""
    setting_fix_cycle.write(home, MISTAKES[name])
    sick = setting_fix_cycle.contents(home)

    setting_fix_cycle.cure(home, MISTAKES[name])

    setting_fix_cycle.undo(home, sick)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Put(("model", "provider"), "custom"), "set the provider to custom"),
        (Put(("model", "base_url"), "https://a.example/v1"), "correct the address"),
        (Unset("CUSTOM_BASE_URL"), "remove the variable"),
        (Drop(("model", "base_url")), "delete the address"),
    ],
)
def test_says_what_it_changes(home: Path, edit: Edit, words: str) -> None:
    """The sentence is about the lines of the diff."""
    put(home / "config.yaml", "model:\n  provider: openrouter\n  base_url: https://b.example/v1\n")
    put(home / ".env", "CUSTOM_BASE_URL=https://c.example\n")
    found = finding("CFG-BASE-URL", data={"edits": (edit,)})

    fix = next(one for one in load.load().fixes if one.id == "mend-address")

    [step] = fix.plan(Probes(Home(home)), found)
    assert words in step.sentence()


PLANTED = fix_contract.mistake("doubled")
