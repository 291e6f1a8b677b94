"""clear-lockout: people can be paired again."""

from __future__ import annotations

import json
from pathlib import Path

from tests.helpers import fix_cycle, locked_out_users, support
from tests.helpers.fix_contract import Planted

NAME = "platforms/pairing/_rate_limits.json"


def test_cures_and_undoes(home: Path) -> None:
    """The lock goes, all else stays; twice equals once; undo gives the bytes back."""
    path = locked_out_users.locked(home)

    cured = apply(home)

    assert [*json.loads(path.read_text())] == ["telegram:42", "_failures:discord"]
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == cured


def apply(home: Path) -> dict[str, tuple[object, ...]]:
    """Cure it; what the home was before."""
    sick = support.contents(home)
    done = fix_cycle.apply(home, "PAIRING-LOCKOUT")
    assert done.code == 0, done.out + done.err
    assert done.codes == []
    assert fix_cycle.apply(home, "PAIRING-LOCKOUT").json["repair"]["runs"] == []
    return sick


def test_asks(home: Path) -> None:
    """Wrong codes may be somebody else's: without a yes nothing is done."""
    locked_out_users.locked(home)
    sick = support.contents(home)

    support.doctor("fix", "PAIRING-LOCKOUT", "--apply", "--home", home)

    assert support.contents(home) == sick


def test_managed_home(home: Path) -> None:
    """A home that a package manager writes is changed there."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.locked(home)
    support.put(home / ".managed", "")
    sick = support.contents(home)

    done = support.doctor("fix", "PAIRING-LOCKOUT", "--yes", "--apply", "--json", "--home", home)

    assert "managed" in str([one["refusal"] for one in done.json["repair"]["plan"]])
    assert done.json["repair"]["runs"] == []
    assert support.contents(home) == sick


PLANTED = Planted("PAIRING-LOCKOUT", locked_out_users.locked)
