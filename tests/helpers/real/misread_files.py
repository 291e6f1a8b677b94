"""Homes whose files say something else than they look like, and what Hermes makes of them.

Each case has what real Hermes answers before and after the fix, as far as it matters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.helpers.real.made_homes import Made

Answer = dict[str, Any]
Holds = Callable[[Answer], bool]
TOKEN = "12345678:abcdefghijklmnopqrstuvwxyz"
TELEGRAM = f"TELEGRAM_BOT_TOKEN={TOKEN}\n"
KEY = "sk-deepseek-123456"
DEEPSEEK = "model: {provider: deepseek, default: m-1}\n"
OLD = f'{{"platforms": {{"telegram": {{"enabled": true, "token": "{TOKEN}"}}}}}}'
SLACK = "SLACK_BOT_TOKEN=xoxb-1234567890\nSLACK_APP_TOKEN=xapp-1234567890\n"


@dataclass(frozen=True)
class Case:
    """One home: its code and fix, and what must hold before and after it."""

    code: str
    fix: str | None
    config: str
    env: str
    sick: Holds
    sound: Holds = field(default=lambda _: True)
    only: tuple[str, ...] = ("0.13.0", "0.16.0", "0.19.0")
    environment: dict[str, str] = field(default_factory=dict)
    more: dict[str, str] = field(default_factory=dict)

    def made(self) -> Made:
        """The home as the questions to Hermes want it."""
        return Made(self.config, self.env, None, self.environment)


def starts(name: str = "telegram") -> Holds:
    """Whether the platform would start."""
    return lambda answer: name in answer["platforms"]


def off(name: str = "telegram") -> Holds:
    """Whether it would not."""
    return lambda answer: name not in answer["platforms"]


def token(value: str) -> Holds:
    """Whether it would start with this token."""
    return lambda answer: answer["platforms"].get("telegram", {}).get("token") == _hashed(value)


def admits(name: str = "telegram") -> Holds:
    """Whether the first user is let in and a stranger is not."""
    return lambda answer: (
        answer["platforms"][name]["u-1"] and not answer["platforms"][name]["stranger"]
    )


def shuts_out(name: str = "telegram") -> Holds:
    """Whether the first user is not let in."""
    return lambda answer: not answer["platforms"][name]["u-1"]


def model(name: str) -> Holds:
    """Whether the next message would go to this model."""
    return lambda answer: answer["model"] == name


def key(value: str) -> Holds:
    """Whether the next message would carry this key."""
    return lambda answer: answer["used"].get("key") == _hashed(value)


def crashes(answer: Answer) -> bool:
    """Whether the gateway's settings cannot be read at all."""
    return "crash" in answer


def no(holds: Holds) -> Holds:
    """The contrary."""
    return lambda answer: not holds(answer)


def _hashed(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:12]


