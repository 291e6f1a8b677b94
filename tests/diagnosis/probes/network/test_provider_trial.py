"""One small request to each provider: what is sent, where to, and what the answer means."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.diagnosis.probes.network import provider_trial, request
from hermes_doctor.diagnosis.probes.network.provider_trial import Trial
from hermes_doctor.diagnosis.probes.network.request import Request
from hermes_doctor.hermes.settings import resolved
from hermes_doctor.hermes.settings.inputs import Settings
from tests.helpers.certificates import certificate as certificate
from tests.helpers.fake_provider import PAGE, SERVED, Provider, error, serving
from tests.helpers.setting_inputs import NEWEST, world

KEY = "sk-relay-0123456789abcdef"
ENV = f"RELAY_KEY={KEY}\n"


def config(url: str, more: str = "", mode: str = "") -> str:
    """A relay of the operator's own."""
    spoken = f"\n    api_mode: {mode}" if mode else ""
    return (
        f"model:\n  provider: relay\n  default: small\nproviders:\n  relay:\n"
        f"    base_url: {url}\n    key_env: RELAY_KEY{spoken}\n{more}"
    )


def questions(written: str, env: str = ENV, version: tuple[int, ...] = NEWEST) -> list[Request]:
    """What would be sent."""
    return list(request.requests(resolved.resolve_settings(world(written, env, version=version))))


def ask(written: str, env: str = ENV, variables: dict[str, str] | None = None) -> list[Trial]:
    """What comes back."""
    settings = Settings(variables or {}, frozenset(), {}, ())
    return provider_trial.ask_all(questions(written, env), settings)


def kind(provider: Provider) -> tuple[str, str]:
    """The verdict on a provider, and what is said of its answer."""
    [found] = ask(config(provider.url))
    assert KEY not in repr(found)
    assert found.verdict is not None, found
    return found.verdict.kind, found.verdict.message


def test_what_is_sent() -> None:
    """One word in, one token out, with the key, once."""
    with serving() as provider:
        [found] = ask(config(provider.url))
        [asked] = provider.asked

    assert found.is_fine
    assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert (asked.body["model"], asked.body["max_tokens"]) == ("small", 1)


@pytest.mark.parametrize(
    ("mode", "path", "header", "answer"),
    [
        ("anthropic_messages", "/v1/messages", "x-api-key", {"type": "message", "content": []}),
        ("codex_responses", "/v1/responses", "Authorization", {"output": [{"type": "message"}]}),
    ],
)
def test_other_protocols(mode: str, path: str, header: str, answer: Any) -> None:
    """Each is asked in its own words, and has to answer in them."""
    with serving(200, answer) as provider:
        [found] = ask(config(provider.url, mode=mode))
        [asked] = provider.asked
    with serving() as other:
        [foreign] = ask(config(other.url, mode=mode))

    assert found.is_fine
    assert not foreign.is_fine
    assert (asked.path, KEY in asked.headers[header]) == (path, True)


