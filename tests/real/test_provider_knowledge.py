"""What is known of providers and of access, held against the releases themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.hermes.knowledge import parse_release as numbers
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from hermes_doctor.hermes.settings.misspellings import vendor_of
from tests.conftest import need_release
from tools import lessons, real_home, releases

pytestmark = pytest.mark.real
NEWEST = releases.ALL[-1]


@pytest.mark.parametrize("version", ["0.13.0", NEWEST])
def test_providers(version: str) -> None:
    """The release says today what the file says of it."""
    need_release(version)
    here = numbers(version)
    known: dict[str, dict[str, Any]] = {
        topic: {
            name: form["is"]
            for name, forms in entries.items()
            for form in forms
            if numbers(form["from"]) <= here <= numbers(form["to"])
        }
        for topic, entries in load_knowledge("resolution").items()
    }

    assert lessons.learn(version, "resolution") == {"resolution": known}


NAMES = "gpt-5-mini deepseek-chat claude-sonnet-4-5 qwen3.7-max llama3 step-3 my-model o3 hermes-4"
BARE = """
import json, sys
from hermes_cli.model_normalize import detect_vendor, normalize_model_for_provider
from run_agent import AIAgent

names = {names!r}.split()
agent = AIAgent(model="gpt-5-mini", provider="openrouter", api_key="sk-or-v1-0123456789abcdef",
                base_url="http://127.0.0.1:9/v1", quiet_mode=True, enabled_toolsets=[],
                skip_context_files=True, skip_memory=True)
print("ANSWER", json.dumps([[detect_vendor(name) for name in names], agent.model,
      normalize_model_for_provider("gpt-5-mini", "openrouter")]))
"""


@pytest.mark.parametrize(
    "version", ["0.13.0", pytest.param("0.16.0", marks=pytest.mark.wide), NEWEST]
)
def test_names_without_a_vendor(version: str, tmp_path: Path) -> None:
    """OpenRouter gets the main model as it is written; Hermes adds a vendor only in fallbacks."""
    need_release(version)

    said = real_home.run(version, tmp_path, BARE.format(names=NAMES))

    answer = said.rpartition("ANSWER")[2].splitlines()[0]
    vendors, main, fallback = json.loads(answer)
    assert vendors == [vendor_of(name) for name in NAMES.split()]
    assert (main, fallback) == ("gpt-5-mini", "openai/gpt-5-mini")


@pytest.mark.wide
def test_access() -> None:
    """The newest release says today what the file says of it."""
    need_release(NEWEST)
    known = {
        name: {key: value for key, value in form.items() if key != "releases"}
        for name, forms in load_knowledge("access").items()
        for form in forms
        if NEWEST in form["releases"]
    }

    assert lessons.learn(NEWEST, "access") == {"access": known}


def test_every_release_is_known() -> None:
    """A release that is installed for tests is one that the resolver has rules for."""
    assert set(load_knowledge("resolution")["releases"]) >= set(releases.ALL)
