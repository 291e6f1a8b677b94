"""CFG-DUP-KEY: which line counts, and whether it matters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers import config_homes

ID = "config-duplicates"
CASES = {
    "at the top": ("model: a\nagent: {}\nmodel: b\n", ("warning", "model", "config.yaml:1")),
    "below": (
        "agent:\n  max_turns: 1\n  max_turns: 2\n",
        ("warning", "agent.max_turns", "config.yaml:2"),
    ),
    "the same": ("a: [1, {b: c}]\na: [1, {b: c}]\n", ("info", "a", "config.yaml:1")),
    "not quite": ("a: [1, {b: c}]\na: [1, {b: d}]\n", ("warning", "a", "config.yaml:1")),
    "in braces": ("x: {a: 1, a: '1'}\n", ("warning", "x.a", "config.yaml:1")),
}


@pytest.mark.parametrize("case", CASES)
def test_found(home: Path, case: str) -> None:
    """A key that stands twice in one block is named with its lines."""
    text, (severity, subject, where) = CASES[case]

    _, findings = config_homes.look(config_homes.write(home, text), ID)

    assert config_homes.told(findings) == [("CFG-DUP-KEY", severity, subject, where, None)]


def test_which_line_counts(home: Path) -> None:
    """The last one."""
    _, [finding] = config_homes.look(config_homes.write(home, "a: 1\na: 2\nb: 1\na: 3\n"), ID)

    assert "Hermes uses only line 4." in finding.detail
    assert [one.what for one in finding.evidence] == ["ignored", "ignored", "used"]


def test_other_blocks(home: Path) -> None:
    """The same name in two blocks, and merges, are nothing."""
    text = "a: &x {n: 1}\nb:\n  <<: *x\n  n: 2\nc: {n: 3}\n"

    assert config_homes.look(config_homes.write(home, text), ID)[1] == []


def test_a_name_like_a_secret(home: Path) -> None:
    """It is not shown."""
    _, [finding] = config_homes.look(
        config_homes.write(home, "zQcanaryKx9pLm2Tw: 1\nzQcanaryKx9pLm2Tw: 2\n"), ID
    )

    assert re.search(r"\(17-character \w+\)", finding.subject)


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
