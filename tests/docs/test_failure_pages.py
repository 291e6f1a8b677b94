"""The pages that `hermes-doctor explain` prints are short, complete and in plain English."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers.each import each
from tests.helpers.plain_words import refused_words

PAGES = sorted((Path(__file__).parents[2] / "docs" / "failures").glob("*.md"))
HEADINGS = ["## What it is", "## How it shows", "## What the fix does", "## By hand"]
LONGEST_SYMPTOM = 60
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"^ {4}.*$|`[^`]*`", re.MULTILINE)

on_every_page = each(PAGES)


def refused(text: str) -> list[str]:
    """Return the refused words of a text; commands, settings and quoted logs do not matter."""
    prose = _QUOTED.sub(" ` ", _FENCED.sub("\n\n", text))
    paragraphs = re.split(r"\n\s*\n", prose)
    return [word for one in paragraphs for word in refused_words(" ".join(one.split()))]


def test_there_are_pages() -> None:
    """The tests below prove nothing without pages."""
    assert len(PAGES) > 200


@on_every_page
def test_symptom(page: Path) -> None:
    """The first line has the code and a short symptom without a full stop."""
    first = page.read_text(encoding="utf-8").splitlines()[0]

    match = re.fullmatch(rf"# {page.stem}: (\S.*[^.\s])", first)

    assert match
    assert len(match[1]) <= LONGEST_SYMPTOM


@on_every_page
def test_headings(page: Path) -> None:
    """Every page has the same four sections, and none is empty."""
    text = _FENCED.sub("```", page.read_text(encoding="utf-8"))

    assert re.findall(r"^#{2,} .*$", text, re.MULTILINE) == HEADINGS
    assert all(part.strip() for part in re.split(r"^## .*$", text, flags=re.MULTILINE))


@on_every_page
def test_words(page: Path) -> None:
    """No page has a refused word."""
    assert refused(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It is\nno number.", ["is no"]),
        ("## What it is\n\nNo variable is `no`.", []),
        ("Written Anew, in vain.", ["Anew", "in vain"]),
        ("It is no longer running; the merest renewal is not refused.", []),
        ("The log has `nothing at all`.", []),
        ("The adapter stops for good. It has a code of its\nown.", ["for good", "of its own"]),
        ("For good reasons it reads files of its own gateway.", []),
        ("    echo at all", []),
        ("```sh\necho at all\n```", []),
    ],
)
def test_refused(text: str, found: list[str]) -> None:
    """Words are found across lines and in capitals, but not in code."""
    assert refused(text) == found
