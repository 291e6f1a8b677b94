"""A key that is pasted instead of the name of a variable is shown nowhere."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from hermes_doctor.core import redaction, setting_lines
from tests.helpers import budget, support

KEYS = {
    "uuid": "3f2b8c1e-7d4a-4e9b-a6c5-91d0f3e27b48",
    "dotted": "a1b2c3d4.e5f6g7h8i9j0",
    "a web token": "eyJhbGciOi.eyJzdWIi.SflKxwRJ",
    "short": "zq7Kx9Wp",
    "short capitals": "AB12CD34",
    "short hex": "f986d081",
    "hex": "f986d081884c7d65",
    "one word": "hunter",
}
HOST = "https://relay.example/v1"
ENTRIES = """\
model:
  provider: first
  default: m
  key_env: KEY
  api_key_env: KEY
providers:
  first:
    base_url: HOST
    key_env: KEY
  second:
    base_url: HOST
    api_key_env: KEY
  third:
    base_url: HOST
    env_key: KEY
  fourth:
    base_url: HOST
    key_env: ${KEY}
  fifth:
    base_url: HOST
    api_key: ${KEY}
  sixth:
    base_url: HOST
    keyEnv: 'KEY'
custom_providers:
  - name: seventh
    base_url: HOST
    key_env: KEY
  - name: eighth
    base_url: HOST
    api_key_env: "KEY"
fallback_providers:
  - provider: custom
    model: x
    base_url: HOST
    key_env: KEY
  - provider: custom
    model: x
    base_url: HOST
    api_key: ${KEY}
auxiliary:
  vision:
    provider: custom
    model: x
    base_url: HOST
    key_env: KEY
platforms:
  telegram:
    token_env: KEY
    token: ${KEY}
kez_env: KEY
"""
MODEL = "model:\n  provider: custom\n  base_url: HOST\n  default: m\n  key_env: KEY\n"
MAPPED = (
    "model:\n  provider: custom:mine\n  default: m\ncustom_providers:\n  mine:\n"
    "    base_url: HOST\n    api_key_env: KEY\n"
)
REFERS = "model:\n  provider: custom\n  base_url: HOST\n  default: m\n  api_key: ${KEY}\n"
SHAPES = {"entries": ENTRIES, "model": MODEL, "mapped": MAPPED, "refers": REFERS}


def settings(home: Path, shape: str, *keys: str) -> None:
    """Write config.yaml with a key in every place, one after the other."""
    parts = SHAPES[shape].replace("HOST", HOST).split("KEY")
    turn = itertools.cycle(keys)
    support.put(home / "config.yaml", "".join(part + next(turn) for part in parts[:-1]) + parts[-1])


def commands(shape: str) -> list[tuple[str, ...]]:
    """Everything that shows settings, and the fixes that change them."""
    found: list[tuple[str, ...]] = []
    for form in ((), ("--json",)):
        found += [("check", *form), ("fix", *form), ("config", *form)]
        found.append(("switch-provider", "openrouter", "--model", "x/y", *form))
    names = ("first", "second", "fifth", "seventh", "eighth") if shape == "entries" else ()
    found += [("switch-provider", name, "--model", "x") for name in names]
    found += [("fix", "--apply", "--yes", "--json"), ("undo", "--yes", "--json"), ("timeline",)]
    return found


ROUNDS = [
    *(("entries", list(KEYS)[n:] + list(KEYS)[:n]) for n in (0, 3, 6)),
    *((shape, [kind]) for shape in ("model", "mapped", "refers") for kind in ("uuid", "short")),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("shape", "kinds"), ROUNDS)
def test_nothing_shows_a_pasted_key(home: Path, shape: str, kinds: list[str]) -> None:
    """Neither in text nor in JSON, neither in a diff nor in an error nor in a receipt."""
    keys = [KEYS[kind] for kind in kinds]
    settings(home, shape, *keys)

    for command in budget.sample(commands(shape), 6, kind=lambda words: words[0]):
        done = support.doctor(*command, "--home", home)
        assert not [key for key in keys if key in done.out + done.err], command
    for receipt in (home / "backups" / "doctor" / "runs").glob("*/run.json"):
        assert not [key for key in keys if key in receipt.read_text()]


def test_a_name_is_shown(home: Path) -> None:
    """What is the name of a variable helps, and stays: by its form, or because it is set."""
    text = ENTRIES.replace("KEY", "RELAY_API_KEY").replace("HOST", HOST)
    support.put(home / "config.yaml", text)

    shown = support.doctor("fix", "--home", home).out

    assert "+    key_env: RELAY_API_KEY" in shown
    assert "Add RELAY_API_KEY=... to .env" in support.doctor("check", "-v", "--home", home).out


def test_what_is_hidden_is_described(home: Path) -> None:
    """The length tells which value is meant."""
    settings(home, "entries", KEYS["uuid"])

    assert "+    key_env: (36-character value)" in support.doctor("fix", "--home", home).out
    switched = support.doctor("switch-provider", "first", "--home", home)
    assert switched.code == 2
    assert "has a 36-character value instead of the name of a variable" in switched.err
    assert "--key-env FIRST_API_KEY" in switched.err


NAMES = ["OPENAI_API_KEY", "RELAY_KEY_2", "APIKEY", "_MY_TOKEN", "GHOST_API_KEY", "AZURE_4O_KEY"]
NOT_NAMES = [
    *KEYS.values(),
    "",
    "__",
    "AB12_CD34EF56",
    "SK_LIVE_4242",
    "2FAST",
    "relay_key",
    "A" * 101,
]


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    """Capitals, and several words or one such as KEY."""
    assert redaction.redact_unless_variable(name) == name
    for line in (f"key_env: {name}", f"  api_key_env: '{name}'", f"key_env: ${{{name}}}"):
        assert setting_lines.redact_line(line) == line


@pytest.mark.parametrize("name", NOT_NAMES)
def test_values_that_are_not_names(name: str) -> None:
    """Anything else is only counted."""
    assert redaction.redact_unless_variable(name) == f"({len(name)}-character value)"
    if name:
        for line in ("key_env: {}", "  - api_key_env: '{}'", "token_env: ${{{}}}"):
            assert name not in setting_lines.redact_line(line.format(name))
