"""Tests of the exceptions that carry a text for people."""

from __future__ import annotations

from hermes_doctor.core.message import Message
from hermes_doctor.core.model import CannotFix, CouldNotLook, Explained, Skip, Trouble
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
