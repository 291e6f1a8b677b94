"""AUTHZ-NO-LISTS and AUTHZ-OPEN: nobody, some, or everybody."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from tests.helpers import locked_out_users, support
from tests.helpers.gateway_home import Scene, ask

DOCKER = "terminal:\n  backend: docker\n"
WEIXIN = "WEIXIN_TOKEN=canary12345678\nWEIXIN_ACCOUNT_ID=wx1\n"


def look(home: Path, env: str, config: str = "", version: str = "0.19.0") -> list[tuple[str, str]]:
    """Code and severity of what is found."""
    support.put(home / ".env", env)
    support.put(home / "config.yaml", support.CONFIG + config)
    _, findings = ask("who-may-talk", Scene(home, {}, running=False, version=version))
    assert locked_out_users.SECRET not in repr(findings)
    return [(one.code, one.severity) for one in findings]


SOME = {
    "a list": ("TELEGRAM_ALLOWED_USERS=42\n", ""),
    "a list for all": ("GATEWAY_ALLOWED_USERS=42\n", ""),
    "allow_from": ("", "telegram:\n  allow_from: [42]\n"),
    "groups": ("TELEGRAM_GROUP_ALLOWED_CHATS=-1001\n", ""),
    "a switch that is off": ("TELEGRAM_ALLOWED_USERS=42\nTELEGRAM_ALLOW_ALL_USERS=false\n", ""),
    "a switch that does not count": (
        "TELEGRAM_ALLOWED_USERS=42\nGATEWAY_ALLOW_ALL_USERS=true\n",
        "",
    ),
}


@pytest.mark.parametrize("version", ["0.13.0", "0.16.0", "0.19.0"])
@pytest.mark.parametrize("case", SOME)
def test_some(home: Path, case: str, version: str) -> None:
    """Some people are let in: nothing is said."""
    env, config = SOME[case]

    assert look(home, locked_out_users.TOKEN + env, config, version) == []


def test_paired(home: Path) -> None:
    """Those who were paired are somebody."""
    locked_out_users.approved(home, "42")

    assert look(home, locked_out_users.TOKEN) == []


@pytest.mark.parametrize("version", ["0.13.0", "0.16.0", "0.19.0"])
def test_nobody_yet(home: Path, version: str) -> None:
    """Strangers are given a code: that is how it begins, and no fault."""
    assert look(home, locked_out_users.TOKEN, "", version) == [("AUTHZ-NO-LISTS", "info")]


NOBODY = {
    "ignored": "unauthorized_dm_behavior: ignore\n",
    "ignored on the platform": "telegram:\n  unauthorized_dm_behavior: ignore\n",
    "ignored in platforms": "platforms:\n  telegram:\n    unauthorized_dm_behavior: ignore\n",
}


@pytest.mark.parametrize("case", NOBODY)
def test_nobody(home: Path, case: str) -> None:
    """No list, no pairing, and no code for strangers."""
    assert look(home, locked_out_users.TOKEN, NOBODY[case]) == [("AUTHZ-NO-LISTS", "error")]


def test_everybody(home: Path) -> None:
    """A switch that opens the bot is dangerous where commands run on this machine."""
    env = locked_out_users.TOKEN + "TELEGRAM_ALLOW_ALL_USERS=true\n"

    assert look(home, env) == [("AUTHZ-OPEN", "warning")]
    assert look(home, env, DOCKER) == [("AUTHZ-OPEN", "info")]


@pytest.mark.parametrize("env", ["TELEGRAM_ALLOWED_USERS=42,*\n", "GATEWAY_ALLOWED_USERS=*\n"])
def test_star(home: Path, env: str) -> None:
    """A star among the ids opens it, too."""
    assert look(home, locked_out_users.TOKEN + env) == [("AUTHZ-OPEN", "warning")]


def test_one_switch_for_all(home: Path) -> None:
    """What opens several platforms is told once, with its line."""
    discord = "DISCORD_BOT_TOKEN=canary.canary.12345678\n"
    support.put(home / ".env", locked_out_users.TOKEN + discord + "GATEWAY_ALLOW_ALL_USERS=true\n")

    _, [finding] = ask("who-may-talk", Scene(home, {}, running=False))

    assert finding.subject == "GATEWAY_ALLOW_ALL_USERS"
    assert "Telegram" in finding.title
    assert "Discord" in finding.title
    assert finding.evidence[0].where == ".env:3"


def test_open_without_being_asked(home: Path) -> None:
    """0.16 lets everybody in on some platforms; others wait for a code, before and after."""
    assert look(home, WEIXIN, "", "0.16.0") == [("AUTHZ-OPEN", "warning")]
    assert look(home, WEIXIN, "", "0.15.2") == [("AUTHZ-NO-LISTS", "info")]
    assert look(home, WEIXIN, "", "0.17.0") == [("AUTHZ-NO-LISTS", "info")]
    assert look(home, WEIXIN + "WEIXIN_DM_POLICY=pairing\n", "", "0.16.0") == [
        ("AUTHZ-NO-LISTS", "info")
    ]


def test_own_list_of_an_adapter(home: Path) -> None:
    """A platform that goes by its own list lets those in from 0.16 on."""
    config = "weixin:\n  dm_policy: allowlist\n  allow_from: [wx2]\n"

    assert look(home, WEIXIN, f"platforms:\n  {config.replace(chr(10), chr(10) + '  ')}") == []


def test_nothing_to_ask(home: Path) -> None:
    """A home without platforms, and one with the API server only."""
    for env in ("", "API_SERVER_ENABLED=true\nAPI_SERVER_KEY=canary-canary-canary\n"):
        support.put(home / ".env", env)
        result, _ = ask("who-may-talk", Scene(home, {}, running=False))
        assert result.status == "skipped"


def test_empty_list(home: Path) -> None:
    """A list that is set to nothing is shown with its line, not as missing."""
    support.put(home / ".env", locked_out_users.TOKEN + "TELEGRAM_ALLOWED_USERS=\n")

    _, [finding] = ask("who-may-talk", Scene(home, {}, running=False))

    assert finding.evidence[0].what == "TELEGRAM_ALLOWED_USERS is empty"
    assert finding.evidence[0].where.startswith(".env:")


def test_only_an_api_server(home: Path) -> None:
    """An API server asks for its key and needs no allowlist, whatever the log says."""
    support.put(home / ".env", "API_SERVER_ENABLED=true\nAPI_SERVER_KEY=a8f3c2e91b7d4650f2e1c3b5\n")
    support.put(
        home / "logs" / "gateway.log",
        f"{datetime.now():%Y-%m-%d %H:%M:%S},000 WARNING gateway.run: No env user allowlists "
        "configured. Messaging platforms default to pairing.\n",
    )

    assert "AUTHZ-NO-LISTS" not in support.check(home).out
