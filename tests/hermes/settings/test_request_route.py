"""The headers that Hermes adds to the requests of a provider."""

from __future__ import annotations

import pytest

from hermes_doctor.diagnosis.probes.network import request
from hermes_doctor.diagnosis.probes.network.request import PING, Question
from hermes_doctor.hermes.settings import resolved
from tests.helpers.setting_inputs import NEWEST, world

KEY = "sk-test-0123456789abcdef"
OWN = ("Authorization", "anthropic-version", "x-api-key")


def added(
    config: str, env: str, version: tuple[int, ...] = NEWEST, question: Question = PING
) -> dict[str, str]:
    """The headers of the request to the main provider, without those of its key."""
    found = resolved.resolve_settings(world(config, env, version=version))
    [asked, *_] = request.requests(found, question)
    return {name: value for name, value in asked.headers.items() if name not in OWN}


@pytest.mark.parametrize(
    ("provider", "env", "header", "value"),
    [
        ("openrouter", "OPENROUTER_API_KEY", "X-Title", "Hermes Agent"),
        ("kimi-coding", "KIMI_API_KEY", "User-Agent", "hermes-agent/1.0"),
        ("nvidia", "NVIDIA_API_KEY", "X-BILLING-INVOKE-ORIGIN", "HermesAgent"),
        ("gmi", "GMI_API_KEY", "User-Agent", "HermesAgent/"),
    ],
)
def test_of_known_providers(provider: str, env: str, header: str, value: str) -> None:
    """Some providers refuse a request without them."""
    config = f"model: {{provider: {provider}, default: m}}\n"
    assert added(config, f"{env}={KEY}\n")[header].startswith(value)


def _relay(more: str, mode: str = "chat_completions") -> str:
    return (
        f"model: {{provider: relay, default: m, {more}}}\nproviders:\n  relay:\n"
        f"    base_url: https://relay.example/v1\n    key_env: RELAY_KEY\n    api_mode: {mode}\n"
        "    extra_headers: {X-C: entry}\n"
    )


def test_of_config() -> None:
    """Each place overrides the one before; older releases read fewer places."""
    more = "default_headers: {X-A: default, X-B: default}, extra_headers: {X-B: extra, X-C: extra}"
    env = f"RELAY_KEY={KEY}\n"

    assert added(_relay(more), env) == {"X-A": "default", "X-B": "extra", "X-C": "entry"}
    assert added(_relay(more), env, (0, 17, 0)) == {"X-A": "default", "X-B": "default"}
    assert added(_relay(more), env, (0, 16, 0)) == {}
    assert added(_relay(more, "anthropic_messages"), env) == {"X-C": "entry"}


def test_the_name_of_the_library() -> None:
    """Only `ask` sends it; headers of config.yaml override it."""
    env = f"RELAY_KEY={KEY}\n"
    question = Question("Hi", 1, {"openai": "2.24.0", "anthropic": "0.86.0"})

    assert "User-Agent" not in added(_relay(""), env)
    assert added(_relay(""), env, NEWEST, question)["User-Agent"] == "OpenAI/Python 2.24.0"
    other = added(_relay("", "anthropic_messages"), env, NEWEST, question)
    assert other["User-Agent"] == "Anthropic/Python 0.86.0"
    mine = _relay("default_headers: {User-Agent: curl/8.7.1}")
    assert added(mine, env, NEWEST, question)["User-Agent"] == "curl/8.7.1"
