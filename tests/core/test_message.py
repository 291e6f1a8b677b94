"""Texts for people, made from templates."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import datetime, timedelta

import pytest

from hermes_doctor.core.message import (
    Message,
    ago,
    as_document,
    clock,
    count,
    duration,
    listed,
    sentences,
    shorten,
    text,
)

SAID = text("{platform} rejects the app secret of {bots} bots", platform="QQ", bots=2)


def test_a_text_is_a_plain_string() -> None:
    """It can be compared, searched and written as JSON like any string."""
    assert SAID == "QQ rejects the app secret of 2 bots"
    assert SAID.startswith("QQ")
    assert json.dumps([SAID]) == '["QQ rejects the app secret of 2 bots"]'
    assert SAID in {"QQ rejects the app secret of 2 bots"}


def test_a_text_knows_its_template_and_values() -> None:
    """So it can be translated and counted."""
    assert as_document(SAID) == {
        "template": "{platform} rejects the app secret of {bots} bots",
        "values": {"platform": "QQ", "bots": 2},
    }


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_knows_them_too(again: object) -> None:
    """Also a copy in another process."""
    assert callable(again)
    made = again(SAID)
    assert isinstance(made, Message)
    assert as_document(made) == as_document(SAID)
    assert made == SAID


def test_a_plain_string_is_its_own_template() -> None:
    """Plugins may give plain strings."""
    assert as_document("set ${NAME}") == {"template": "set ${{NAME}}", "values": {}}
    assert "set ${{NAME}}".format() == "set ${NAME}"


def test_a_value_with_braces_is_left_alone() -> None:
    """Only the template is parsed."""
    assert text("{name} is not filled in", name="${KEY}") == "${KEY} is not filled in"


def test_a_value_of_another_type_is_text_in_json() -> None:
    """Everything can be written as JSON."""
    assert as_document(text("{path}", path=ValueError("x")))["values"] == {"path": "x"}


def test_sentences_are_joined_with_all_their_values() -> None:
    """A name that is used twice for different things gets a number."""
    joined = sentences(
        text("{name} is not running.", name="QQ"),
        "",
        "Nobody restarts it.",
        text("Ask {name}.", name="me"),
    )

    assert joined == "QQ is not running. Nobody restarts it. Ask me."
    assert joined.template == "{name} is not running. Nobody restarts it. Ask {name_2}."
    assert joined.values == {"name": "QQ", "name_2": "me"}


def test_the_same_value_keeps_its_name() -> None:
    """A value that both sentences share is listed once."""
    joined = sentences(text("{name} failed.", name="QQ"), text("Restart {name}.", name="QQ"))

    assert joined.values == {"name": "QQ"}


def test_a_renamed_value_keeps_its_format() -> None:
    """Formats, conversions and literal braces survive."""
    joined = sentences(
        text("{n:.1f} s {{now}}.", n=1.25), text("{n:.2f} {n!r} {m} {{x}}.", n=2.25, m=3)
    )

    assert joined == "1.2 s {now}. 2.25 2.25 3 {x}."
    assert joined.template == "{n:.1f} s {{now}}. {n_2:.2f} {n_2!r} {m} {{x}}."


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 messages"), (1, "1 message"), (2, "2 messages"), (1234, "1,234 messages")],
)
def test_a_number_has_the_right_noun(number: int, said: str) -> None:
    """Singular for one only."""
    assert count(number, "message") == said


def test_an_irregular_plural() -> None:
    """The plural can be given."""
    assert count(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, ""),
        (1, "a"),
        (2, "a and b"),
        (3, "a, b and c"),
        (5, "a, b, c, d and 1 more"),
    ],
)
def test_a_list_of_names(number: int, said: str) -> None:
    """Long lists are cut, and say by how many."""
    assert listed("abcde"[:number], most=4) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0 s"),
        (0.4, "0 s"),
        (59, "59 s"),
        (59.6, "1 min"),
        (119, "1 min"),
        (3600, "1 h"),
        (6120, "1 h 42 min"),
        (86399, "23 h 59 min"),
        (86400, "1 d"),
        (273600, "3 d 4 h"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: float, said: str) -> None:
    """Seconds matter only below a minute."""
    assert duration(seconds) == said


@pytest.mark.usefixtures("utc")
def test_times_are_local_and_short() -> None:
    """The date is left out today, the year in the last months."""
    now = datetime(2026, 11, 16, 5, 55).astimezone()

    assert clock(now - timedelta(hours=1, minutes=42), now) == "04:13"
    assert clock(now - timedelta(days=8), now) == "Nov 8 05:55"
    assert clock(now - timedelta(days=400), now) == "2025-10-12 05:55"
    assert ago(now - timedelta(minutes=102), now) == "04:13 (1 h 42 min ago)"
    assert ago(now + timedelta(minutes=5), now) == "06:00"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("short", "short"),
        ("exactly twenty chars", "exactly twenty chars"),
        ("cut in the middle of words", "cut in the middle…"),
        ("ends at a word, here: more", "ends at a word…"),
        ("x" * 30, "x" * 19 + "…"),
    ],
)
def test_a_quote_ends_with_a_whole_word(said: str, expected: str) -> None:
    """An ellipsis shows that it goes on."""
    assert shorten(said, 20) == expected
