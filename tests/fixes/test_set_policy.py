"""set-policy: a policy in a word that Hermes knows and starts with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.fix_contract import Planted
from tests.helpers.fix_cycle import cure

QQ = "QQ_APP_ID=102081123\nQQ_CLIENT_SECRET=abcdef\n"
WEIXIN = "# 微信\r\nWEIXIN_ACCOUNT_ID=abc\r\nWEIXIN_TOKEN=abcdef\r\n"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("more", "kind", "word"),
    [
        ("", "dm_policy", "pairing"),
        ("    allow_from: [A1]\n", "dm_policy", "allowlist"),
        ("", "group_policy", "disabled"),
        ("    group_allow_from: [G1]\n", "group_policy", "allowlist"),
    ],
)
def test_closes(home: Path, more: str, kind: str, word: str) -> None:
    """To the list that there is, else to pairing, and groups to nobody; undone byte for byte."""
    before = f"platforms:\n  qqbot:  # the bot\n    {kind}: open   # for now\n{more}other: 1\n"
    support.put(home / "config.yaml", before)
    support.put(home / ".env", QQ)

    cured = cure(home, "AUTHZ-OPEN-REFUSE", "set-policy", f"qqbot {kind}")

    after = before.replace(f"{kind}: open", f"{kind}: {word}")
    assert (home / "config.yaml").read_text() == after
    cured.undo()


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("more", "word"), [("", "pairing"), ("    allow_from: [A1]\n", "allowlist")]
)
def test_opens_direct_messages_again(home: Path, more: str, word: str) -> None:
    """To the allowlist if there is one, else to pairing; never to everyone."""
    before = f"platforms:\n  qqbot:  # the bot\n    dm_policy: disabled\n{more}other: 1\n"
    support.put(home / "config.yaml", before)
    support.put(home / ".env", QQ)

    cured = cure(home, "PLATFORM-POLICY", "set-policy", "qqbot dm_policy")

    assert (home / "config.yaml").read_text() == before.replace(": disabled", f": {word}")
    cured.undo()


def test_closes_a_variable(home: Path) -> None:
    """The line that counts, with its line ending and all else as it was."""
    support.put(home / ".env", f"{WEIXIN}WEIXIN_DM_POLICY=open\r\nLAST=1\r\n")

    cured = cure(home, "AUTHZ-OPEN-REFUSE", "set-policy", "weixin dm_policy")

    after = f"{WEIXIN}WEIXIN_DM_POLICY=pairing\r\nLAST=1\r\n"
    assert (home / ".env").read_bytes().decode() == after
    cured.undo()


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("word", "line"), [("whitelist", "WEIXIN_DM_POLICY=allowlist\r\n"), ("", "")]
)
def test_mends(home: Path, word: str, line: str) -> None:
    """The word that was meant; an empty variable goes."""
    support.put(home / ".env", f"{WEIXIN}WEIXIN_DM_POLICY={word}\r\nLAST=1\r\n")

    cured = cure(home, "PLATFORM-POLICY", "set-policy", "weixin dm_policy")

    assert (home / ".env").read_bytes().decode() == f"{WEIXIN}{line}LAST=1\r\n"
    cured.undo()


def planted(home: Path) -> None:
    """A policy that Hermes refuses to start with."""
    config = "platforms:\n  qqbot:\n    dm_policy: open\n"
    support.put(home / "config.yaml", config)
    support.put(home / ".env", QQ)


PLANTED = Planted("AUTHZ-OPEN-REFUSE", planted)
