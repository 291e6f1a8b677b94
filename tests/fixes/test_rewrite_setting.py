"""rewrite-setting: the same in the form that Hermes reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import fix_contract, setting_fix_cycle, support
from tests.helpers.provider_mistakes import MISTAKES


@pytest.mark.sampled
@pytest.mark.parametrize(
    "name",
    [
        "api_key_env",
        "as a shell writes it",
        "a number for the model",
        "128K",
        "the mapping as a list",
        "the chain as JSON",
    ],
)
def test_cures_and_undoes(home: Path, name: str) -> None:
    """Found, cured, twice equals once, undone; no secret comes out."""
    setting_fix_cycle.write(home, MISTAKES[name])
    sick = setting_fix_cycle.contents(home)

    setting_fix_cycle.cure(home, MISTAKES[name])

    setting_fix_cycle.undo(home, sick)


def test_a_comment_stays(home: Path) -> None:
    """Only the number itself is written anew."""
    mistake = MISTAKES["128K"]
    setting_fix_cycle.write(home, mistake)

    setting_fix_cycle.cure(home, mistake)

    text = mistake.config.replace("128K", "128000")
    assert (home / "config.yaml").read_text() == text
    assert "128000  # tokens" in text


MANY = """\
model:
  provider: openrouter
  default: openkey/gpt-4o-mini  # the small one
  context_length: 128K
providers:
  openkey:
    base_url: https://api.relay.example/v1/chat/completions
    api_key_env: MY_KEY
fallback_providers: '[{"provider": "openrouter", "model": "z-ai/y"}]'
"""


def test_many_mistakes_in_one_file(home: Path) -> None:
    """Each is mended on top of the others, by one command; all of it can be taken back."""
    support.put(home / "config.yaml", MANY)
    support.put(home / ".env", "OPENROUTER_API_KEY=sk-or-canary-1\nMY_KEY=Bearer sk-canary-22\n")
    sick = support.contents(home)

    done = support.doctor("fix", "--apply", "--yes", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    assert "canary" not in done.out + done.err
    assert (home / "config.yaml").read_text() == (
        MANY.replace("openrouter\n  default: openkey/", "openkey\n  default: ", 1)
        .replace("128K", "128000")
        .replace("/chat/completions", "")
        .replace("api_key_env", "key_env")
        .replace(
            """ '[{"provider": "openrouter", "model": "z-ai/y"}]'""",
            "\n  - provider: openrouter\n    model: z-ai/y",
        )
    )
    assert (home / ".env").read_text().endswith("\nMY_KEY=sk-canary-22\n")
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


@pytest.mark.parametrize("comment", ["", "  # why", "\n    # bob", "\n    # bob's\n"])
def test_comments_in_what_is_moved(home: Path, comment: str) -> None:
    """A chain that moves to the top takes nothing with it but its entries."""
    config = (
        "model:\n  provider: openrouter\n  default: a/b\n  fallback_providers:\n"
        f"  - provider: openrouter{comment}\n    model: c/d\n"
    )
    support.put(home / "config.yaml", config)
    support.put(home / ".env", "OPENROUTER_API_KEY=sk-or-canary-1\n")

    done = support.doctor("fix", "CFG-FALLBACK-STR", "--home", home)

    assert ("contains comments" in done.out) is bool(comment)
    assert ("+fallback_providers:" in done.out) is not bool(comment)


PLANTED = fix_contract.mistake("128K")
