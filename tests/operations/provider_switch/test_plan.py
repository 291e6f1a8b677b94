"""What a switch changes, what Hermes will then resolve, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix, Trouble
from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.operations.provider_switch import plan
from hermes_doctor.operations.provider_switch.plan import SwitchPlan
from hermes_doctor.operations.provider_switch.target import SwitchRequest
from hermes_doctor.render import provider_switch
from tests.helpers import fake_gateway, support
from tests.helpers.provider_scenes import ENV, KEY, RELAY, ROUTER, Installed, write
from tests.helpers.support import put

NEW = SwitchRequest("relay", base_url=RELAY, model="gpt-4o-mini")


def planned(
    home: Path, wish: SwitchRequest = NEW, key: str | None = KEY, version: str = "0.19.0"
) -> tuple[SwitchPlan, str, str]:
    """The plan, and both files after it."""
    switch = plan.plan(Installed(home, version), wish, key)
    texts = {texts[0]: texts[2].decode() for step in switch.steps if (texts := step.texts())}
    before = [(home / name).read_text() for name in ("config.yaml", ".env")]
    return switch, texts.get("config.yaml", before[0]), texts.get(".env", before[1])


def test_a_new_relay(tmp_path: Path) -> None:
    """Entry, provider, model, key and fallback change; comments and order stay."""
    switch, config, env = planned(write(tmp_path))

    assert config == (
        "model:\n  default: gpt-4o-mini  # cheap\n  provider: relay\n"
        "providers:\n  relay:\n    base_url: https://relay.example/v1\n"
        "    key_env: RELAY_API_KEY\n"
        "fallback_providers:\n  - provider: openrouter\n    model: openai/gpt-4o-mini\n"
    )
    assert env == f"{ENV}RELAY_API_KEY={KEY}\n"
    assert switch.after.base_url is not None
    assert (switch.after.base_url.value, switch.after.model.value) == (RELAY, "gpt-4o-mini")
    assert switch.fallback is not None
    assert switch.fallback.model.value == "openai/gpt-4o-mini"
    assert KEY not in repr((switch.before, switch.after, switch.fallback, switch.notes))


def test_half_a_switch_is_finished(tmp_path: Path) -> None:
    """The classic: the relay is there, the provider was left, and its name is in the model."""
    home = write(
        tmp_path,
        "model: {provider: openrouter, default: openkey/gpt-4o-mini}\n"
        "providers:\n  openkey:\n    base_url: https://relay.example/v1\n"
        "    api_key_env: MY_KEY  # which Hermes ignores\n",
        f"{ENV}MY_KEY={KEY}\n",
    )

    assert plan.missing_key_variable(Installed(home), SwitchRequest("openkey")) is None
    switch, config, env = planned(home, SwitchRequest("openkey", fallback=False), None)

    assert "{provider: openkey, default: gpt-4o-mini}" in config
    assert "    key_env: MY_KEY  # which Hermes ignores\n" in config
    assert env == (home / ".env").read_text()
    assert switch.after.key is not None
    assert switch.after.key.state == "usable"


@pytest.mark.parametrize(
    ("config", "left"),
    [
        ("model: openai/gpt-4o\n", "model:\n  provider: relay\n  default: gpt-4o\n"),
        (
            "model:\n  provider: custom\n  base_url: https://old.example/v1\n"
            "  api_key: sk-old-123\n  default: m\n  api_mode: anthropic_messages\n"
            "  max_tokens: 5\n",
            "model:\n  provider: relay\n  default: m\n  max_tokens: 5\n",
        ),
        ("base_url: https://old.example/v1\nmodel: {default: m, provider: custom}\n",
         "model: {default: m, provider: relay}\n"),
    ],
)  # fmt: skip
def test_nothing_of_the_old_one_is_left(tmp_path: Path, config: str, left: str) -> None:
    """Settings of the old provider are removed from `model:`; the others are kept."""
    wish = NEW._replace(fallback=False, model=None if "/gpt" not in config else "gpt-4o")
    _, after, _ = planned(write(tmp_path, config), wish)

    assert after.startswith(left)


def test_the_old_address_goes_with_the_fallback(tmp_path: Path) -> None:
    """A provider that stood in `model:` alone is written out in the chain."""
    home = write(
        tmp_path,
        "model:\n  provider: custom\n  base_url: https://old.example/v1\n"
        "  api_key: sk-old-12345678\n  default: m\n",
    )
    switch, config, _ = planned(home)

    assert switch.fallback is not None
    assert switch.fallback.base_url is not None
    assert switch.fallback.base_url.value == "https://old.example/v1"
    assert "base_url: https://old.example/v1\n    api_key: sk-old-12345678\n" in config


def test_chains_that_are_there(tmp_path: Path) -> None:
    """An entry is added at the end; one of the new provider is replaced; the same is not added."""
    kept = "fallback_providers:\n- {provider: deepseek, model: d}\n"
    _, added, _ = planned(write(tmp_path, ROUTER + kept))
    same = "fallback_providers:\n- {provider: relay, model: gpt-4o-mini}\n"
    _, replaced, _ = planned(write(tmp_path, ROUTER + same))
    there = "fallback_providers:\n- {provider: openrouter, model: openai/gpt-4o-mini}\n"
    switch, unchanged, _ = planned(write(tmp_path, ROUTER + there))
    shape, odd, _ = planned(write(tmp_path, ROUTER + "fallback_providers: openrouter\n"))

    assert "- {provider: deepseek, model: d}\n- provider: openrouter\n" in added
    assert "- {provider: openrouter, model: openai/gpt-4o-mini}\n" in replaced
    assert unchanged.count("provider: openrouter") == 1
    assert "already" in " ".join(switch.notes)
    assert odd.count("fallback_providers: openrouter\n") == 1
    assert "not a list" in " ".join(shape.notes)


def test_built_in(tmp_path: Path) -> None:
    """A provider that Hermes knows needs no entry; its key has its own variable."""
    home = write(tmp_path)
    wish = SwitchRequest("deepseek", model="deepseek-chat")

    assert plan.missing_key_variable(Installed(home), wish) == "DEEPSEEK_API_KEY"
    switch, config, env = planned(home, wish)

    assert "providers:\n  deepseek" not in config
    assert env.endswith(f"DEEPSEEK_API_KEY={KEY}\n")
    assert switch.after.base_url is not None
    assert switch.after.base_url.value == "https://api.deepseek.com/v1"


@pytest.mark.parametrize("config", ["", "model: {provider: openrouter, base_url: ''}\n"])
@pytest.mark.parametrize("name", ["deepseek", "zai", "openrouter", "gemini"])
def test_the_address_is_shown(tmp_path: Path, name: str, config: str) -> None:
    """Of each provider that Hermes has built in, also if an empty address is set."""
    wish = SwitchRequest(name, model="a-model", fallback=False)
    switch, *_ = planned(write(tmp_path, config, "DEEPSEEK_BASE_URL=\n"), wish)

    lines = [line.text.strip() for line in provider_switch.plan_lines(switch, tested=True)]

    assert lines[lines.index(f"to       {name}  a-model") + 1].startswith("https://")
    assert not [line for line in lines if line.startswith(",") or "built in in" in line]


def test_back_to_openrouter(tmp_path: Path) -> None:
    """Its models have a vendor before them, which nobody can guess."""
    home = write(tmp_path, f"model: {{provider: relay, default: m}}\nproviders:\n"
                 f"  relay: {{base_url: '{RELAY}', api_key: {KEY}}}\n")  # fmt: skip

    assert (
        plan.missing_key_variable(Installed(home), SwitchRequest("openrouter", model="a/m")) is None
    )
    with pytest.raises(Trouble, match="--model"):
        planned(home, SwitchRequest("openrouter"), None)
    switch, config, _ = planned(home, SwitchRequest("openrouter", model="a/m"), None)

    assert "provider: openrouter, default: a/m" in config
    assert switch.fallback is not None
    assert switch.fallback.requested.value == "relay"


@pytest.mark.parametrize(
    ("config", "name", "example"),
    [
        (ROUTER, "deepseek", "deepseek-v4-pro"),
        (ROUTER, "anthropic", "claude-fable-5"),
        ("model: {provider: deepseek, default: deepseek-chat}\n", "zai", "glm-5.2"),
        (f"{ROUTER}providers: {{relay: {{base_url: '{RELAY}'}}}}\n", "relay", "gpt-4o-mini"),
        (
            "model: {provider: deepseek, default: deepseek-chat}\n"
            f"providers: {{relay: {{base_url: '{RELAY}', models: [big, small]}}}}\n",
            "relay",
            "big",
        ),
        (
            "model: {provider: huggingface, default: moonshotai/Kimi-K2.5}\n",
            "openrouter",
            "z-ai/glm-5.2",
        ),
    ],
)
def test_a_model_that_the_provider_may_not_serve(
    tmp_path: Path, config: str, name: str, example: str
) -> None:
    """The current model is kept only if the new provider is known to serve it."""
    home = write(tmp_path, config)
    with pytest.raises(Trouble, match=f"may not serve .* --model {example}$"):
        planned(home, SwitchRequest(name))

    switch, _, _ = planned(home, SwitchRequest(name, model=example))
    assert switch.after.model.value == example


@pytest.mark.parametrize("models", ["models: [big, m]", "default_model: m", "name: Relay"])
def test_a_model_that_the_provider_serves(tmp_path: Path, models: str) -> None:
    """A listed model is kept; if no list exists, a note says that it could not be checked."""
    config = "model: {provider: custom, base_url: 'http://127.0.0.1:1/v1', default: m}\n"
    more = f"providers: {{relay: {{base_url: '{RELAY}', {models}}}}}\n"
    switch, _, _ = planned(write(tmp_path, config + more), SwitchRequest("relay", fallback=False))

    assert switch.after.model.value == "m"
    assert ("Could not check" in " ".join(switch.notes)) is ("name" in models)


def test_models_of_openrouter_itself(tmp_path: Path) -> None:
    """`openrouter/auto` is a model, not a model with the prefix of its provider."""
    switch, _, _ = planned(write(tmp_path), SwitchRequest("openrouter", model="openrouter/auto"))
    assert switch.after.model.value == "openrouter/auto"


def test_an_entry_is_changed_as_little_as_possible(tmp_path: Path) -> None:
    """Address, variable and protocol where they stand; a switched-off entry is switched on."""
    home = write(
        tmp_path,
        ROUTER + "providers:\n  relay:\n    url: https://old.example/v1  # moved\n"
        "    api_key: sk-old-12345678\n    enabled: false\n    default_model: big\n",
    )
    wish = SwitchRequest("Relay", RELAY, "OTHER_KEY", api_mode="anthropic_messages", fallback=False)
    switch, config, _ = planned(home, wish)

    assert f"    url: {RELAY}  # moved\n    enabled: true\n    default_model: big\n" in config
    assert "    key_env: OTHER_KEY\n" in config
    assert "api_key:" not in config
    assert switch.after.model.value == "big"
    assert switch.after.api_mode is not None
    assert switch.after.api_mode.value == "anthropic_messages"


def test_the_older_list(tmp_path: Path) -> None:
    """Entries of `custom_providers` are found, too."""
    more = f"custom_providers:\n- name: Relay\n  base_url: {RELAY}\n  api_key_env: MY_KEY\n"
    home = write(tmp_path, ROUTER + more, f"{ENV}MY_KEY={KEY}\n")
    switch, config, _ = planned(home, SwitchRequest("relay", model="m"), None)

    assert config.count(more) == 1
    assert switch.after.key is not None
    assert switch.after.key.name == "MY_KEY"


def test_local(tmp_path: Path) -> None:
    """A server on this machine needs no key."""
    home = write(tmp_path)
    wish = SwitchRequest("here", "http://127.0.0.1:8000/v1", model="m")

    assert plan.missing_key_variable(Installed(home), wish) is None
    _, config, env = planned(home, wish, None)
    assert "key_env" not in config
    assert env == ENV


def test_twice_is_once(tmp_path: Path) -> None:
    """What is so already is left alone."""
    home = write(tmp_path)
    _, config, env = planned(home)
    write(home, config, env)

    switch, again, _ = planned(home, NEW, None)

    assert (switch.steps, again) == ((), config)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (SwitchRequest("nosuch"), "--base-url"),
        (SwitchRequest("auto", RELAY), "cannot be the name"),
        (SwitchRequest("a b/c", RELAY), "cannot be the name"),
        (SwitchRequest("openrouter", RELAY), "built into Hermes"),
        (SwitchRequest("nous"), "needs more than a key"),
        (SwitchRequest("copilot"), "needs more than a key"),
        (SwitchRequest("deepseek", key_env="MY_KEY"), "DEEPSEEK_API_KEY"),
        (SwitchRequest("relay", "https://user:word@relay.example/v1"), "--base-url needs"),
        (SwitchRequest("relay", "https://relay.example/v1?key=x"), "--base-url needs"),
        (SwitchRequest("relay", "relay.example"), "--base-url needs"),
        (SwitchRequest("relay", "https://[relay].example/v1"), "--base-url needs"),
        (SwitchRequest("relay", RELAY, "PATH"), "--key-env needs"),
        (SwitchRequest("relay", RELAY, "sk-canary-123"), "--key-env needs"),
        (SwitchRequest("relay", RELAY, api_mode="telepathy"), "Unknown --api-mode"),
    ],
)
def test_nonsense(tmp_path: Path, wish: SwitchRequest, words: str) -> None:
    """Each is refused with what to say instead."""
    with pytest.raises(Trouble, match=words):
        planned(write(tmp_path), wish)


@pytest.mark.parametrize(
    "more", ["", "providers: {openai: {base_url: 'https://api.openai.com/v1'}}\n"]
)
def test_a_vendors_key_goes_to_no_stranger(tmp_path: Path, more: str) -> None:
    """Unless its variable is named: the name of a relay alone is no consent."""
    home = write(tmp_path, ROUTER + more, f"{ENV}OPENAI_API_KEY=sk-proj-0123456789abcdef\n")
    wish = SwitchRequest("openai", RELAY, model="gpt-4o")
    with pytest.raises(Trouble, match=r"for openai.com, and would be sent to relay.example"):
        planned(home, wish, None)

    switch, _, _ = planned(home, wish._replace(key_env="OPENAI_API_KEY"), None)
    assert switch.after.key is not None
    assert switch.after.key.name == "OPENAI_API_KEY"
    planned(home, wish._replace(base_url="https://eu.api.openai.com/v1"), None)


def test_what_counts_first_is_named(tmp_path: Path) -> None:
    """Where Hermes would go by something else, nothing is begun."""
    home = write(tmp_path, env=f"{ENV}HERMES_INFERENCE_PROVIDER=openrouter\n")
    with pytest.raises(CannotFix, match="HERMES_INFERENCE_PROVIDER"):
        planned(home, version="0.14.0")
    planned(home, version="0.15.0")

    write(home)
    entry = {"source": "manual", "label": "old", "access_token": "sk-old-12345678"}
    put(home / "auth.json", json.dumps({"credential_pool": {"custom:relay": [entry]}}))
    with pytest.raises(CannotFix, match="old in auth"):
        planned(home)


def test_refused(tmp_path: Path) -> None:
    """Managed homes, and files that do not parse."""
    home = write(tmp_path / "managed")
    put(home / ".managed", "nix\n")
    with pytest.raises(CannotFix, match="managed"):
        planned(home)
    with pytest.raises(CannotFix, match="repair that first"):
        planned(write(tmp_path / "broken", "model: [\n"), NEW._replace(model="m"))


@pytest.mark.parametrize(("version", "restarts"), [("0.18.2", 1), ("0.19.0", 0)])
def test_a_running_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, restarts: int
) -> None:
    """It is restarted only where this release reads the chain at a start."""
    home = write(support.healthy(tmp_path / "home"))
    where = tmp_path / "venv"
    put(where / "bin" / "python", "", mode=0o755)
    installed = Installation(version, where, running=True)
    monkeypatch.setattr(HermesView, "installation", lambda _: installed)
    with fake_gateway.gateway(home):
        switch = plan.plan(Probes(Home(home)), NEW, KEY)

    assert [step.sentence().split()[0] for step in switch.steps[2:]] == ["restart"] * restarts


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openai", "Did you mean 'openai-api'"),
        ("openroutr", "Did you mean 'openrouter'"),
        ("groq", "--base-url https://api.groq.com/openai/v1"),
        ("nonsense", "neither Hermes nor config.yaml has it"),
    ],
)
def test_unknown_names(tmp_path: Path, name: str, words: str) -> None:
    """The name that was probably meant, or the address that Hermes needs."""
    with pytest.raises(Trouble, match=words):
        planned(write(tmp_path), SwitchRequest(name, model="x"))


def test_the_current_model_at_its_vendor(tmp_path: Path) -> None:
    """The suggestion is the current model as its vendor calls it."""
    home = write(tmp_path, "model: {provider: openrouter, default: anthropic/claude-sonnet-4.6}\n")
    with pytest.raises(Trouble, match=r"--model claude-sonnet-4-6$"):
        planned(home, SwitchRequest("anthropic"))


@pytest.mark.parametrize(("model", "strange"), [("gpt-4o", True), ("deepseek-reasoner", False)])
def test_a_model_of_another_vendor(tmp_path: Path, model: str, strange: bool) -> None:
    """A model that is named like another vendor's is doubted before the test request."""
    switch, *_ = planned(write(tmp_path), SwitchRequest("deepseek", model=model))

    assert any("probably does not serve" in note for note in switch.notes) is strange


def test_key_that_is_not_set_yet(tmp_path: Path) -> None:
    """The plan does not say that a key is in .env before it was typed."""
    switch, *_ = planned(write(tmp_path), SwitchRequest("deepseek", model="deepseek-chat"))
    lines = provider_switch.plan_lines(switch._replace(asked_for="DEEPSEEK_API_KEY"), tested=True)

    assert "DEEPSEEK_API_KEY (not set yet)" in str([*lines])
