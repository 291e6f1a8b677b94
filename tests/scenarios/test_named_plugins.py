"""PLUGIN-FAILED names the plugin, so that nobody has to search the log for it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.one_check import ask


@pytest.mark.parametrize(
    ("line", "title"),
    [
        (
            "Failed to load plugin 'openrouter': No module named 'orjson'",
            "Hermes cannot load the plugin openrouter",
        ),
        (
            "Failed to load Agent Plugin 'acme/stocks': No module named 'x'",
            "Hermes cannot load the plugin acme/stocks",
        ),
        ("Plugin 'acme' has no register() function", "Hermes cannot load the plugin acme"),
    ],
)
def test_the_title_names_the_plugin(home: Path, line: str, title: str) -> None:
    """Two plugins are two problems, because each is repaired by itself."""
    at = f"{datetime.now():%Y-%m-%d %H:%M:%S},000"
    other = line.replace("openrouter", "weather").replace("acme", "weather")
    text = "".join(f"{at} WARNING hermes_cli.plugins: {one}\n" for one in (line, line, other))
    support.put(home / "logs/errors.log", text)

    found = [one for one in ask("log-rules", home)[1] if one.code == "PLUGIN-FAILED"]

    assert len(found) == 2
    assert title in [one.title for one in found]
