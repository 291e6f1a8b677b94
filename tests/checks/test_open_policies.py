"""open-policies: who may write, in words that Hermes knows and starts with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.check_home import look

ID = "open-policies"
SET_UP = {
    "wecom": "WECOM_BOT_ID=aib1\nWECOM_SECRET=abcdef\n",
    "weixin": "WEIXIN_ACCOUNT_ID=abc\nWEIXIN_TOKEN=abcdef\n",
    "yuanbao": "YUANBAO_APP_ID=abc\nYUANBAO_APP_SECRET=abcdef\n",
    "whatsapp": "WHATSAPP_ENABLED=true\n",
    "qqbot": "QQ_APP_ID=102081123\nQQ_CLIENT_SECRET=abcdef\n",
}


@pytest.mark.parametrize("platform", SET_UP)
@pytest.mark.parametrize("kind", ["dm_policy", "group_policy"])
@pytest.mark.parametrize(("version", "severity"), [("0.18.0", "critical"), ("0.17.0", "info")])
def test_open(home: Path, platform: str, kind: str, version: str, severity: str) -> None:
    """From 0.18 on the gateway does not start so; before, that is only worth knowing."""
    config = f"{platform}:\n  {kind}: open\n"

    _, [finding] = look(home, ID, SET_UP[platform], config, version=version)

    assert (finding.code, finding.severity) == ("AUTHZ-OPEN-REFUSE", severity)
    assert finding.subject == f"{platform} {kind}"
    assert finding.evidence[0].where == "config.yaml:2"
    assert finding.fix == ("set-policy" if severity == "critical" else None)


def test_open_while_a_gateway_runs(home: Path) -> None:
    """It answers now; that nobody gets an answer would be false."""
    config = "qqbot:\n  dm_policy: open\n"

    _, [finding] = look(home, ID, SET_UP["qqbot"], config, running=True)

    assert finding.title == "QQ is open to everyone, so Hermes does not start"
    assert finding.detail.startswith("The running gateway still answers.")


@pytest.mark.parametrize("platform", ["wecom", "weixin", "yuanbao", "whatsapp"])
def test_open_by_a_variable(home: Path, platform: str) -> None:
    """The variable counts as well, with its line."""
    env = SET_UP[platform] + f"{platform.upper()}_DM_POLICY=Open\n"

    _, [finding] = look(home, ID, env)

    assert finding.code == "AUTHZ-OPEN-REFUSE"
    assert finding.evidence[0].where == f".env:{env.count(chr(10))}"


@pytest.mark.parametrize("variable", ["GATEWAY_ALLOW_ALL_USERS", "QQ_ALLOW_ALL_USERS"])
def test_meant_to_be_open(home: Path, variable: str) -> None:
    """Where somebody says so, the gateway starts."""
    env = SET_UP["qqbot"] + f"{variable}=true\n"

    assert look(home, ID, env, "qqbot:\n  dm_policy: open\n")[1] == []


@pytest.mark.parametrize("word", ["allowlist", "pairing", "Pairing"])
def test_in_order(home: Path, word: str) -> None:
    """The other words; none at all; and no platform with a policy."""
    assert look(home, ID, SET_UP["weixin"] + f"WEIXIN_DM_POLICY={word}\n")[1] == []
    assert look(home, ID, SET_UP["weixin"])[1] == []
    assert look(home, ID)[0].status == "skipped"


@pytest.mark.parametrize("version", ["0.13.0", "0.19.0"])
@pytest.mark.parametrize(
    ("platform", "more", "severity"),
    [
        ("weixin", "", "error"),
        ("weixin", "  group_policy: allowlist\n", "warning"),
        ("qqbot", "", "warning"),
        ("qqbot", "  group_policy: disabled\n", "error"),
        ("wecom", "  group_policy: Disabled\n", "error"),
        ("whatsapp", "", "warning"),
    ],
)
def test_direct_messages_are_off_on_the_only_platform(
    home: Path, platform: str, more: str, severity: str, version: str
) -> None:
    """An error if groups are off as well: then nobody can write to the bot."""
    config = f"{platform}:\n  dm_policy: disabled\n{more}"

    _, [finding] = look(home, ID, SET_UP[platform], config, version=version)

    assert (finding.code, finding.severity) == ("PLATFORM-POLICY", severity)
    assert (finding.fix, finding.data["value"]) == ("set-policy", "pairing")
    assert ("Nobody" in finding.detail) == (severity == "error")


def test_direct_messages_are_off_on_one_of_two_platforms(home: Path) -> None:
    """It may be meant so: only a note, without a fix."""
    env = SET_UP["weixin"] + SET_UP["qqbot"] + "WEIXIN_DM_POLICY=disabled\n"

    _, [finding] = look(home, ID, env)

    assert (finding.severity, finding.fix) == ("info", None)
    assert "QQ" in finding.detail


def test_a_platform_for_programs_is_no_other_platform(home: Path) -> None:
    """Other programs use `a2a`; people still cannot write to the bot."""
    config = "weixin:\n  dm_policy: disabled\nplatforms:\n  a2a: {enabled: true}\n"

    _, [finding] = look(home, ID, SET_UP["weixin"], config, version="0.20.5")

    assert (finding.severity, "Nobody" in finding.detail) == ("error", True)


def test_the_list_of_users_decides_what_replaces_disabled(home: Path) -> None:
    """With an allowlist, the policy becomes `allowlist`; without one, `pairing`."""
    env = SET_UP["weixin"] + "WEIXIN_DM_POLICY=disabled\nWEIXIN_ALLOWED_USERS=wx1\n"

    _, [finding] = look(home, ID, env)

    assert finding.data["value"] == "allowlist"


@pytest.mark.parametrize(
    ("word", "fix"),
    [("whitelist", True), ("alowlist", True), ("off", True), ("", True), ("everyone", False)],
)
@pytest.mark.parametrize(("version", "severity"), [("0.19.0", "error"), ("0.16.0", "warning")])
def test_unknown_words(home: Path, word: str, fix: bool, version: str, severity: str) -> None:
    """Nobody gets through from 0.18 on; before, everybody does."""
    env = SET_UP["weixin"] + f"WEIXIN_DM_POLICY={word}\n"

    _, [finding] = look(home, ID, env, version=version)

    assert (finding.code, finding.severity) == ("PLATFORM-POLICY", severity)
    assert finding.fix == ("set-policy" if fix else None)
    assert finding.evidence[0].where == ".env:3"


def test_a_word_of_yaml(home: Path) -> None:
    """`off` is false to YAML, and no policy."""
    _, [finding] = look(home, ID, SET_UP["qqbot"], "qqbot:\n  dm_policy: off\n")

    assert (finding.code, finding.data["value"]) == ("PLATFORM-POLICY", "disabled")
