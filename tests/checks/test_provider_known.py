"""CFG-PROVIDER-UNKNOWN and CFG-BUILTIN-NAME: names that Hermes does not know, or knows better."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import settings_verdicts, support
from tests.helpers.provider_mistakes import MISTAKES


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("misspelt", "openkey"),
        ("removed", "from 0.19.1"),
        ("groq", "https://api.groq.com/openai/v1"),
        ("defined without an address", "has no base_url"),
        ("openai", "openai-api"),
    ],
)
def test_says_what_to_do(tmp_path: Path, name: str, words: str) -> None:
    """Each kind of unknown name has its own advice."""
    finding = settings_verdicts.found(tmp_path, name, "0.19.0")

    assert words in f"{finding.detail} {finding.next}"


def test_a_consequence(tmp_path: Path) -> None:
    """A provider that is lost by its form is not a second fault."""
    home = settings_verdicts.write(tmp_path / "home", MISTAKES["the mapping as a list"])

    [finding] = settings_verdicts.look(home, "0.19.0", "CFG-PROVIDER-UNKNOWN")

    assert finding.caused_by == "CFG-PROVIDERS-SHAPE"


def test_a_plugin_may_define_it(tmp_path: Path) -> None:
    """What code of the home adds to Hermes cannot be told from its settings."""
    home = settings_verdicts.write(tmp_path / "home", MISTAKES["not defined"])
    support.put(home / "plugins" / "model-providers" / "nowhere" / "plugin.yaml", "")

    assert settings_verdicts.look(home, "0.19.0", "CFG-PROVIDER-UNKNOWN") == []