@pytest.mark.parametrize(
    ("status", "answer", "kind_", "said"),
    [
        (401, error("invalid_api_key", f"Incorrect API key provided: {KEY}"), "key",
         "invalid_api_key"),
        (400, error("", "API key not valid. Please pass a valid API key."), "key", "api_error"),
        (402, error("payment_required"), "money", "payment_required"),
        (403, error("insufficient_user_quota", "user quota is not enough"), "money",
         "insufficient_user_quota"),
        (403, {"error": {"message": "用户额度不足, 剩余额度: 0", "type": "one_api_error"}}, "money",
         "one_api_error"),
        (429, error("insufficient_quota", "You exceeded your current quota"), "money",
         "insufficient_quota"),
        (403, error("unsupported_country"), "refused", "unsupported_country"),
        (429, error("rate_limit_exceeded"), "limit", "rate_limit_exceeded"),
        (404, error("model_not_found", "The model `small` does not exist"), "model",
         "model_not_found"),
        (400, error("", "small is not a valid model ID"), "model", "api_error"),
        (503, error("model_not_found", "当前分组 default 下对于模型 small 无可用渠道"), "model",
         "model_not_found"),
        (404, PAGE, "address", "a web page instead of an answer"),
        (200, PAGE, "address", "a web page instead of an answer"),
        (404, {"detail": "Not Found"}, "address", ""),
        (200, b"", "address", "nothing"),
        (200, {"error": {"code": 402, "message": "x"}}, "money", ""),
        (400, error("unsupported_parameter", "use max_completion_tokens"), "unsure",
         "unsupported_parameter"),
        (200, {}, "unsure", "no message in it"),
        (200, {"choices": []}, "unsure", "no message in it"),
        (200, {"detail": "Not Found"}, "unsure", "no message in it"),
        (200, {"code": 401, "msg": "token expired", "success": False}, "key", ""),
        (200, {"error": ["bad key"]}, "key", "no message in it"),
        (200, {"error": ["no"]}, "unsure", "no message in it"),
        (200, {"base_resp": {"status_code": 1004, "status_msg": "login fail: carry the key"}},
         "key", "no message in it"),
        (200, {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
         "money", "no message in it"),
        (200, {"choices": [{"error": {"code": 402, "message": "x"}}]}, "money", ""),
        (200, {**SERVED, "error": None, "base_resp": {"status_code": 0}}, "ok", ""),
        (400, error("", "Model small is not available for your account"), "model", "api_error"),
        (400, error("", "No API key provided"), "key", "api_error"),
        (400, error("", "Insufficient account balance"), "money", "api_error"),
        (422, {"detail": "whatever"}, "unsure", ""),
        (401, error("our_relay_master_passphrase"), "key", "api_error"),
        (401, error(KEY, type=KEY), "key", ""),
        (500, error("server_error"), "down", "server_error"),
        (502, PAGE, "down", "a web page instead of an answer"),
    ],
)  # fmt: skip
def test_verdicts(status: int, answer: Any, kind_: str, said: str) -> None:
    """What the answers of real providers and relays mean."""
    with serving(status, answer) as provider:
        assert kind(provider) == (kind_, said)


def test_a_key_that_is_the_name_of_an_error() -> None:
    """Even then it is not said back."""
    with serving(401, error("insufficient_quota")) as provider:
        [found] = ask(config(provider.url), "RELAY_KEY=insufficient_quota\n")

    assert found.verdict is not None
    assert "insufficient" not in found.verdict.message


def test_the_newer_name_of_the_limit() -> None:
    """A model that takes no `max_tokens` is asked once more, as it wants to be."""
    with serving(400, error("unsupported_parameter", "use max_completion_tokens")) as provider:
        ask(config(provider.url))

    assert [sorted(one.body)[:1] for one in provider.asked] == [
        ["max_tokens"],
        ["max_completion_tokens"],
    ]


def test_redirects_are_not_followed() -> None:
    """The key stays where it was sent."""
    with serving() as other, serving(307, b"", Location=other.url) as provider:
        found = kind(provider)

    assert found == ("address", "a redirect, which is not followed")
    assert other.asked == []


def test_large_answers_are_cut() -> None:
    """Nobody can fill the memory."""
    with serving(200, b"x" * (provider_trial.LARGEST * 4)) as provider:
        assert kind(provider) == ("address", "something that is not JSON")


def test_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who takes the request and says nothing is given up."""
    monkeypatch.setattr(provider_trial, "PATIENCE", 1.0)
    with serving(hold=threading.Event()) as provider:
        [found] = ask(config(provider.url))

    assert (found.failed, found.why, found.verdict) == ("answer", "no answer in time", None)


def test_network_stages(certificate: Path) -> None:
    """Refused, unknown, and a certificate that nobody signed."""
    with serving() as provider:
        gone = provider.url
    [refused] = ask(config(gone))
    [unknown] = ask(config("http://name..invalid/v1"))
    with serving(certificate=certificate) as provider:
        url = provider.url.replace("127.0.0.1", "localhost")
        [untrusted] = ask(config(url))
        [trusted] = ask(config(f"{url}\n    ssl_ca_cert: {certificate}"))
        [unasked] = ask(config(f"{url}\n    ssl_verify: false"))
        heard = len(provider.asked)

    assert (refused.failed, unknown.failed, untrusted.failed) == (
        "connection", "name", "certificate",
    )  # fmt: skip
    assert (trusted.is_fine, unasked.is_fine, heard) == (True, True, 2)


def test_older_releases_always_verify() -> None:
    """`ssl_verify` and `ssl_ca_cert` count since 0.18.1."""
    written = config("https://relay.example/v1\n    ssl_verify: false")

    [new] = questions(written, version=(0, 18, 1))
    [old] = questions(written, version=(0, 18, 0))

    assert (new.trust.verified, old.trust.verified) == (False, True)


def test_through_a_proxy() -> None:
    """What is not encrypted is forwarded; the address stays that of the provider."""
    with serving() as proxy:
        through = {"HTTP_PROXY": f"http://user:word@127.0.0.1:{proxy.port}"}
        [found] = ask(config("http://relay.example/v1"), variables=through)
        [asked] = proxy.asked

    assert found.is_fine
    assert asked.path == "http://relay.example/v1/chat/completions"
    assert asked.headers["Host"] == "relay.example"
    assert asked.headers["Proxy-Authorization"].startswith("Basic ")
    assert "word" not in repr(found.proxy and found.proxy.name)


def test_each_provider_once() -> None:
    """Main route and fallbacks; the same address with the same key is asked once."""
    more = (
        "fallback_providers:\n- {provider: relay, model: other}\n"
        "- {provider: openrouter, model: a/b}\n- {provider: nosuch, model: x}\n"
    )
    found = questions(
        config("https://relay.example/v1", more), ENV + "OPENROUTER_API_KEY=sk-or-1\n"
    )

    assert [one.route.path for one in found] == ["model", "fallback_providers[1]"]
    assert KEY not in repr(found)


@pytest.mark.parametrize(
    ("written", "env"),
    [
        (config("https://relay.example/v1"), ""),
        (config("https://relay.example/v1"), "RELAY_KEY=***\n"),
        (config("ftp://relay.example/v1"), ENV),
        (config("https://name:canary@relay.example/v1"), ENV),
        (config('"https://[relay]/v1"'), ENV),
        (config("https://x.openai.azure.com/v1"), ENV),
        ("model: {provider: copilot, default: gpt}\n", "GITHUB_TOKEN=gho_123456789\n"),
        ("model: {provider: anthropic, default: c}\n", "ANTHROPIC_TOKEN=sk-ant-oat01-12345\n"),
        ("model: {provider: bedrock, default: c}\n", "AWS_BEARER_TOKEN_BEDROCK=abcdefgh\n"),
    ],
)
def test_not_asked(written: str, env: str) -> None:
    """Without a key there is nothing to learn; a login is not a key."""
    asked = [one for one in questions(written, env) if one.route.key.state != "not needed"]  # type: ignore[union-attr]

    assert asked == []


def test_no_key_goes_to_a_stranger() -> None:
    """Before 0.15 Hermes sends the key of OpenAI to any host; this does not."""
    written = config("https://relay.example/v1").replace("RELAY_KEY", "UNSET_KEY")

    assert questions(written, "OPENAI_API_KEY=sk-real-12345678\n", version=(0, 13, 0)) == []


def test_hosts() -> None:
    """Those that are really used: an address that does not count is nobody's business."""
    written = (
        "model: {provider: openrouter, default: a/b, base_url: 'https://ignored.example/v1'}\n"
        "fallback_providers:\n- {provider: copilot, model: gpt}\n"
    )
    found = resolved.resolve_settings(
        world(written, "OPENROUTER_API_KEY=sk-or-1\nGITHUB_TOKEN=gho_1234567\n")
    )
    hosts = provider_trial.targets(found, Settings({}, frozenset(), {}, ()))

    assert [(one.what, one.endpoint.host) for one in hosts] == [
        ("openrouter", "openrouter.ai"),
        ("copilot", "api.githubcopilot.com"),
    ]
