"""AUTHZ-UNAUTHORIZED: who was turned away, beside the list that would let them in."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hermes_doctor.core.model import Finding
from tests.helpers import locked_out_users, support
from tests.helpers.gateway_home import STARTED, Scene, ask

LIST = locked_out_users.TOKEN + "TELEGRAM_ALLOWED_USERS=7001\n"


def look(home: Path, env: str = LIST, config: str = "", **scene: object) -> list[Finding]:
    """What is found."""
    support.put(home / ".env", env)
    support.put(home / "config.yaml", support.CONFIG + config)
    options = {"running": False} | scene
    _, findings = ask("refused-users", Scene(home, {}, **options))  # type: ignore[arg-type]
    assert locked_out_users.SECRET not in repr(findings)
    return findings


def test_nobody_was_turned_away(home: Path) -> None:
    """A log without such lines, and none at all."""
    support.put(home / "logs/errors.log", locked_out_users.line("Something else"))
    result, findings = ask("refused-users", Scene(home, {}, running=False))

    assert (result.status, findings) == ("skipped", [])


def test_a_person_who_is_not_on_the_allowlist(home: Path) -> None:
    """A warning with the list, its line and the whole command; one person is seldom a stranger."""
    locked_out_users.turned_away(home)

    [finding] = look(home)

    assert (finding.code, finding.severity) == ("AUTHZ-UNAUTHORIZED", "warning")
    command = "hermes-doctor fix AUTHZ-UNAUTHORIZED --subject 'telegram 42' --apply --yes"
    assert command in finding.next
    assert (finding.subject, finding.fix) == ("telegram 42", "add-allowed-user")
    assert finding.title == "the bot refuses 42 on Telegram"
    assert "TELEGRAM_ALLOWED_USERS in .env:2" in finding.next
    assert "Kelly" not in repr(finding)


@pytest.mark.parametrize(
    "text",
    [
        "Unauthorized user: 42 (a) on b) on telegram",
        "Dropping message from unauthorized user in active session: user=42 (Kelly), "
        "platform=telegram, session=agent:main:telegram:dm:42",
        "[Telegram] Blocked unauthorized user 42 in chat -1007001",
    ],
)
def test_lines(home: Path, text: str) -> None:
    """Every way in which Hermes says it; a name cannot change the platform."""
    support.put(home / "logs/gateway.log", locked_out_users.line(text))

    assert [one.subject for one in look(home)] == ["telegram 42"]


def test_a_bot_that_many_strangers_have_found(home: Path) -> None:
    """Each of them is a note, because a public bot refuses strangers every day."""
    lines = [f"Unauthorized user: {number} (Kelly) on telegram" for number in (41, 42, 43, 44)]
    support.put(home / "logs/gateway.log", "".join(map(locked_out_users.line, lines)))

    assert {one.severity for one in look(home)} == {"info"}


def test_insists(home: Path) -> None:
    """Who keeps trying is most often the owner."""
    locked_out_users.turned_away(home, times=6)

    [finding] = look(home)

    assert finding.severity == "warning"
    assert "6 times" in finding.evidence[0].what


MEANT = {
    "an at sign": ("TELEGRAM_ALLOWED_USERS=7001,@42\n", "", "other characters"),
    "quotes inside": ("TELEGRAM_ALLOWED_USERS=7001,'42'\n", "", "other characters"),
    "semicolons": ("TELEGRAM_ALLOWED_USERS=7001;42\n", "", "other characters"),
    "brackets": ("TELEGRAM_ALLOWED_USERS=[7001, 42]\n", "", "other characters"),
    "another platform": (
        "DISCORD_BOT_TOKEN=canary.canary.12345678\nDISCORD_ALLOWED_USERS=42\n",
        "",
        "allowlist of Discord",
    ),
    "allowed_users": ("", "telegram:\n  allowed_users: [42]\n", "does not read"),
}


@pytest.mark.parametrize("case", MEANT)
def test_meant(home: Path, case: str) -> None:
    """Signs that they were to be let in make it a warning."""
    locked_out_users.turned_away(home)
    env, config, said = MEANT[case]

    [finding] = look(home, locked_out_users.TOKEN + env, config)

    assert finding.severity == "warning"
    assert any(said in one.what for one in finding.evidence)


def test_paired_with_another_home(home: Path) -> None:
    """Approved for a profile, while this gateway is that of the root home."""
    locked_out_users.turned_away(home)
    locked_out_users.approved(home / "profiles/shop", "42")

    [finding] = look(home)

    assert finding.severity == "warning"
    assert any(one.where == "profiles/shop/platforms/pairing" for one in finding.evidence)


ADMITTED = {
    "on the list": ("TELEGRAM_ALLOWED_USERS=7001, 42\n", ""),
    "on the list for all": ("GATEWAY_ALLOWED_USERS=42\n", ""),
    "in allow_from": ("", "telegram:\n  allow_from: ['42']\n"),
    "everybody": ("TELEGRAM_ALLOW_ALL_USERS=yes\n", ""),
}


@pytest.mark.parametrize("case", ADMITTED)
def test_admitted_by_now(home: Path, case: str) -> None:
    """What the log tells of is over."""
    locked_out_users.turned_away(home)
    env, config = ADMITTED[case]

    assert look(home, locked_out_users.TOKEN + env, config) == []


def test_paired_by_now(home: Path) -> None:
    """So it is when they were paired."""
    locked_out_users.turned_away(home)
    locked_out_users.approved(home, "42")

    assert look(home) == []


def test_gateway_is_older_than_the_list(home: Path) -> None:
    """Refused although on the list: it was added after the start."""
    locked_out_users.turned_away(home)
    support.put(home / ".env", locked_out_users.TOKEN + "TELEGRAM_ALLOWED_USERS=42\n")
    after = time.time() - 3600
    assert after > STARTED.timestamp()
    os.utime(home / ".env", (after, after))

    _, [finding] = ask("refused-users", Scene(home, {}))

    assert (finding.code, finding.severity) == ("GW-STALE-SETTINGS", "warning")
    assert finding.fix == "restart-gateway"
    now = time.time()
    os.utime(home / ".env", (now, now))
    _, [finding] = ask("refused-users", Scene(home, {}))
    assert (finding.severity, finding.fix) == ("info", None)


HOSTILE = ["*", "42,43", "$(id)", "kelly", "@42", "4" * 150, "42'", "４２", "x\x1b[31m", "-42"]


@pytest.mark.parametrize("user", HOSTILE)
def test_no_id_of_that_platform(home: Path, user: str) -> None:
    """What cannot be an id is not offered, nor shown."""
    locked_out_users.turned_away(home, user)

    findings = look(home)

    assert [one.fix for one in findings] == [None] * len(findings)
    assert user == "*" or user not in repr([one._replace(data={}) for one in findings])


def test_names_that_forge(home: Path) -> None:
    """A name with a line break in it: what comes after is its own words, and never shown."""
    forged = locked_out_users.line("Unauthorized user: 66 (The owner) on telegram").rstrip("\n")
    locked_out_users.turned_away(home, name=f"x\n{forged}")

    findings = look(home)

    assert "owner" not in repr(findings)
    assert {one.subject for one in findings} <= {"telegram 66", "telegram 42"}


def test_many_strangers(home: Path) -> None:
    """A flood of them is named in part, and what is left out is said."""
    for number in range(40):
        locked_out_users.turned_away(home, str(1000 + number))

    result, findings = ask("refused-users", Scene(home, {"X": "1"}, running=False))

    assert len(findings) == 12
    assert result.status != "crashed"


def test_platform_that_is_not_known(home: Path) -> None:
    """A plugin of somebody else: told, and left to the operator."""
    locked_out_users.turned_away(home, "u1", "homegrown")

    [finding] = look(home)

    assert (finding.severity, finding.fix) == ("info", None)
