"""provider-left: messages that go to OpenRouter although another provider is meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_doctor.hermes.settings.misspellings import openrouter_name
from tests.helpers import settings_verdicts, support
from tests.helpers.provider_mistakes import MISTAKES, URL

ADDRESS = "the address of a relay, but OpenRouter"
CODES = ("CFG-PROVIDER-LEFT", "CFG-MODEL", "CFG-BASE-URL")


@pytest.mark.parametrize("version", settings_verdicts.VERSIONS)
def test_the_configured_provider_is_offered_not_custom(tmp_path: Path, version: str) -> None:
    """One finding, which names the provider that has this address."""
    home = settings_verdicts.write(tmp_path / "home", MISTAKES[ADDRESS])

    [finding] = settings_verdicts.look(home, version, *CODES)

    assert 'Did you mean "provider: openkey"?' in finding.detail
    assert "custom" not in finding.detail + finding.next
    assert [one.what for one in finding.evidence] == [
        f"ignored: {URL}",
        "provider: openrouter",
        "openkey is set up",
    ]
    assert finding.data == {"provider": "openkey", "model": "gpt-4o-mini"}


def test_an_address_without_an_entry(tmp_path: Path) -> None:
    """No configured provider has it, so the old advice stays."""
    home = settings_verdicts.write(tmp_path / "home", MISTAKES["OpenRouter with an address"])

    assert [one.code for one in settings_verdicts.look(home, "0.19.0", *CODES)] == ["CFG-BASE-URL"]


def test_two_relays_that_could_serve_it(tmp_path: Path) -> None:
    """Which one is meant is not known, so the name at OpenRouter is offered."""
    mistake = MISTAKES["a relay, but OpenRouter and a bare name"]
    config = mistake.config + "  other:\n    base_url: https://other.example/v1\n"
    home = settings_verdicts.write(tmp_path / "home", replace(mistake, config=config))

    [finding] = settings_verdicts.look(home, "0.19.0", *CODES)

    assert (finding.code, finding.fix) == ("CFG-MODEL", "set-model")
    assert 'Did you mean "openai/gpt-4o-mini"?' in finding.detail


def test_the_relay_that_lists_the_model(tmp_path: Path) -> None:
    """Of two relays, the one whose entry names the model is meant."""
    mistake = MISTAKES["a relay, but OpenRouter and a bare name"]
    config = (
        mistake.config
        + "  other:\n    base_url: https://other.example/v1\n    models: [gpt-4o-mini, gpt-4o]\n"
    )
    home = settings_verdicts.write(tmp_path / "home", replace(mistake, config=config))

    [finding] = settings_verdicts.look(home, "0.19.0", *CODES)

    assert finding.data["provider"] == "other"


@pytest.mark.parametrize(
    ("model", "name", "sure"),
    [
        ("gpt-5-mini", "openai/gpt-5-mini", True),
        ("deepseek-chat", "deepseek/deepseek-chat", True),
        ("claude-sonnet-4-5", "anthropic/claude-sonnet-4.5", True),
        ("claude-sonnet-4-20250514", "anthropic/claude-sonnet-4-20250514", False),
        ("claude-3-7-sonnet-latest", "anthropic/claude-3.7-sonnet-latest", False),
        ("llama3", "meta-llama/llama3", False),
        ("qwen3.7-max", "qwen/qwen3.7-max", False),
        ("my-model", "", False),
        ("openai/gpt-5", "", False),
    ],
)
def test_the_likely_name(model: str, name: str, sure: bool) -> None:
    """A name that may have another spelling at OpenRouter is only a question."""
    assert openrouter_name(model) == (name, sure)


@pytest.mark.parametrize(
    ("name", "severity", "options"),
    [
        (
            "a relay set only by variables",
            "error",
            " --key-env OPENAI_API_KEY --model thinker --no-fallback",
        ),
        (
            "a relay set only by variables, and a provider",
            "error",
            " --key-env OPENAI_API_KEY --model glm-5.2 --no-fallback",
        ),
        (
            "a relay set only by a variable, and a key of OpenRouter",
            "warning",
            " --model glm-5.2",
        ),
    ],
)
def test_a_relay_set_only_by_variables(
    tmp_path: Path, name: str, severity: str, options: str
) -> None:
    """It says where messages go, and offers the switch with the address and the key."""
    home = settings_verdicts.write(tmp_path / "home", MISTAKES[name])

    [finding] = settings_verdicts.look(home, "0.19.0", *CODES, "ENV-IGNORED")

    assert (finding.code, finding.severity) == ("CFG-PROVIDER-LEFT", severity)
    assert finding.title == "messages go to OpenRouter, not to OPENAI_BASE_URL"
    assert finding.evidence[0].what == f"ignored: {URL}"
    command, _ = finding.data["suggests"]
    switch = f"hermes-doctor switch-provider relay --base-url {URL}"
    assert command == switch + options


@pytest.mark.parametrize(
    ("config", "env", "model"),
    [
        ("{}\n", "OPENAI_MODEL=gpt-4o\n", " --model gpt-4o"),
        ("{}\n", "", " --model NAME"),
        ("model: {default: gpt-4o}\n", "", ""),
    ],
)
def test_the_switch_to_a_relay_is_not_refused(
    tmp_path: Path, config: str, env: str, model: str
) -> None:
    """The relay cannot serve a model by its name at OpenRouter, so the command names another."""
    mistake = MISTAKES["a relay set only by variables"]
    changed = replace(mistake, config=config, env=mistake.env + env)
    home = settings_verdicts.write(tmp_path / "home", changed)

    [finding] = settings_verdicts.look(home, "0.19.0", *CODES)

    options = f"{model} --no-fallback"
    command, _ = finding.data["suggests"]
    assert command.endswith(f" --key-env OPENAI_API_KEY{options}")
    if "NAME" not in model:
        done = support.doctor(*command.split()[1:], "--home", home)
        assert (done.code, "request" in done.out) == (0, True), done.err


def test_each_screen_shows_the_whole_command(tmp_path: Path) -> None:
    """What `check` prints as the next command, `fix` prints, too, with and without --apply."""
    mistake = MISTAKES["a relay set only by variables"]
    changed = replace(mistake, config="model: {default: thinker}\n")
    home = settings_verdicts.write(tmp_path / "home", changed)
    options = ("--home", home)

    shown = support.doctor("check", *options).out.splitlines()
    [command] = [
        line.strip().removeprefix("Next: ").split("  ")[0]
        for line in shown
        if "switch-provider relay --base-url" in line
    ]

    assert URL in command and "--key-env OPENAI_API_KEY" in command
    for words in ([], ["CFG-PROVIDER-LEFT"]):
        assert command in support.doctor("fix", *words, *options).out
        assert command in support.doctor("fix", *words, "--apply", "--yes", *options).out
    named = support.doctor("fix", "CFG-PROVIDER-LEFT", "--json", *options).json["repair"]["named"]
    assert named[0]["commands"] == [command]


def test_a_relay_by_variables_whose_address_has_a_secret(tmp_path: Path) -> None:
    """The command does not repeat what may be a secret."""
    mistake = MISTAKES["a relay set only by variables"]
    env = mistake.env.replace("https://", "https://user:canary@")
    home = settings_verdicts.write(tmp_path / "home", replace(mistake, env=env))

    [finding] = settings_verdicts.look(home, "0.19.0", *CODES)

    assert "canary" not in repr(finding)
    assert "--base-url ADDRESS" in finding.data["suggests"][0]
