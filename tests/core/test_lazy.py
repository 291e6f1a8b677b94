"""Our named tuples and patterns are what those of the standard library are, only sooner."""

from __future__ import annotations

import pickle
import re
import typing
from pathlib import Path

import pytest

from hermes_doctor.core.lazy import EMPTY, NamedTuple, pattern

ROOT = Path(__file__).parents[2]


class Ours(NamedTuple):
    """A place."""

    name: str
    size: int = 0
    """In bytes."""
    parts: tuple[str, ...] = ()

    @property
    def large(self) -> bool:
        """Whether it is."""
        return self.size > 9


class Theirs(typing.NamedTuple):
    """A place."""

    name: str
    size: int = 0
    parts: tuple[str, ...] = ()


def test_named_tuple() -> None:
    """Fields, defaults, methods and all else that is used of one."""
    one = Ours("a", size=10)

    assert tuple(one) == tuple(Theirs("a", 10))
    assert (one.large, one._replace(size=1).large) == (True, False)
    assert (Ours._fields, Ours._field_defaults) == (Theirs._fields, Theirs._field_defaults)
    assert Ours.__doc__ == Theirs.__doc__
    assert repr(one) == repr(Theirs("a", 10)).replace("Theirs", "Ours")
    assert pickle.loads(pickle.dumps(one)) == one
    assert one._asdict() == {"name": "a", "size": 10, "parts": ()}
    with pytest.raises(AttributeError):
        one.size = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        Ours()  # type: ignore[call-arg]


def test_nothing() -> None:
    """The default that all share cannot be filled."""
    assert dict(EMPTY) == {}
    with pytest.raises(TypeError):
        EMPTY["a"] = 1  # type: ignore[index]


def test_pattern() -> None:
    """A pattern that waits does all that a compiled one does."""
    late, early = pattern(r"(a)(b)?", re.IGNORECASE), re.compile(r"(a)(b)?", re.IGNORECASE)

    for method in ("match", "search", "fullmatch", "findall", "split"):
        assert str(getattr(late, method)("AB")) == str(getattr(early, method)("AB"))
    assert late.sub("x", "abc") == "xc"
    assert (late.pattern, late.groups, late.flags) == (early.pattern, early.groups, early.flags)
    assert pattern(rb"\d").search(b"a1") is not None


def test_no_match_is_asked_for_its_pattern() -> None:
    """That one is never what stands for it, so that comparing them would always fail."""
    asking = re.compile(r"\.re (is|==|!=|in) ")

    found = [p.name for p in (ROOT / "hermes_doctor").rglob("*.py") if asking.search(p.read_text())]

    assert found == []


@pytest.mark.parametrize("folder", ["hermes_doctor", "checks"])
def test_they_are_used(folder: str) -> None:
    """A class of typing's costs a look more than twice as much."""
    theirs = re.compile(r"from typing import [^\n]*\bNamedTuple\b")

    found = {p.name for p in (ROOT / folder).rglob("*.py") if theirs.search(p.read_text())}

    assert found <= {"lazy.py"}


def test_named_tuple_refuses_what_theirs_refuse() -> None:
    """Fields in the wrong order, unknown ones, and too few or too many values."""
    with pytest.raises(TypeError):

        class _Wrong(NamedTuple):
            size: int = 0
            name: str  # type: ignore[misc]

    with pytest.raises(ValueError, match="nosuch"):
        Ours("a")._replace(nosuch=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Ours("a", 1, (), 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Ours(name="a", nosuch=1)  # type: ignore[call-arg]
    assert Ours._make(["a", 1, ()]) == Ours("a", 1)