CASES = {
    "tabs": Case(
        "CFG-YAML",
        "mend-yaml",
        "model:\n\tprovider: deepseek\n\tdefault: m-1\n",
        f"DEEPSEEK_API_KEY={KEY}\n",
        no(model("m-1")),
        model("m-1"),
    ),
    "a misspelt key": Case(
        "CFG-UNKNOWN-KEY",
        "rename-key",
        "model:\n  provider: deepseek\n  defualt: m-1\n",
        f"DEEPSEEK_API_KEY={KEY}\n",
        no(model("m-1")),
        model("m-1"),
    ),
    "odd blanks": Case(
        "CFG-LOOKALIKE",
        "straighten-config",
        "model:\n\u00a0\u00a0default: m-1\n\u00a0\u00a0provider: deepseek\n",
        f"DEEPSEEK_API_KEY={KEY}\n",
        no(model("m-1")),
        model("m-1"),
    ),
    "curly quotes": Case(
        "CFG-LOOKALIKE",
        "straighten-config",
        "model:\n  provider: deepseek\n  default: “m-1”\n",
        f"DEEPSEEK_API_KEY={KEY}\n",
        model("“m-1”"),
        model("m-1"),
    ),
    "a list of platforms": Case(
        "CFG-IGNORED", "reshape-platforms", "platforms: [telegram]\n", "", off(), starts()
    ),
    "a platform that is true": Case(
        "CFG-IGNORED", "reshape-platforms", "platforms:\n  telegram: true\n", "", off(), starts()
    ),
    "a platform that is false": Case(
        "CFG-IGNORED",
        "reshape-platforms",
        "platforms:\n  telegram: false\n",
        TELEGRAM,
        starts(),
        off(),
        only=("0.16.0", "0.19.0"),
    ),
    "a token that is not enabled": Case(
        "CFG-IGNORED",
        "reshape-platforms",
        f"platforms:\n  telegram:\n    token: {TOKEN}\n",
        "",
        off(),
        token(TOKEN),
    ),
    "a misspelt platform": Case(
        "CFG-IGNORED",
        "rename-key",
        f"platforms:\n  telegrm:\n    enabled: true\n    token: {TOKEN}\n",
        "",
        off(),
        token(TOKEN),
    ),
    "a token at the top": Case(
        "CFG-IGNORED",
        "move-token",
        f"telegram:\n  enabled: true\n  token: {TOKEN}\n",
        "",
        no(token(TOKEN)),
        token(TOKEN),
    ),
    "gateway is a word": Case(
        "CFG-IGNORED",
        None,
        f"gateway: disabled\nplatforms: {{telegram: {{enabled: true, token: '{TOKEN}'}}}}\n",
        "",
        off(),
        only=("0.16.0",),
    ),
    "off and started": Case(
        "CFG-IGNORED",
        None,
        "telegram:\n  enabled: false\n",
        TELEGRAM,
        starts(),
        only=("0.13.0", "0.16.0"),
    ),
    "allowed_users": Case(
        "CFG-ALLOWLIST-KEY",
        "rename-key",
        "telegram:\n  allowed_users: [u-1]\n",
        TELEGRAM,
        shuts_out(),
        admits(),
    ),
    "a list that only a variable gives": Case(
        "CFG-ALLOWLIST-KEY",
        "move-list",
        "slack:\n  allow_from: [u-1]\n",
        SLACK,
        shuts_out("slack"),
        admits("slack"),
    ),
    "a colon": Case(
        "ENV-LINE",
        "mend-env-line",
        "{}\n",
        f"TELEGRAM_BOT_TOKEN: {TOKEN}\n",
        off(),
        token(TOKEN),
    ),
    "an open quote": Case(
        "ENV-LINE",
        "mend-env-line",
        "{}\n",
        f'FIRST=1\nTELEGRAM_BOT_TOKEN="{TOKEN}\nLAST="2"\n',
        no(token(TOKEN)),
        token(TOKEN),
    ),
    "two on a line": Case(
        "ENV-LINE",
        "mend-env-line",
        "{}\n",
        f"FIRST=1 TELEGRAM_BOT_TOKEN={TOKEN}\n",
        off(),
        token(TOKEN),
    ),
    "small letters": Case(
        "ENV-LINE",
        "mend-env-line",
        "{}\n",
        f"telegram_bot_token={TOKEN}\n",
        off(),
        token(TOKEN),
    ),
    "a reference in .env": Case(
        "ENV-AMBIGUOUS",
        "write-plainly",
        DEEPSEEK,
        f"MINE={KEY}\nDEEPSEEK_API_KEY=${{MINE}}\n",
        key("${MINE}"),
        key(KEY),
    ),
    "two lines": Case(
        "ENV-DUP",
        "comment-out",
        DEEPSEEK,
        f"DEEPSEEK_API_KEY=sk-an-old-one-1\nDEEPSEEK_API_KEY={KEY}\n",
        key(KEY),
        key(KEY),
    ),
    "a variable beats config.yaml": Case(
        "ENV-SHADOWS-CONFIG",
        "comment-out",
        "telegram:\n  allow_from: [u-1]\n",
        TELEGRAM + "TELEGRAM_ALLOWED_USERS=u-2\n",
        shuts_out(),
        admits(),
    ),
    "no port": Case(
        "ENV-PORT",
        None,
        "{}\n",
        "WECOM_CALLBACK_CORP_ID=a\nWECOM_CALLBACK_CORP_SECRET=b\nWECOM_CALLBACK_PORT=abc\n",
        crashes,
        only=("0.13.0", "0.16.0"),
    ),
    "gateway.json": Case(
        "CFG-GATEWAY-JSON",
        None,
        "{}\n",
        "",
        token(TOKEN),
        more={"gateway.json": OLD},
    ),
    "gateway.json is a list": Case(
        "CFG-GATEWAY-JSON",
        None,
        "{}\n",
        "",
        crashes,
        only=("0.13.0", "0.16.0"),
        more={"gateway.json": "[1]"},
    ),
}
