"""Answers: where a value comes from, and what it shadows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.settings import resolved
from hermes_doctor.hermes.settings.resolved import Resolved, Route
from hermes_doctor.render import config
from tests.helpers import support
from tests.helpers.setting_inputs import world

RELAY = """\
model:
  default: gpt-4o-mini
  provider: openkey
  base_url: https://old.example/v1
providers:
  openkey:
    base_url: https://relay.example/v1
    key_env: MY_KEY
"""


def used(found: Resolved) -> Route:
    """What the next message uses."""
    assert found.used is not None
    return found.used


def test_sources_and_shadows() -> None:
    """Each value with its line, and the address that does not count with its own."""
    found = used(
        resolved.resolve_settings(
            world(RELAY, "A=1\nMY_KEY=sk-one\n", started_with={"MY_KEY": "old"})
        )
    )

    assert found.provider and found.base_url and found.key
    assert (found.requested.value, found.provider.value) == ("openkey", "custom")
    assert str(found.model.source) == "model.default in config.yaml:2"
    assert str(found.base_url.source) == "providers.openkey.base_url in config.yaml:7"
    assert [str(one.source) for one in found.base_url.shadows] == [
        "model.base_url in config.yaml:4"
    ]
    assert (found.key.name, found.key.state) == ("MY_KEY", "usable")
    assert str(found.key.source) == (
        "providers.openkey.key_env in config.yaml:8, from MY_KEY in .env:2"
    )


def test_a_pool_entry_shadows_the_variable() -> None:
    """The rotated key in .env has no effect, and the answer says so."""
    manual = {"source": "manual", "label": "work", "access_token": "sk-old", "priority": 0}
    store = {"credential_pool": {"deepseek": [manual]}}
    config = "model: {provider: deepseek, default: x}\n"
    key = used(resolved.resolve_settings(world(config, "DEEPSEEK_API_KEY=sk-new\n", store))).key

    assert key is not None
    assert (key.name, key.source.kind, key.source.file) == ("work", "pool", "auth.json")
    assert [one.name for one in key.shadows] == ["DEEPSEEK_API_KEY"]
    assert key.fingerprint != key.shadows[0].fingerprint


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ("sk-real-1234", "usable"),
        ("***", "masked"),
        ("changeme", "placeholder"),
        ("your_api_key_here", "placeholder"),
        ("", "missing"),
    ],
)
def test_states_of_keys(value: str, state: str) -> None:
    """What is there instead of a key is told."""
    config = "model: {provider: openrouter, default: x}\n"
    key = used(
        resolved.resolve_settings(
            world(config, f"OPENROUTER_API_KEY={value}\n", version=(0, 16, 0))
        )
    ).key

    assert key is not None
    assert key.state == state


@pytest.mark.parametrize(
    ("address", "state"),
    [("https://relay.example/v1", "missing"), ("http://127.0.0.1:8080/v1", "not needed")],
)
@pytest.mark.parametrize("older", [False, True])
def test_the_variable_of_key_env_is_not_set(address: str, state: str, older: bool) -> None:
    """A public relay needs its key; a server of one's own may not."""
    text = RELAY.replace("https://relay.example/v1", address)
    if older:
        text = text.replace("providers:\n  openkey:\n", "custom_providers:\n  - name: openkey\n")
    found = used(resolved.resolve_settings(world(text)))

    assert found.key is not None and found.base_url is not None
    assert (found.base_url.value, found.key.state) == (address, state)
    assert found.key.name == ("MY_KEY" if state == "missing" else "no key")
    told = "\n".join(
        "".join(said for said, _ in line.spans)
        for line in config.lines(Path("/home"), "0.19.0", resolved.resolve_settings(world(text)))
    )
    assert ("MY_KEY is missing" in told) == (state == "missing")
    assert ("not needed" in told) == (state == "not needed")


def test_a_reference_that_leads_nowhere() -> None:
    """`${NAME}` of a variable that is not set is sent as it is written."""
    text = RELAY.replace("key_env: MY_KEY", "api_key: ${NOWHERE}")
    key = used(resolved.resolve_settings(world(text))).key

    assert key is not None
    assert (key.state, key.source.line) == ("unresolved", 8)


