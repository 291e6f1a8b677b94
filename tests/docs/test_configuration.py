"""The examples in docs/configuration.md are what the commands accept and print."""

from __future__ import annotations

import re
from pathlib import Path

from hermes_doctor.core.preferences import config_toml
from tests.helpers import support

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


def test_the_file(tmp_path: Path) -> None:
    """It is valid, and has all tables."""
    [example] = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    path = tmp_path / "config.toml"
    support.put(path, example, 0o600)
    found = config_toml.load(path)
    assert found and {keys[0] for keys in found.values} == {
        *("home", "language", "fail_on", "plugins", "vault", "severity", "watch", "homes")
    }


def test_every_option_of_the_watch_is_named() -> None:
    """In the list below the example."""
    for name in config_toml.WATCH_KEYS:
        assert f"`{name}`" in PAGE
