"""ENV-AMBIGUOUS: keys that the two parsers read differently."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, support

ID = "env-readings"
NAME = "DEEPSEEK_API_KEY"
CASES = {
    "comment": f"{NAME}=sk-zQcanary12  # mine\n",
    "comment after quotes": f'{NAME}="sk-zQcanary12"  # mine\n',
    "reference": f"MINE=sk-zQcanary12\n{NAME}=${{MINE}}\n",
    "escapes": f'{NAME}="sk-zQcanary\\n12"\n',
}


@pytest.mark.parametrize("case", CASES)
def test_found(home: Path, case: str) -> None:
    """A key that nothing uses today."""
    config = "model: {provider: openrouter, default: acme/x}\n"
    env = "OPENROUTER_API_KEY=sk-or-v1-abcdef\n" + CASES[case]

    _, findings = config_homes.look(config_homes.write(home, config, env), ID)

    line = env.count("\n")
    told = [("ENV-AMBIGUOUS", "info", NAME, f".env:{line}", "write-plainly")]
    assert config_homes.told(findings) == told


@pytest.mark.parametrize("case", CASES)
def test_in_use(home: Path, case: str) -> None:
    """An error where the next message uses it, unless the key itself is reported for it."""
    config = "model: {provider: deepseek, default: x}\n"

    done = support.check(config_homes.write(home, config, CASES[case]))

    found = [one for one in done.json["findings"] if one["code"] in ("ENV-AMBIGUOUS", "CRED-SHAPE")]
    assert [one["severity"] for one in found] == ["error"]


@pytest.mark.parametrize(
    "env",
    [
        "TELEGRAM_BOT_TOKEN=12345:abcdefghij  # mine\n",
        "MY_OWN=a  # b\n",
        f"{NAME}='sk-1234567'\n",
        f"{NAME}=sk-12#34567\n",
        f"{NAME}=\n",
    ],
)
def test_silent(home: Path, env: str) -> None:
    """Where it makes no difference: tokens of platforms go through one parser only."""
    assert config_homes.look(config_homes.write(home, "{}\n", env), ID)[1] == []


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
