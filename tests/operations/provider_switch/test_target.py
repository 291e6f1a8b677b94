"""Names of models: as a vendor calls them, and whose they are."""

from __future__ import annotations

import pytest

from hermes_doctor.operations.provider_switch.target import (
    TargetProvider,
    example_model,
    without_prefix,
)


@pytest.mark.parametrize(
    ("old", "name", "known", "example"),
    [
        ("anthropic/claude-sonnet-4.6", "anthropic", ["claude-fable-5"], "claude-sonnet-4-6"),
        ("deepseek/deepseek-chat:free", "deepseek", [], "deepseek-chat"),
        ("openai/gpt-4o", "deepseek", ["deepseek-chat"], "deepseek-chat"),
        ("openai/gpt-4o", "deepseek", [], "gpt-4o"),
    ],
)
def test_example(old: str, name: str, known: list[str], example: str) -> None:
    """The current model if it is the vendor's own, else one that the provider serves."""
    assert example_model(old, TargetProvider(name), known) == example


def test_prefix() -> None:
    """The name of the provider is dropped, except for OpenRouter's own models."""
    assert without_prefix("relay/gpt-4o", TargetProvider("relay")) == "gpt-4o"
    assert without_prefix("openrouter/auto", TargetProvider("openrouter")) == "openrouter/auto"
