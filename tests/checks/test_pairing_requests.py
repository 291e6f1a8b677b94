"""PAIRING-WAITING, PAIRING-LOCKOUT, PAIRING-ASTRAY: who waits, and what keeps a pairing out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.model import Finding
from tests.helpers import locked_out_users, support
from tests.helpers.gateway_home import Scene, ask


def look(home: Path, version: str = "0.19.0", env: str = locked_out_users.TOKEN) -> list[Finding]:
    """What is found."""
    support.put(home / ".env", env)
    _, findings = ask("pairing-requests", Scene(home, {}, running=False, version=version))
    assert locked_out_users.SECRET not in repr(findings)
    return findings


def test_never_used(home: Path) -> None:
    """A home without pairings."""
    result, _ = ask("pairing-requests", Scene(home, {}, running=False))

    assert result.status == "skipped"


def test_in_order(home: Path) -> None:
    """People are paired, and nobody waits."""
    locked_out_users.approved(home, "42", "43")

    assert look(home) == []


@pytest.mark.parametrize(
    ("version", "old"), [("0.13.0", True), ("0.16.0", False), ("0.19.0", False)]
)
def test_waits(home: Path, version: str, old: bool) -> None:
    """The first one is a warning; the code is never shown."""
    locked_out_users.waiting(home, old=old)

    [finding] = look(home, version)

    assert (finding.code, finding.severity) == ("PAIRING-WAITING", "warning")
    assert (finding.subject, finding.fix) == ("telegram 42", "approve-pairing")
    assert "Kelly" in finding.evidence[0].what
    shown = repr(finding._replace(data={}))
    assert "CANARY2Z" not in shown
    assert "abab" not in shown


def test_a_stranger_waits(home: Path) -> None:
    """Where somebody is let in already, it is information."""
    locked_out_users.approved(home, "7001")
    locked_out_users.waiting(home)

    assert [one.severity for one in look(home)] == ["info"]


def test_each_is_a_finding_of_its_own(home: Path) -> None:
    """So that one can be chosen."""
    locked_out_users.waiting(home, "42", entry="a1")
    locked_out_users.waiting(home, "43", entry="a2")

    assert [one.subject for one in look(home)] == ["telegram 42", "telegram 43"]


OVER: dict[str, dict[str, Any]] = {
    "run out": {"minutes": 61},
    "let in": {"user": "7001"},
}


@pytest.mark.parametrize("case", OVER)
def test_over(home: Path, case: str) -> None:
    """A code that is no longer good, and somebody who needs none."""
    locked_out_users.waiting(home, **OVER[case])

    assert look(home, env=locked_out_users.TOKEN + "TELEGRAM_ALLOWED_USERS=7001\n") == []


NAMES = [
    "Ev\x1b[31mil\nroot",
    "x" * 5000,
    "\u202egnorw",
    "",
    None,
    7,
    ["a"],
    "sk-canary1234567890abcdef",
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names(home: Path, name: Any) -> None:
    """What people call themselves steers no terminal, fills no screen and leaks no key."""
    locked_out_users.waiting(home, name=name)

    [finding] = look(home)

    text = finding.title + finding.detail + repr(finding.evidence)
    assert len(text) < 1000
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "canary1234567890" not in text


@pytest.mark.parametrize("user", ["*", "42,43", "kelly", "4" * 60, "42\n43"])
def test_no_id(home: Path, user: str) -> None:
    """What cannot be an id of that platform is left to the operator."""
    locked_out_users.waiting(home, user)

    [finding] = look(home)

    assert finding.fix is None
    assert user == "*" or user not in finding.title


DAMAGED = ["", "[]", "null", '{"a": 1}', '{"a": {}}', '{"a": {"created_at": "x"}}', "{", "\xff"]


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged(home: Path, text: str) -> None:
    """Files that Hermes makes nothing of hold nobody."""
    for name in ("telegram-pending.json", "telegram-approved.json", "_rate_limits.json"):
        support.put(home / "platforms/pairing" / name, text.encode("latin-1"))

    assert look(home) == []


def test_locked(home: Path) -> None:
    """Five wrong codes, told until the hour is over."""
    locked_out_users.locked(home)

    [finding] = look(home)

    assert (finding.code, finding.severity) == ("PAIRING-LOCKOUT", "warning")
    assert (finding.subject, finding.fix) == ("telegram", "clear-lockout")
    locked_out_users.locked(home, minutes=-1)
    assert look(home) == []


BOTH = {"0.13.0": True, "0.17.0": True, "0.18.0": True, "0.18.1": False, "0.19.0": False}


@pytest.mark.parametrize("version", BOTH)
def test_two_folders(home: Path, version: str) -> None:
    """Up to 0.18.0 the old folder hides who is approved in the new one."""
    locked_out_users.approved(home, "42", folder="platforms/pairing")
    locked_out_users.approved(home, "7001", folder="pairing")

    found = [(one.code, one.fix) for one in look(home, version)]

    assert found == ([("PAIRING-ASTRAY", "merge-approvals")] if BOTH[version] else [])


def test_an_empty_old_folder(home: Path) -> None:
    """Up to 0.17 it counts although it is empty."""
    locked_out_users.approved(home, "42")
    (home / "pairing").mkdir()

    assert [one.code for one in look(home, "0.17.0")] == ["PAIRING-ASTRAY"]
    assert look(home, "0.18.0") == []


def test_ids_that_are_none(home: Path) -> None:
    """They are counted, and nothing of them is shown or offered."""
    locked_out_users.approved(home, "\x1b[31mevil", folder="platforms/pairing")
    locked_out_users.approved(home, "7001", folder="pairing")
    support.put(home / ".env", locked_out_users.TOKEN)

    result, findings = ask("pairing-requests", Scene(home, {}, running=False, version="0.17.0"))

    assert findings == []
    assert "1 entry in platforms/pairing: not a valid id of telegram" in (result.reason or "")


TIMES = ["1e18", "Infinity", "-Infinity", "NaN", "1" + "0" * 400, "-1" + "0" * 400, "true", '"x"']


@pytest.mark.parametrize("when", TIMES)
def test_times_that_cannot_be(home: Path, when: str) -> None:
    """Hermes reads them, and so does the check; nothing breaks."""
    folder = home / "platforms/pairing"
    pending = f'{{"a": {{"user_id": "42", "created_at": {when}}}}}'
    support.put(folder / "telegram-pending.json", pending)
    support.put(folder / "_rate_limits.json", f'{{"_lockout:telegram": {when}}}')

    found = look(home)

    forever = when in ("1e18", "Infinity") or when.startswith("1")
    assert [one.code for one in found] == (
        ["PAIRING-LOCKOUT", "PAIRING-WAITING"] if forever else []
    )
    assert all("never" in one.detail for one in found)


def test_the_old_folder_alone(home: Path) -> None:
    """An older home goes on with it."""
    locked_out_users.waiting(home, folder="pairing")

    [finding] = look(home)

    assert finding.evidence[0].where == "pairing/telegram-pending.json"
