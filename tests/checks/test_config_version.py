"""CFG-VERSION-OLD: what the next update would take."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, recorded_homes, support

ID = "config-version"
CASES = {
    "no number and a token": ("0.16.0", "model: x\n", "ANTHROPIC_TOKEN=abcdefgh\n", "warning"),
    "an old number and a token": (
        "0.13.0",
        "_config_version: 8\nmodel: x\n",
        "ANTHROPIC_TOKEN=abcdefgh\n",
        "warning",
    ),
    "no number and comments": ("0.19.0", "model: x  # mine\n", "", "info"),
    "an old list": ("0.19.0", "_config_version: 11\ncustom_providers: []\n", "", "info"),
    "of a newer one": ("0.13.0", "_config_version: 33\nmodel: x\n", "", "info"),
}


@pytest.mark.parametrize("case", CASES)
def test_found(home: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """Only a variable that would be erased is a warning."""
    version, config, env, severity = CASES[case]
    config_homes.Scene(monkeypatch).release(version)

    _, findings = config_homes.look(config_homes.write(home, config, env), ID)

    told = [("CFG-VERSION-OLD", severity, "config.yaml")]
    assert [one[:3] for one in config_homes.told(findings)] == told


@pytest.mark.parametrize(
    ("version", "config", "env"),
    [
        ("0.13.0", "model: x  # mine\n", "ANTHROPIC_TOKEN=abcdefgh\n"),
        ("0.19.0", "model: x\n", ""),
        ("0.19.0", "_config_version: 33\nmodel: x  # mine\n", "ANTHROPIC_TOKEN=abcdefgh\n"),
    ],
)
def test_silent(
    home: Path, monkeypatch: pytest.MonkeyPatch, version: str, config: str, env: str
) -> None:
    """Nothing would be lost: before 0.16.0 no number is as good as the newest."""
    config_homes.Scene(monkeypatch).release(version)

    assert config_homes.look(config_homes.write(home, config, env), ID)[1] == []


def test_a_newer_one_names_the_installed_release(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.13.0 is installed: the title says so, and names no other release."""
    config_homes.Scene(monkeypatch).release("0.13.0")

    _, [finding] = config_homes.look(
        config_homes.write(home, "_config_version: 33\nmodel: x\n", ""), ID
    )

    assert finding.title == "config.yaml is from a newer Hermes than 0.13.0"


@pytest.mark.sampled
@pytest.mark.parametrize("variant", ["plain", "interrupted"])
@pytest.mark.parametrize("version", recorded_homes.VERSIONS)
def test_recorded_homes(tmp_path: Path, version: str, variant: str) -> None:
    """The configuration of a release is not called old by it; that of 0.19.0 is information."""
    home = recorded_homes.Source(version, "recorded", tmp_path).home(variant)

    checked = support.check(home)

    assert "_config_version" in (home / "config.yaml").read_text()
    found = [one for one in checked.json["findings"] if one["code"] == "CFG-VERSION-OLD"]
    assert {one["severity"] for one in found} <= ({"info"} if variant == "interrupted" else set())


def test_no_release(home: Path) -> None:
    """Without a release there is nothing to compare with."""
    result, findings = config_homes.look(config_homes.write(home, "model: x  # mine\n"), ID)

    assert (result.status.value, findings) == ("skipped", [])


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
