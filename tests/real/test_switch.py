"""After a switch real Hermes resolves exactly what the plan said, fallback included."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.hermes.settings.resolved import Route
from hermes_doctor.operations.provider_switch import plan
from hermes_doctor.operations.provider_switch.plan import SwitchPlan
from hermes_doctor.operations.provider_switch.target import SwitchRequest
from tests.conftest import need_release
from tests.helpers.provider_scenes import ENV, KEY, RELAY, ROUTER, Installed, carry_out
from tests.helpers.real import resolver_questions
from tests.helpers.real.made_homes import Made

pytestmark = pytest.mark.real
OWN = "model:\n  provider: custom\n  base_url: https://old.example/v1\n  default: m\n"
ENTRY = f"providers:\n  relay:\n    base_url: {RELAY}\n"
CHAIN = "fallback_providers:\n- {provider: relay, model: gpt-4o-mini}\n"
SWITCHES: dict[str, tuple[str, str, SwitchRequest, str | None]] = {
    "a new relay": (ROUTER, ENV, SwitchRequest("relay", RELAY), KEY),
    "half a switch": (
        "model: {provider: openrouter, default: relay/gpt-4o-mini}\n"
        f"{ENTRY}    api_key_env: MY_KEY\n",
        f"{ENV}MY_KEY={KEY}\n",
        SwitchRequest("relay"),
        None,
    ),
    "a plain model": ("model: openai/gpt-4o\n", ENV, SwitchRequest("relay", RELAY), KEY),
    "a key in the file": (
        f"{ROUTER}{ENTRY}    api_key: {KEY}\n", ENV, SwitchRequest("relay"), None,
    ),
    "a key by reference": (
        f"{ROUTER}{ENTRY}    api_key: ${{MY_KEY}}\n", ENV, SwitchRequest("relay"), KEY,
    ),
    "an entry that changes": (
        f"{ROUTER}providers:\n  relay:\n    api: https://old.example\n    api_key: sk-old-1234\n",
        ENV,
        SwitchRequest("relay", RELAY, "NEW_KEY", "big", "anthropic_messages"),
        KEY,
    ),
    "the older list": (
        f"{ROUTER}custom_providers:\n- {{name: Relay, base_url: '{RELAY}', key_env: MY_KEY}}\n",
        ENV,
        SwitchRequest("relay"),
        KEY,
    ),
    "an address of its own before": (
        f"{OWN}  api_key: sk-old-12345678\n", ENV, SwitchRequest("relay", RELAY), KEY,
    ),
    "built in": (ROUTER, ENV, SwitchRequest("deepseek", model="deepseek-chat"), KEY),
    "built in, with another protocol before": (
        f"{OWN}  api_key: sk-old-12345678\n  api_mode: anthropic_messages\n",
        ENV,
        SwitchRequest("deepseek", model="deepseek-chat"),
        KEY,
    ),
    "back to OpenRouter": (
        f"model: {{provider: relay, default: m}}\n{ENTRY}    key_env: MY_KEY\n",
        f"{ENV}MY_KEY={KEY}\n",
        SwitchRequest("openrouter", model="openai/gpt-4o-mini"),
        None,
    ),
    "a chain with the new one": (
        f"{ROUTER}{ENTRY}    key_env: MY_KEY\n{CHAIN}",
        f"{ENV}MY_KEY={KEY}\n",
        SwitchRequest("relay"),
        None,
    ),
    "without a fallback": (ROUTER, ENV, SwitchRequest("relay", RELAY, fallback=False), KEY),
    "Windows line endings": (
        ROUTER.replace("\n", "\r\n"), ENV.replace("\n", "\r\n"), SwitchRequest("relay", RELAY), KEY,
    ),
}  # fmt: skip


@pytest.mark.wide
@pytest.mark.parametrize("version", ["0.13.0", "0.16.0", "0.19.0"])
def test_hermes_does_what_was_planned(version: str, tmp_path: Path) -> None:
    """Provider, address, protocol, model and key, of the next message and of the fallback."""
    need_release(version)
    homes, plans = [], []
    for number, (config, env, wish, key) in enumerate(SWITCHES.values()):
        home = tmp_path / str(number) / "home"
        made = Made(config, env, None)
        made.write(home)
        home.chmod(0o700)
        if "openai/" in config and wish.model is None:  # the prefix of another vendor: name it
            wish = wish._replace(model="gpt-4o-mini")
        switch = plan.plan(Installed(home, version), wish, key)
        run, _ = carry_out(home, switch, version)
        assert run.state == "done", run
        homes.append((home, made))
        plans.append(switch)

    real = resolver_questions.theirs(version, tmp_path, homes)

    for name, (home, made), switch, said in zip(SWITCHES, homes, plans, real, strict=True):
        used, model = said["used"], said["model"]
        assert (*_used(used), model) == (*_planned(switch.after), switch.after.model.value), name
        ours = resolver_questions.ours(resolver_questions.world(home, made, version))
        assert used["key"] == ours["used"]["key"], name
        if switch.fallback:
            _falls_back(switch, said, name)


def _used(said: dict[str, str]) -> tuple[str | None, str | None]:
    return said.get("base_url"), said.get("api_mode")


def _planned(route: Route) -> tuple[str | None, str | None]:
    assert route.base_url
    assert route.api_mode
    return route.base_url.value, route.api_mode.value


def _falls_back(switch: SwitchPlan, said: dict[str, list[dict[str, str]]], name: str) -> None:
    assert switch.fallback
    there = [(*_used(one), one["model"]) for one in said["fallback"]]
    assert (*_planned(switch.fallback), switch.fallback.model.value) in there, name
