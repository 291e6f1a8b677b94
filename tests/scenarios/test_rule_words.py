"""Check the words of the built-in log rules: short titles, whole sentences, plain English."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_causes import table_source
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from tests.helpers.each import each
from tests.helpers.plain_words import refused_words

FOLDER = builtin("checks") / "signatures"
FILES = sorted(path for path in FOLDER.glob("*.yaml") if path.name not in table_source.NAMES)
TEXTS = ("id", "severity", "title", "detail", "next", "ages_out")
LONGEST_TITLE, LONGEST_TEXT = 60, 200
PLACE = re.compile(r"\{\w+\}")
VALUE = "12345678"
"""A value of typical length for a {name}."""
PLATFORMS = load_knowledge("platforms")["platforms"].values()
NAMES = {"Hermes"} | {one["label"].split()[0] for one in PLATFORMS}
FIRST_WORD = re.compile(r"[\w.-]+")
by_file = each(FILES)


@functools.cache
def content(path: Path) -> dict[str, Any]:
    """Return what is in a file; several tests ask, and parsing takes long."""
    found: dict[str, Any] = yaml.load(path.read_bytes(), yaml.CSafeLoader)
    return found


def rules(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rules of a file, with the texts on one line."""
    defaults = content(path).get("defaults", {})
    for rule in content(path).get("rules", ()):
        said = {**defaults, **rule}
        yield {name: " ".join(said.get(name, "").split()) for name in TEXTS}


def because(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the codes that explain others, with their sentences."""
    for one in content(path).get("explanations", ()):
        several = one["because"]
        yield from several.items() if "cause" not in one else [(one["cause"], several)]


def shown(text: str) -> str:
    """Replace each {name} by a value of typical length."""
    return PLACE.sub(VALUE, text)


def test_every_file_is_checked() -> None:
    """The folder contains the rules and the explanations."""
    assert len(FILES) >= 43
    assert sum(1 for path in FILES for _ in rules(path)) > 300


@by_file
def test_refused_words(path: Path) -> None:
    """No text uses one of the refused words."""
    texts = [(rule["id"], rule[name]) for rule in rules(path) for name in TEXTS[2:]]
    texts += because(path)

    assert texts
    assert [one for one in texts if refused_words(one[1])] == []


@by_file
def test_titles(path: Path) -> None:
    """A title is short, without a capital except in names, and without a full stop."""
    titles = {rule["id"]: rule["title"] for rule in rules(path)}

    assert {id: title for id, title in titles.items() if len(shown(title)) > LONGEST_TITLE} == {}
    assert {id: title for id, title in titles.items() if starts_with_capital(title)} == {}
    assert {id: title for id, title in titles.items() if title.endswith(".")} == {}


def starts_with_capital(title: str) -> bool:
    """Whether a title starts with a capital that is not part of a name or an abbreviation."""
    found = FIRST_WORD.match(title)
    word = found[0] if found else ""
    return word[:1].isupper() and word not in NAMES and not re.search("[A-Z]", word[1:])


@pytest.mark.parametrize(
    ("title", "capital"),
    [
        ("The gateway stopped", True),
        ("A chat waits", True),
        ("Discord's connection ended", False),
        ("QQ rejects the app secret", False),
        ("{platform} is off", False),
        (".env is unreadable", False),
    ],
)
def test_a_capital_is_noticed(title: str, capital: bool) -> None:
    """Names and abbreviations may start a title, other words may not be capitalized."""
    assert starts_with_capital(title) is capital


@by_file
def test_details_and_next_steps(path: Path) -> None:
    """Details and next steps are short, whole sentences."""
    texts = {
        (rule["id"], name): rule[name]
        for rule in rules(path)
        for name in ("detail", "next")
        if rule[name]
    }

    assert {id: text for id, text in texts.items() if len(shown(text)) > LONGEST_TEXT} == {}
    assert {id: text for id, text in texts.items() if not text.endswith(".")} == {}


@by_file
def test_notes_do_not_report_a_silent_bot(path: Path) -> None:
    """A bot that gives no answer is at least a warning."""
    silent = re.compile("(?:no answer|is silent|not answer)", re.IGNORECASE)
    notes = [rule for rule in rules(path) if rule["severity"] == "info"]

    assert [one for one in notes if silent.search(one["title"] + one["detail"])] == []


def test_explanations_are_whole_sentences() -> None:
    """An explanation is one sentence that starts with a capital or a name."""
    texts = {text for _, text in because(FOLDER / "explanations.yaml")}

    assert {text for text in texts if not re.fullmatch(r"[^.]+(?:\.\w[^.]*)*\.", text)} == set()
    assert {text for text in texts if len(text) > LONGEST_TEXT} == set()
    assert {text for text in texts if text.split()[0] in ("It", "Its", "That", "This is")} == set()
