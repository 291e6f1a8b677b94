"""approve-pairing: one person, as Hermes would."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.helpers import locked_out_users, support
from tests.helpers.fix_contract import Planted
from tests.helpers.let_user_in import fix, left_alone, let_in

CODE = "PAIRING-WAITING"


@pytest.mark.sampled
@pytest.mark.parametrize("folder", ["platforms/pairing", "pairing"])
def test_cures_twice_and_undoes(home: Path, folder: str) -> None:
    """Among the approved, waiting no more; twice equals once; undo gives the bytes back."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.waiting(home, "42", folder=folder, entry="a1")
    locked_out_users.waiting(home, "43", folder=folder, entry="a2")
    locked_out_users.approved(home, "7001", folder=folder)

    with let_in(home, CODE, "telegram 42"):
        approved = home / folder / "telegram-approved.json"
        assert [*json.loads(approved.read_text())] == ["7001", "42"]
        assert json.loads(approved.read_text())["42"]["user_name"] == "Kelly"
        assert approved.stat().st_mode & 0o777 == 0o600
        waiting = json.loads((home / folder / "telegram-pending.json").read_text())
        assert [*waiting] == ["a2"]


def test_the_first_one(home: Path) -> None:
    """There is no file of the approved yet."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.waiting(home)

    with let_in(home, CODE, "telegram 42"):
        path = home / "platforms/pairing/telegram-approved.json"
        assert path.stat().st_mode & 0o777 == 0o600
        assert (home / "platforms/pairing/telegram-pending.json").read_text() == "{}"


def test_only_who_is_named(home: Path) -> None:
    """Neither all repairs at once nor the code alone let anybody in, --yes or not."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.waiting(home)

    for words in ([], ["--yes"], [CODE, "--yes"], [CODE]):
        left_alone(home, *words)
    left_alone(home, CODE, "--subject", "telegram 43", "--yes", found=False)


def test_also_in_the_list(home: Path) -> None:
    """From 0.18 on the list of .env holds whoever is paired, where there is one."""
    support.put(home / ".env", f"# mine\n{locked_out_users.TOKEN}TELEGRAM_ALLOWED_USERS=7001\n")
    support.put(home / "config.yaml", "telegram:\n  unauthorized_dm_behavior: pair\n")
    locked_out_users.waiting(home)

    with let_in(home, CODE, "telegram 42"):
        assert "TELEGRAM_ALLOWED_USERS=7001,42\n" in (home / ".env").read_text()


def test_hostile_name(home: Path) -> None:
    """It is kept as text, cut, and steers nothing."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.waiting(home, name='x"},"66":{"user_name":"\x1b[31m\n' + "y" * 9000)

    with let_in(home, CODE, "telegram 42"):
        approved = json.loads((home / "platforms/pairing/telegram-approved.json").read_text())
        assert [*approved] == ["42"]
        assert len(approved["42"]["user_name"]) == 200


def test_damaged_list(home: Path) -> None:
    """What cannot be read is not written over."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.waiting(home)
    support.put(home / "platforms/pairing/telegram-approved.json", '{"7001": ')
    sick = support.contents(home)

    done = fix(home, CODE, "--subject", "telegram 42", "--yes")

    assert "damaged" in done.json["repair"]["plan"][0]["refusal"]
    assert support.contents(home) == sick


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can work for others")
def test_owner(home: Path) -> None:
    """Root leaves to the owner of the home what was his, and what is new, too."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.waiting(home)
    for path in (home, *home.rglob("*")):
        os.chown(path, 4242, 4242)
    home.parent.chmod(0o755)

    with let_in(home, CODE, "telegram 42"):
        for name in ("telegram-approved.json", "telegram-pending.json"):
            assert (home / "platforms/pairing" / name).stat().st_uid == 4242


def test_managed_home(home: Path) -> None:
    """A home that a package manager writes is changed there."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.waiting(home)
    support.put(home / ".managed", "")
    sick = support.contents(home)

    done = support.doctor(
        "fix", CODE, "--subject", "telegram 42", "--yes", "--apply", "--json", "--home", home
    )

    assert "managed" in str([one["refusal"] for one in done.json["repair"]["plan"]])
    assert done.json["repair"]["runs"] == []
    assert support.contents(home) == sick


def planted(home: Path) -> None:
    """One user waits, and another is paired."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.waiting(home)
    locked_out_users.approved(home, "7001")


PLANTED = Planted("PAIRING-WAITING", planted, options=("--subject", "telegram 42"))
