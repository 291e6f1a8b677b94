"""ENV-AMBIGUOUS: keys that the two parsers read differently."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import filing

ID = "env-readings"
NAME = "DEEPSEEK_API_KEY"
CASES = {
    "comment": f"{NAME}=sk-zQcanary12  # mine\n",
    "comment after quotes": f'{NAME}="sk-zQcanary12"  # mine\n',
    "reference": f"MINE=sk-zQcanary12\n{NAME}=${{MINE}}\n",
    "escapes": f'{NAME}="sk-zQcanary\\n12"\n',
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("provider", "severity"), [("deepseek", "error"), ("openrouter", "warning")]
)
def test_found(home: Path, case: str, provider: str, severity: str) -> None:
    """An error where the next message uses the key."""
    config = f"model: {{provider: {provider}, default: x}}\n"
    env = "OPENROUTER_API_KEY=sk-or-v1-abcdef\n" + CASES[case]

    _, findings = filing.look(filing.write(home, config, env), ID)

    line = env.count("\n")
    told = [("ENV-AMBIGUOUS", severity, NAME, f".env:{line}", "write-plainly")]
    assert filing.told(findings) == told


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
    assert filing.look(filing.write(home, "{}\n", env), ID)[1] == []


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    filing.silent(home, ID)
