"""Which platforms a gateway starts, where they connect to, and through what."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_doctor.hermes.settings import platforms, urls
from hermes_doctor.hermes.settings.inputs import Settings, parse_variables
from hermes_doctor.hermes.settings.platforms import Platform
from hermes_doctor.hermes.settings.urls import Endpoint
from tests.helpers.gateway_home import QQ, TELEGRAM

NEWEST = (0, 19, 0)


def settings(variables: dict[str, str], config: dict[str, Any] | None = None) -> Settings:
    """Settings as if they came from .env."""
    return Settings(variables, frozenset(variables), config or {}, ())


def find(
    variables: dict[str, str],
    config: dict[str, Any] | None = None,
    installed: tuple[int, ...] | None = NEWEST,
) -> dict[str, Platform]:
    """The platforms by name."""
    return {one.name: one for one in platforms.find(settings(variables, config), installed)}


def test_by_variables() -> None:
    """Each platform has its own."""
    found = find(QQ | TELEGRAM | {"DISCORD_BOT_TOKEN": " ", "FEISHU_APP_ID": "only half of it"})

    assert set(found) == {"qqbot", "telegram"}
    assert found["qqbot"].because == "QQ_APP_ID in .env"
    assert found["qqbot"].endpoints[0] == ("api.sgroup.qq.com", 443)
    assert (found["qqbot"].network, found["telegram"].network) == ("tencent", "telegram")


@pytest.mark.parametrize(
    ("value", "on"), [("true", True), ("1", True), ("YES", True), ("false", False), ("", False)]
)
def test_switches(value: str, on: bool) -> None:
    """A variable that is a switch counts by its word."""
    assert ("webhook" in find({"WEBHOOK_ENABLED": value})) is on


@pytest.mark.parametrize(
    ("config", "on"),
    [
        ({"discord": {"enabled": False}}, False),
        ({"platforms": {"discord": {"enabled": False}}}, False),
        ({"gateway": {"platforms": {"discord": {"enabled": "no"}}}}, False),
        ({"discord": {"enabled": True}, "platforms": {"discord": {"enabled": False}}}, True),
        ({"discord": {"reactions": False}}, True),
        ({"discord": None, "platforms": ["discord"], "gateway": "x"}, True),
    ],
)
def test_switched_off(config: dict[str, Any], on: bool) -> None:
    """`enabled: false` wins over the variables where the release lets it."""
    assert ("discord" in find({"DISCORD_BOT_TOKEN": "x"}, config)) is on


def test_releases_differ() -> None:
    """Old releases start Discord whatever config.yaml says; QQ cannot be switched off at all."""
    off: dict[str, Any] = {"discord": {"enabled": False}, "qqbot": {"enabled": False}}
    variables = {"DISCORD_BOT_TOKEN": "x", "GATEWAY_RELAY_URL": "wss://r"} | QQ

    assert set(find(variables, off, (0, 17, 0))) == {"discord", "qqbot", "relay"}
    assert set(find(variables, off, (0, 16, 0))) == {"discord", "qqbot"}
    assert set(find(variables, off, NEWEST)) == {"qqbot", "relay"}
    assert set(find(variables, off, (0, 20, 3))) == {"qqbot", "relay"}
    assert set(find(variables, off, None)) == {"qqbot", "relay"}
    assert find(variables, off, (0, 12, 0)) == {}


def test_switched_on_by_config() -> None:
    """`enabled: true` is enough for the gateway to try."""
    found = find({}, {"platforms": {"slack": {"enabled": True}}})

    assert found["slack"].because == "platforms.slack.enabled in config.yaml"


@pytest.mark.parametrize(
    ("variables", "config", "name", "end", "moved"),
    [
        ({"WEIXIN_TOKEN": "x", "WEIXIN_BASE_URL": "https://w.example/api"}, {}, "weixin",
         ("w.example", 443), True),
        (TELEGRAM, {"platforms": {"telegram": {"extra": {"base_url": "http://10.0.0.9:8081/bot"}}}},
         "telegram", ("10.0.0.9", 8081), True),
        ({"EMAIL_ADDRESS": "a", "EMAIL_PASSWORD": "b", "EMAIL_IMAP_HOST": "imap.example",
          "EMAIL_SMTP_HOST": "c"}, {}, "email", ("imap.example", 993), True),
        ({"MATRIX_ACCESS_TOKEN": "x", "MATRIX_HOMESERVER": "https://m.example:8448"}, {}, "matrix",
         ("m.example", 8448), True),
        ({"SIMPLEX_WS_URL": "ws://[::1]:5225"}, {}, "simplex", ("::1", 5225), True),
        ({"NTFY_TOPIC": "x", "NTFY_SERVER_URL": "https://u:p@ntfy.sh/"}, {}, "ntfy",
         ("ntfy.sh", 443), False),
        ({"SIMPLEX_WS_URL": "ws://x:99999"}, {}, "simplex", None, False),
    ],
)  # fmt: skip
def test_addresses(
    variables: dict[str, str],
    config: dict[str, Any],
    name: str,
    end: tuple[str, int] | None,
    moved: bool,
) -> None:
    """What the operator has set counts instead of the usual host."""
    found = find(variables, config)[name]

    assert found.endpoints == ((Endpoint(*end),) if end else ())
    assert found.moved is moved


@pytest.mark.parametrize(
    ("variables", "config", "name", "port", "link"),
    [
        ({"API_SERVER_KEY": "x"}, {}, "api_server", 8642, "listening"),
        ({"API_SERVER_KEY": "x", "API_SERVER_PORT": "9000"}, {}, "api_server", 9000, "listening"),
        ({"WEBHOOK_ENABLED": "1"}, {"platforms": {"webhook": {"extra": {"port": 7}}}}, "webhook", 7,
         "listening"),
        (TELEGRAM, {}, "telegram", None, "held"),
        (TELEGRAM | {"TELEGRAM_WEBHOOK_URL": "https://x"}, {}, "telegram", 8443, "listening"),
        ({"FEISHU_APP_ID": "x", "FEISHU_APP_SECRET": "y"}, {}, "feishu", None, "held"),
        ({"FEISHU_APP_ID": "x", "FEISHU_APP_SECRET": "y", "FEISHU_CONNECTION_MODE": "webhook"}, {},
         "feishu", 8765, "listening"),
        ({"API_SERVER_KEY": "x", "API_SERVER_PORT": "nonsense"}, {}, "api_server", 8642,
         "listening"),
        ({"API_SERVER_KEY": "x", "API_SERVER_PORT": "²"}, {}, "api_server", 8642, "listening"),
        ({"API_SERVER_KEY": "x", "API_SERVER_PORT": "9" * 5000}, {}, "api_server", None,
         "listening"),
    ],
)  # fmt: skip
def test_ports(
    variables: dict[str, str], config: dict[str, Any], name: str, port: int | None, link: str
) -> None:
    """Who listens, and where."""
    found = find(variables, config)[name]

    assert (found.port, found.link) == (port, link)


def test_who_comes_back() -> None:
    """Only some adapters tell the gateway that they failed."""
    found = find(QQ | TELEGRAM | {"SLACK_BOT_TOKEN": "x"})

    assert {name: one.notifies for name, one in found.items()} == {
        "qqbot": False,
        "telegram": True,
        "slack": False,
    }


def test_env_file() -> None:
    """Names, quotes, comments, and what is no variable."""
    text = "A=1\nexport B = 'two # words' # note\nC=\"x\"\n# D=4\nE=a#b # c\nF=\n=G\nH\nI=#no\n"

    assert parse_variables(text) == {
        "A": "1",
        "B": "two # words",
        "C": "x",
        "E": "a#b",
        "F": "",
        "I": "",
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("http://127.0.0.1:7890", ("http", "127.0.0.1", 7890, None)),
        ("127.0.0.1:7890", ("http", "127.0.0.1", 7890, None)),
        ("socks5h://u:p%40@[::1]:1080/", ("socks5h", "::1", 1080, "u:p%40")),
        ("https://proxy.example", ("https", "proxy.example", 443, None)),
        ("socks5://h", ("socks5", "h", 1080, None)),
        ("http://h:99999", None),
        ("http://", None),
    ],
)
def test_proxy_forms(value: str, expected: tuple[str, str, int, str | None] | None) -> None:
    """As people write them; what is shown of one never has the password."""
    found = urls.parse_proxy("X", value)

    assert (found and found[1:]) == expected
    assert found is None or "p%40" not in found.name


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("api.telegram.org", "T"),
        ("inside.example", None),
        ("a.inside.example", None),
        ("notinside.example", "T"),
        ("10.2.3.4", None),
        ("11.2.3.4", "T"),
        ("b.corp", None),
    ],
)
def test_way_out(host: str, expected: str | None) -> None:
    """A platform's own proxy first; NO_PROXY's names, domains and ranges go straight."""
    variables = {
        "HTTPS_PROXY": "http://H:1",
        "TELEGRAM_PROXY": "http://T:1",
        "NO_PROXY": "inside.example, 10.0.0.0/8,*.corp",
    }

    found = urls.proxy_for(settings(variables), host, ["TELEGRAM_PROXY"])

    assert (found and found.host) == expected


def test_providers() -> None:
    """The main one and the fallbacks: from their blocks, their variables, or built in."""
    config = {
        "model": {"provider": "relay", "default": "m"},
        "providers": {"relay": {"base_url": "https://relay.example/v1"}},
        "fallback_providers": [
            {"provider": "deepseek"},
            {"provider": "claude"},
            {"provider": "unknown-one"},
            {"provider": "openrouter", "base_url": "${URL}"},
            "nonsense",
        ],
    }

    found = urls.provider_endpoints(
        settings({"DEEPSEEK_BASE_URL": "http://127.0.0.1:9/v1"}, config)
    )

    assert found == {
        "relay": ("relay.example", 443),
        "deepseek": ("127.0.0.1", 9),
        "claude": ("api.anthropic.com", 443),
    }
    assert urls.provider_endpoints(settings({}, {"model": "just-a-name"})) == {}
