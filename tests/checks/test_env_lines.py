"""ENV-LINE: lines that are not read as they were meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes

ID = "env-lines"
NAME = "TELEGRAM_BOT_TOKEN"
T = config_homes.TOKEN
CASES = {
    "colon": (f"A=1\n{NAME}: {T}\n", ("error", NAME, 2, "mend-env-line")),
    "colon, an unknown name": ("MY_OWN: 5\n", ("info", "MY_OWN", 1, "mend-env-line")),
    "space": (f"A=1\nexport {NAME}  {T}\n", ("error", NAME, 2, "mend-env-line")),
    "open quote": (f'{NAME}="{T}\nB=2\n', ("error", NAME, 1, "mend-env-line")),
    "open quote that another closes": (
        f'{NAME}="{T}\nB="2"\n',
        ("error", NAME, 1, "mend-env-line"),
    ),
    "two on a line": (f"FIRST=1 {NAME}={T}\n", ("error", NAME, 1, "mend-env-line")),
    "two that Hermes parts": (
        f"DISCORD_BOT_TOKEN=abcdef{NAME}={T}\n",
        ("info", NAME, 1, "mend-env-line"),
    ),
    "small letters": (f"telegram_bot_token={T}\n", ("error", NAME, 1, "mend-env-line")),
    "some small letters": (
        "Telegram_Allowed_Users=1\n",
        ("warning", "TELEGRAM_ALLOWED_USERS", 1, "mend-env-line"),
    ),
    "no value": (f"{NAME}\n", ("warning", NAME, 1, None)),
}


@pytest.mark.parametrize("case", CASES)
def test_found(home: Path, case: str) -> None:
    """The variable that is lost is named, with the line; its value is not."""
    env, (severity, subject, line, fix) = CASES[case]

    _, findings = config_homes.look(config_homes.write(home, "{}\n", env), ID)

    told = [("ENV-LINE", severity, subject, f".env:{line}", fix)]
    assert config_homes.told(findings) == told


OWN = (
    "model: {provider: mine, default: x}\n"
    "providers: {mine: {base_url: 'https://api.example/v1', key_env: MY_KEY}}\n"
)
NEEDED = {
    "the key of the provider": (OWN, f"MY_KEY: {T}\n", "error"),
    "set on another line": (OWN, f"MY_KEY: {T}\nMY_KEY={T}\n", "info"),
    "the key of another provider": (OWN, f"DEEPSEEK_API_KEY: {T}\n", "warning"),
    "the allowlist": ("{}\n", config_homes.TELEGRAM + "telegram_allowed_users=1\n", "error"),
    "the app id": ("{}\n", "QQ_CLIENT_SECRET=abcdefgh\nQQ_APP_ID: 1\n", "error"),
}


@pytest.mark.parametrize("case", NEEDED)
def test_severity(home: Path, case: str) -> None:
    """A lost variable is an error if the bot or a platform gives no answers without it."""
    config, env, severity = NEEDED[case]

    _, findings = config_homes.look(config_homes.write(home, config, env), ID)

    assert [one.severity.value for one in findings] == [severity]
    assert ("cannot answer" in findings[0].detail) is (severity == "error")


SILENT = {
    "comments": "# A: 1\n  # telegram_bot_token=x\n\n",
    "over several lines": "A='-----BEGIN\nabc: def\n-----END'\nB=2\n",
    "a value with signs": "URL=https://x.example/?A=1&TELEGRAM_BOT_TOKEN=2\n",
    "in quotes": 'A="x TELEGRAM_BOT_TOKEN=y"\n',
    "set as well": f"{NAME}={T}\ntelegram_bot_token=x\n{NAME}\n",
    "proxies": "https_proxy=http://x.example:1\nno_proxy=y\n",
    "escaped": r'A="a \" b"' + "\n",
    "not ours": "source other\nhttp: x\nMY_OWN abcdefgh\n",
    "a remark": f"{NAME} is below\n{NAME} missing\n",
    "set as well, with a space": f"{NAME}={T}\n{NAME} {T}\n",
}


@pytest.mark.parametrize("case", SILENT)
def test_silent(home: Path, case: str) -> None:
    """What is read as it looks, and what is nobody's."""
    assert config_homes.look(config_homes.write(home, "{}\n", SILENT[case]), ID)[1] == []


def test_wrong_encoding(home: Path) -> None:
    """It has a code of its own, and lines cannot be told apart."""
    (home / ".env").write_bytes(f"{NAME}: x\n".encode("utf-16"))

    assert config_homes.look(home, ID)[1] == []


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