def test_older_releases_send_keys_to_strangers() -> None:
    """Without a key of its own, a relay got OpenRouter's before 0.15."""
    text = RELAY.replace("    key_env: MY_KEY\n", "")
    env = "OPENROUTER_API_KEY=sk-router\n"
    old = used(resolved.resolve_settings(world(text, env, version=(0, 14, 0)))).key
    new = used(resolved.resolve_settings(world(text, env))).key

    assert old and new
    assert old.name == "OPENROUTER_API_KEY"
    assert new.state == "not needed"


def test_falls_back() -> None:
    """A provider that nobody knows: the first entry of the chain that has a key is used."""
    text = (
        "model: {provider: nowhere, default: x}\nfallback_providers:\n"
        "- {provider: alsonowhere, model: y}\n- {provider: openrouter, model: z}\n"
    )
    found = resolved.resolve_settings(world(text, "OPENROUTER_API_KEY=sk-router\n"))

    assert found.main.trouble and found.main.trouble.kind == "unknown"
    assert [bool(one.trouble) for one in found.fallback] == [True, False]
    assert (used(found).path, used(found).model.value) == ("fallback_providers[1]", "z")


def test_platforms() -> None:
    """Tokens by name and place, and who may talk."""
    env = "TELEGRAM_BOT_TOKEN=123:abcdef\nQQ_APP_ID=1\nGATEWAY_ALLOW_ALL_USERS=true\n"
    text = "telegram:\n  allow_from: [7, 8]\n"
    found = {one.name: one for one in resolved.resolve_settings(world(text, env)).platforms}

    telegram, qq = found["telegram"], found["qqbot"]
    assert [(t.name, t.state) for t in qq.tokens] == [
        ("QQ_APP_ID", "usable"),
        ("QQ_CLIENT_SECRET", "missing"),
    ]
    assert telegram.users and str(telegram.users.source) == "telegram.allow_from in config.yaml:2"
    assert telegram.admits("7") and not telegram.admits("9")
    assert qq.admits("anybody")


def test_asked_through_the_probes(tmp_path: Path) -> None:
    """Once a run, from the files of the home."""
    probes = Probes(Home(support.healthy(tmp_path / "home")))
    found = probes.settings.resolved()

    assert found is probes.settings.resolved()
    assert used(found).provider is not None
    assert used(found).model.value == "acme/test-model"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """No answer is better than a wrong one."""
    home = support.healthy(tmp_path / "home")
    (home / ".env").unlink()
    (home / ".env").mkdir()

    with pytest.raises(CouldNotLook):
        Probes(Home(home)).settings.resolved()


@pytest.mark.parametrize(
    "text",
    [
        "model: {default: 4.5, provider: 7}\n",
        "model: {default: {a: b}}\nproviders: [1]\ncustom_providers: {a: 1}\n",
        "model: [x]\nproviders: {1: {base_url: x}, a: null}\nfallback_providers: {a: {b: c}}\n",
        "auxiliary: {vision: [1], 5: {provider: x}}\nplatforms: {telegram: 3}\ntelegram: [a]\n",
        "a: &a {b: *a}\nmodel: *a\n",
        "model: {provider: 'custom:', base_url: 'http://[::1', default: x}\n",
    ],
)
@pytest.mark.parametrize("version", [(0, 13, 0), (0, 19, 0), (0, 99, 0), (0, 1, 0)])
def test_hostile(text: str, version: tuple[int, ...]) -> None:
    """Whatever the files hold, there is an answer."""
    stores: tuple[dict[str, Any], ...] = (
        {},
        {"credential_pool": {"openrouter": [1, {}, {"priority": "x"}]}, "providers": []},
    )
    for store in stores:
        resolved.resolve_settings(
            world(text, "OPENROUTER_API_KEY=sk-x\nTELEGRAM_BOT_TOKEN=1:abcd\n", store, version)
        )
