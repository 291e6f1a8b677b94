"""Find which of many literals a text contains."""

from __future__ import annotations

import pytest

from hermes_doctor.diagnosis.plugins.tables.patterns import needed_literals, small_literals
from hermes_doctor.diagnosis.plugins.word_index import WORD, WordIndex

LITERALS = (
    "is locked", f"{WORD}econnreset", "errno", "no such table: ", "磁盘已满", f"{WORD}401", ": x",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("database is locked", ["is locked"]),
        ("database is lockedx", ["is locked"]),
        ("this is locked", ["is locked"]),
        ("read econnreset", ["econnreset"]),
        ("[errno 3]", ["errno"]),
        ("no such table: x", ["no such table: ", ": x"]),
        ("错误：磁盘已满", ["磁盘已满"]),
        ("http 401", ["401"]),
        ("fine", []),
        ("", []),
    ],
)
def test_what_a_text_contains(text: str, found: list[str]) -> None:
    """Literals are found wherever they are in a text."""
    index = WordIndex((one, one.removeprefix(WORD)) for one in LITERALS)

    assert sorted(value for _, value in index.find(text)) == sorted(found)


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        (r"(?i)\bDatabase is locked\b", ("\bdatabase is locked",)),
        (r"\b(?:food|barn) or\b", ("\bbarn", "\bfood")),
        (r"(?:cold|warm)water pipe", ("water pipe",)),
        (r"error \b401\b", ("\b401",)),
        (r"no (?:such|sound)", ("no sound", "no such")),
        (r"a\d", ()),
    ],
)
def test_the_literals_of_a_pattern(pattern: str, literals: tuple[str, ...]) -> None:
    """Every match contains one of them; the quickest to look up are chosen."""
    found = small_literals(pattern)

    assert found == literals
    assert all(needed_literals(pattern))
