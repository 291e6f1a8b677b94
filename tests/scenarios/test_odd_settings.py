"""Whatever the settings hold, the checks of provider, model and key have an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.hermes.settings import env_file
from tests.helpers import settings_verdicts
from tests.helpers.provider_mistakes import MISTAKES, Mistake
from tests.helpers.real import made_homes
from tests.helpers.setting_inputs import world

CODES = {one.code for one in MISTAKES.values()}
ODD = [
    "model: {default: 4.5, provider: 7}\n",
    "model: {default: {a: b}}\nproviders: [1]\ncustom_providers: {a: 1}\n",
    "model: [x]\nproviders: {1: {base_url: x}, a: null}\nfallback_providers: {a: {b: c}}\n",
    "a: &a {b: *a}\nmodel: *a\n",
    "model: {provider: 'custom:', base_url: 'http://[::1', default: x}\n",
    "model: {provider: x, providers: 5, fallback: {a: b}}\nfallback_model: 7\napi_key: [1]\n",
    "providers: &p {x: &x {base_url: 'https://x.example', key_env: 5, models: {a: 1, 2: 3}}}\n"
    "custom_providers: [*x, 1, {name: 5}, {name: y}]\nmodel: {provider: x, default: x/y}\n",
    "fallback_providers: [1, x, {provider: 5, model: [a]}, null, {model: m}]\nmodel: ''\n",
    "model: {default: '/', provider: '  '}\nproviders: {'': {base_url: ' '}, ' ': {url: a}}\n",
    "model: {provider: x, default: x/y}\nproviders: {x: {base_url: '${', key_env: '$'}}\n",
    "model: {context_length: {a: 1}, provider: openrouter, default: m}\n",
    "model: {context_length: .inf, provider: openrouter, default: m}\n",
    "custom_providers: '[]'\nproviders: text\nmodel: {custom_providers: [], providers: {a: 1}}\n",
]


@pytest.mark.parametrize("version", settings_verdicts.VERSIONS)
@pytest.mark.parametrize("text", ODD)
def test_odd(tmp_path: Path, text: str, version: str) -> None:
    """No check crashes over it."""
    home = settings_verdicts.write(tmp_path / "home", Mistake("", text))
    settings_verdicts.look(home, version, *CODES)


@pytest.mark.parametrize("seed", range(20))
def test_made_up(tmp_path: Path, seed: int) -> None:
    """Nor over homes that chance has made, and no key of theirs is shown."""
    made = made_homes.make(seed)
    made.write(tmp_path / "home")
    for version in settings_verdicts.VERSIONS:
        for finding in settings_verdicts.look(tmp_path / "home", version, *CODES):
            assert finding.evidence and finding.detail
            for line in (made.env or "").splitlines():
                name, _, value = line.partition("=")
                secret = name.strip().endswith(("_KEY", "_TOKEN")) and len(value) > 8
                assert not secret or value.strip() not in str(finding._replace(data={}))


@pytest.mark.parametrize(
    "config",
    [
        "B0: 0123456789\n" + "".join(f"B{n}: ${{B{n - 1}}}${{B{n - 1}}}\n" for n in range(1, 40)),
        "A: " + "x" * 100_000 + "\nmodel:\n  base_url: " + "${A}" * 100_000 + "\n",
    ],
)
def test_references_that_multiply_each_other(config: str) -> None:
    """They are refused before they need memory."""
    with pytest.raises(CouldNotLook, match=r"config.yaml: its variables expand to more than"):
        _ = world(config).config


def test_too_many_lines(home: Path) -> None:
    """A .env that would take seconds to parse is not read."""
    (home / ".env").write_text("A=1\n" * 20_001)

    with pytest.raises(CouldNotLook, match=r".env: too many lines to read \(more than 20,000\)"):
        env_file.read(Home(home))
