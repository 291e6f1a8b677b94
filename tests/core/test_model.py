"""Tests of the exceptions that carry a text for people, and of answers that are not known."""

from __future__ import annotations

import pytest

from hermes_doctor.core.message import Message
from hermes_doctor.core.model import CannotFix, CouldNotLook, Explained, Skip, Trouble, known_or
from tests.helpers.each import each

KINDS = (CannotFix, CouldNotLook, Skip, Trouble)


@each(KINDS)
def test_named_values_fill_the_template(kind: type[Explained]) -> None:
    """As `text` does, which also remembers the template."""
    error = kind("{file} is {what}", file="a{b}", what="gone")

    assert str(error) == "a{b} is gone"
    assert isinstance(error.args[0], Message)
    assert error.args[0].template == "{file} is {what}"


@each(KINDS)
def test_a_text_without_values_stays_as_it_is(kind: type[Explained]) -> None:
    """It may quote anything, braces included."""
    assert str(kind("{file} is {what}")) == "{file} is {what}"


def test_what_is_known() -> None:
    """An answer counts; without one there is something else, and other errors are not hidden."""

    def hidden() -> int:
        raise CouldNotLook("no right to read it")

    assert known_or(None, lambda: 3) == 3
    assert known_or(None, hidden) is None
    with pytest.raises(ZeroDivisionError):
        known_or(None, lambda: 1 // 0)
