"""What a check and a fix are, and the two decorators that declare them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook, Finding, Partly, Safety
from hermes_doctor.probes.probes import Probes

if TYPE_CHECKING:
    from hermes_doctor.steps.base import Step

Look = Callable[[Probes], Iterable[Finding | CouldNotLook | Partly]]
Plan = Callable[[Probes, Finding], "Iterable[Step]"]
_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_CODE = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)*")


class Check(NamedTuple):
    """One question about a home."""

    id: str
    group: str
    codes: tuple[str, ...]
    question: str
    look: Look
    limit: float
    by_release: tuple[str, ...] = ()
    """The codes that rest on knowledge about releases of Hermes: not judged on newer ones."""


class Fix(NamedTuple):
    """One repair."""

    id: str
    codes: tuple[str, ...]
    safety: Safety
    title: str
    plan: Plan
    then: str | None = None
    """The fix that comes next where this one turns out not to be enough."""
    unattended: bool = False
    """Although it asks a person, a watch that heals may do it by itself, within its budget."""
    personal: bool = False
    """It lets somebody in: done only for the person who is named, whatever else was agreed to."""
    optional: bool = False
    """A choice that nothing needs: applied only when its code is named."""
    structural: bool = False
    """It changes what a database is made of: refused on a Hermes newer than this tool knows."""


def check(
    *,
    id: str,
    group: str,
    codes: Sequence[str],
    limit: float = 5.0,
    by_release: bool | Sequence[str] = False,
) -> Callable[[Look], Check]:
    """Make a function a check; its docstring's first line is the question it answers.

    `by_release` names the codes that rest on what this tool knows about releases of Hermes; True
    means all of them. On a release newer than that, they are not judged.
    """
    _names(id, group, codes)
    rest = tuple(codes if by_release is True else by_release or ())
    if not set(rest) <= set(codes):
        raise ValueError(f"{id} does not declare every code of its by_release")

    def decorate(look: Look) -> Check:
        return Check(id, group, tuple(codes), _first_line(look), look, limit, rest)

    return decorate


def fix(
    *,
    id: str,
    codes: Sequence[str],
    safety: Safety,
    then: str | None = None,
    unattended: bool = False,
    personal: bool = False,
    optional: bool = False,
    structural: bool = False,
) -> Callable[[Plan], Fix]:
    """Make a function a fix; its docstring's first line says what it does.

    A fix does no more than its `safety` announces. Where that turns out not to be enough, `then`
    names the one to go on with, which asks for itself.
    """
    _names(id, then or id, codes)

    def decorate(plan: Plan) -> Fix:
        title = _first_line(plan)
        return Fix(
            id,
            tuple(codes),
            safety,
            title,
            plan,
            then,
            unattended,
            personal,
            optional=optional,
            structural=structural,
        )

    return decorate


def _names(id: str, group: str, codes: Sequence[str]) -> None:
    for name, form in [(id, _ID), (group, _ID), *((code, _CODE) for code in codes)]:
        if not form.fullmatch(name):
            raise ValueError(f"{name!r} does not match {form.pattern}")
    if not codes:
        raise ValueError(f"{id} names no code")


def _first_line(function: Callable[..., object]) -> str:
    doc = (function.__doc__ or "").strip()
    if not doc and sys.flags.optimize >= 2:  # Python has dropped all docstrings
        doc = _docstring_in_source(function) or function.__name__.replace("_", " ")
    if not doc:
        raise ValueError(f"{function.__name__} needs a docstring: its first line is shown")
    return doc.splitlines()[0]


def _docstring_in_source(function: Callable[..., object]) -> str:
    """The first line of a docstring as the file has it; empty if there is none."""
    import linecache

    code = function.__code__
    number = code.co_firstlineno
    while line := linecache.getline(code.co_filename, number):
        number += 1
        if line.lstrip().startswith('"""'):
            return line.strip().strip('"').strip()
    return ""
