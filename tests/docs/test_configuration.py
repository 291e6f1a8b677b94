"""The examples in docs/configuration.md are what the commands accept and print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes_doctor.preferences import config_file
from tests.helpers import support

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


def examples(command: str) -> list[str]:
    """What the page shows as the output of a command."""
    found = re.findall(rf"^\$ hermes-doctor {command}.*\n((?:(?!\$ |```).*\n)*)", PAGE, re.M)
    assert found
    return [line.rstrip() for line in found[0].rstrip().splitlines()]


def test_the_file(tmp_path: Path) -> None:
    """It is valid, and has all tables."""
    [example] = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    path = tmp_path / "config.toml"
    support.put(path, example, 0o600)
    found = config_file.load(path)
    assert found and {keys[0] for keys in found.values} == {
        *("home", "language", "fail_on", "plugins", "vault", "severity", "watch", "homes")
    }


def test_every_option_of_the_watch_is_named() -> None:
    """In the list below the example."""
    for name in config_file.WATCH_KEYS:
        assert f"`{name}`" in PAGE


def test_settings(tmp_path: Path, home: Path) -> None:
    """The whole screen."""
    target = tmp_path / ".config" / "hermes-doctor" / "config.toml"
    lines = [
        f'home = "{home}"',
        'fail_on = "warning"',
        'vault = "/srv/backups"',
        "",
        "[severity]",
        'GW-LINGER = "off"',
        "",
        "[watch]",
        'interval = "1m"',
        'notify_webhook = "https://example.org/hook"',
    ]
    support.put(target, "\n".join(lines), 0o600)
    env = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": None}
    done = support.doctor("settings", env=env)

    def squeezed(said: list[str]) -> list[str]:
        return [" ".join(line.split()) for line in said]

    shown = done.out.replace("~/home", "/srv/hermes").splitlines()
    assert squeezed(shown) == squeezed(examples("settings"))


def test_mutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All three commands, with other times."""
    home = support.healthy(tmp_path / ".hermes")
    support.put(home / ".env", b"\xef\xbb\xbf" + (home / ".env").read_bytes())
    config = tmp_path / ".config"
    env = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(config)}
    because = "the editor is replaced next week"
    said = [
        support.doctor("mute", "ENV-BOM", "--for", "7d", "--because", because, env=env),
        support.doctor("mutes", env=env),
        support.doctor("unmute", "ENV-BOM", env=env),
    ]

    def timeless(text: str) -> str:
        text = re.sub(r"(\w{3} \d+ )?\d\d:\d\d", "TIME", text.replace(str(config), "~/.config"))
        return re.sub(r"\d+ s ago", "0 s ago", text)

    wanted = [*examples("mute ENV"), *examples("mutes"), *examples("unmute")]
    got = "".join(one.out for one in said).splitlines()
    assert [timeless(line) for line in got] == [timeless(line) for line in wanted]
