"""merge-approvals: who was paired in a folder that does not count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.operations.watch import consent
from hermes_doctor.repair.transaction.plan import plan as planned
from tests.helpers import locked_out_users, one_check, recorded_homes, support
from tests.helpers.fix_contract import Planted
from tests.helpers.gateway_home import Scene, ask

FIX = one_check.PLUGINS.fix("merge-approvals")


def scene(home: Path) -> Scene:
    """A release that looks into the old folder only."""
    return Scene(home, {}, running=False, version="0.17.0")


@pytest.fixture
def split(home: Path) -> Path:
    """42 and 43 are in the new folder only; 7001 is in both."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.approved(home, "42", "43", "7001", folder="platforms/pairing")
    path = locked_out_users.approved(home, "7001", folder="pairing")
    kept = json.loads(path.read_text())["7001"] | {"user_name": "Robin"}
    support.put(path, json.dumps({"7001": kept}, indent=2))
    return home


def test_one_person_moves(split: Path) -> None:
    """Into the folder that counts and out of the other; what is there wins; the other one stays."""
    assert FIX
    _, findings = ask("pairing-requests", scene(split))
    assert [one.subject for one in findings] == ["telegram 42", "telegram 43"]

    steps = [*FIX.plan(scene(split), findings[0])]

    paths = [step.changes()[0].path for step in steps]
    folders = ("pairing", "platforms/pairing")
    assert paths == [Home(split) / f"{one}/telegram-approved.json" for one in folders]
    assert [[*step.lines()] for step in steps] == [["+ 42"], ["- 42", "- 7001"]]
    for path, step in zip(paths, steps, strict=True):
        texts = step.texts()
        assert texts
        support.put(path, texts[2])
    made = json.loads(paths[0].read_text())
    assert sorted(made) == ["42", "7001"]
    assert made["7001"]["user_name"] == "Robin"
    assert [*json.loads(paths[1].read_text())] == ["43"]
    assert [*FIX.plan(scene(split), findings[0])] == []
    assert [one.subject for one in ask("pairing-requests", scene(split))[1]] == ["telegram 43"]


def test_shut_out_later_stays_out(split: Path) -> None:
    """Whoever is taken out of the folder that counts is not offered again."""
    assert FIX
    _, [finding, _] = ask("pairing-requests", scene(split))
    for step in FIX.plan(scene(split), finding):
        texts = step.texts()
        assert texts
        support.put(step.changes()[0].path, texts[2])

    support.put(split / "pairing/telegram-approved.json", "{}")

    assert [one.subject for one in ask("pairing-requests", scene(split))[1]] == ["telegram 43"]


def test_only_who_is_named(split: Path) -> None:
    """No watch does it, whatever it was told to agree to, and each is a plan of its own."""
    _, findings = ask("pairing-requests", scene(split))

    plans = planned(scene(split), one_check.PLUGINS, findings)

    assert [one.personal for one in plans] == [True, True]
    agreed = frozenset({"PAIRING-ASTRAY", "merge-approvals"})
    assert all("you have to decide" in (consent.refusal(one, agreed) or "") for one in plans)


def test_managed_home(split: Path) -> None:
    """A home that a package manager writes is changed there."""
    assert FIX
    _, [finding, _] = ask("pairing-requests", scene(split))
    support.put(split / ".managed", "")

    with pytest.raises(Exception, match="managed"):
        list(FIX.plan(scene(split), finding))


def planted(home: Path) -> None:
    """A release that looks into the old folder only, and a user in the new one."""
    recorded_homes.installed(home, "0.17.0")
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.approved(home, "42", "7001", folder="platforms/pairing")
    locked_out_users.approved(home, "7001", folder="pairing")


PLANTED = Planted("PAIRING-ASTRAY", planted, options=("--subject", "telegram 42"))
