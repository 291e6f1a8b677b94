"""Error numbers and texts of three systems."""

from __future__ import annotations

import errno
import os
import socket
import sys

import pytest

from hermes_doctor.diagnosis.plugins.log_causes.errno_table import ERRORS, SPELLINGS, names_of


@pytest.mark.skipif(sys.platform != "linux", reason="the numbers of Linux")
@pytest.mark.parametrize("name", sorted(ERRORS))
def test_numbers_and_texts_of_linux(name: str) -> None:
    """They are those of this system; EINVAL has too common a text."""
    number = getattr(errno, name, None) or getattr(socket, name, None)
    if number is None:
        return  # an error of another system
    assert ERRORS[name].linux == number
    if number > 0 and name != "EINVAL":
        assert os.strerror(number).lower() in ERRORS[name].texts


@pytest.mark.parametrize(
    ("number", "windows", "name"),
    [
        (98, False, "EADDRINUSE"),
        (48, False, "EADDRINUSE"),
        (61, False, "ECONNREFUSED"),
        (54, False, "ECONNRESET"),
        (10048, False, "EADDRINUSE"),
        (10061, True, "ECONNREFUSED"),
        (5, True, "EACCES"),
        (5, False, "EIO"),
        (112, True, "ENOSPC"),
        (-3, False, "EAI_AGAIN"),
    ],
)
def test_a_number(number: int, windows: bool, name: str) -> None:
    """A number means the same on one system; of two systems, Linux comes first."""
    assert names_of(number, windows)[0] == name


def test_numbers_that_say_nothing() -> None:
    """Zero is no error, and unknown numbers have no name."""
    assert names_of(0) == names_of(0, True) == names_of(9999) == ()


def test_texts_are_in_small_letters() -> None:
    """They are searched in texts in small letters."""
    texts = [text for error in ERRORS.values() for text in error.texts]

    assert texts == [text.lower() for text in texts]
    assert len(texts) == len({*texts})
    assert {*SPELLINGS.values()} <= ERRORS.keys()
