"""What a watch remembers of files from round to round."""

from __future__ import annotations

from hermes_doctor.core.system.remembered_files import RememberedFiles


def test_nothing_before_it_is_asked_to() -> None:
    """Only a watch asks; a single command has no use for it."""
    files: RememberedFiles[str] = RememberedFiles(2)
    files.adopt({"a": ((1,), "x")})
    assert (files.entries, files.known()) == (None, {})


def test_the_last_ones_are_adopted() -> None:
    """What the process of a round has learned goes to the watch, but no more than the limit."""
    files: RememberedFiles[str] = RememberedFiles(2)
    files.remember()
    files.adopt({name: ((1,), name) for name in "abc"})
    files.remember()  # again: nothing is lost
    assert files.known() == {"b": ((1,), "b"), "c": ((1,), "c")}


def test_what_is_known_is_a_copy() -> None:
    """The process that gets it changes only its own."""
    files: RememberedFiles[str] = RememberedFiles(2)
    files.remember()
    files.known()["a"] = ((1,), "x")
    assert files.known() == {}


def test_forgotten() -> None:
    """Nothing is left, and nothing more is remembered."""
    files: RememberedFiles[str] = RememberedFiles(2)
    files.remember()
    files.adopt({"a": ((1,), "x")})
    files.forget()
    assert files.entries is None
