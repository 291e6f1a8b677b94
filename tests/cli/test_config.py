"""`hermes-doctor config`: the table, the document, and what cannot be told."""

from __future__ import annotations

import re
from pathlib import Path

from tests.helpers import support

CONFIG = """\
model:
  default: openkey/gpt-4o-mini
  provider: openkey
  base_url: https://name:secret@old.example/v1?key=secret
providers:
  openkey: {base_url: "https://relay.example/v1", key_env: MY_KEY}
fallback_providers:
- {provider: nowhere, model: x}
"""
ENV = "MY_KEY=sk-canary-12345678\nTELEGRAM_BOT_TOKEN=123456:canary-abcdefgh\n"


def _home(folder: Path) -> Path:
    home = support.healthy(folder / "home")
    support.put(home / "config.yaml", CONFIG)
    support.put(home / ".env", ENV)
    return home


def test_table(tmp_path: Path) -> None:
    """Each value with its place, what does not count, and no secret."""
    done = support.doctor("config", "--home", _home(tmp_path))

    assert done.code == 0
    assert "openkey → custom  model.provider in config.yaml:3" in done.out
    assert "https://relay.example/v1  providers.openkey.base_url in config.yaml:6" in done.out
    assert (
        "ignored: https://(11-character login)@old.example/v1?(10-character query)  model.base_url"
        in done.out
    )
    assert "MY_KEY" in done.out
    assert "no provider is called nowhere" in done.out
    assert re.search(r"TELEGRAM_BOT_TOKEN \(\d+-character token\)  \.env:2", done.out)
    assert "only paired users" in done.out
    assert "canary" not in done.out
    assert "secret" not in done.out


def test_an_api_server_asks_for_its_key(tmp_path: Path) -> None:
    """It knows neither users nor pairings."""
    home = _home(tmp_path)
    support.put(home / ".env", f"{ENV}API_SERVER_ENABLED=true\nAPI_SERVER_KEY=long-enough-key\n")

    done = support.doctor("config", "--home", home)

    [_, about] = done.out.split("API server")
    assert "who        anybody with its key" in about


def test_the_same_value_twice(tmp_path: Path) -> None:
    """A second place with the same value is not shown as another value."""
    home = _home(tmp_path)
    config = CONFIG.replace("name:secret@old.example/v1?key=secret", "relay.example/v1/")
    support.put(home / "config.yaml", config)

    done = support.doctor("config", "--home", home)
    assert "ignored, same value  model.base_url in config.yaml:4" in done.out
    assert done.out.count("https://relay.example/v1") == 1


def test_document(tmp_path: Path) -> None:
    """The same for programs."""
    found = support.doctor("config", "--json", "--home", _home(tmp_path)).json

    assert found["schema"] == "hermes-doctor/config/1"
    assert found["used"] == "model"
    assert found["next"]["key"]["name"] == "MY_KEY"
    assert found["next"]["key"]["source"]["via"]["line"] == 1
    assert found["next"]["base_url"]["shadows"][0]["source"]["line"] == 4
    assert found["fallback"][0]["trouble"]["kind"] == "unknown"
    assert [one["name"] for one in found["platforms"]] == ["telegram"]


def test_a_broken_file(tmp_path: Path) -> None:
    """What Hermes does with it is told: it goes on without."""
    home = _home(tmp_path)
    support.put(home / "config.yaml", "model:\n\tprovider: x\n")
    done = support.doctor("config", "--home", home)

    assert done.code == 0
    assert "config.yaml line 2 is not valid YAML, so Hermes ignores the file" in done.out
    assert "There is a tab where YAML allows only spaces." in done.out
    assert "Next: hermes-doctor fix --home" in done.out
    assert support.doctor("config", "--json", "--home", home).json["fault"]["line"] == 2


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Nothing is told rather than something wrong."""
    home = _home(tmp_path)
    (home / ".env").unlink()
    (home / ".env").mkdir()
    done = support.doctor("config", "--home", home)

    assert done.code == 2
    assert "Could not read the settings: .env" in done.err


def test_brackets_in_an_address(tmp_path: Path) -> None:
    """Such an address is shown like any other, and another provider can be switched to."""
    home = _home(tmp_path)
    relay = "https://[your-resource].relay.example/v1"
    support.put(home / "config.yaml", CONFIG.replace("https://relay.example/v1", relay))
    support.put(home / ".env", f"{ENV}OPENROUTER_API_KEY=sk-or-v1-0123456789abcdef\n")

    assert relay in support.doctor("config", "--home", home).out
    switch = ("switch-provider", "openrouter", "--model", "openai/gpt-4o", "--home", home)
    assert "+  provider: openrouter" in support.doctor(*switch).out
