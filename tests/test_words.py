"""The words of `check` mean the same with and without typer."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from typer.main import get_command

from hermes_doctor.cli import checking, words
from hermes_doctor.cli.commands import app

CLEAR: tuple[list[str], ...] = (
    [],
    ["--json"],
    ["--deep", "--network", "--all-homes", "--json"],
    ["--home", "/srv/a b", "--fail-on", "warning"],
    ["--home=/srv/x", "--home=/srv/y"],
    ["--only=databases", "--only", "ENV-BOM", "--skip", "secrets"],
    ["--plugins", "one", "--plugins=two", "--deep"],
    ["--home=a=b"],
)
TYPERS = (
    ["--help"],
    ["-h"],
    ["--jso"],
    ["--json=yes"],
    ["--all_homes"],
    ["--home"],
    ["--home", ""],
    ["--home", "--json"],
    ["--only", "-x"],
    ["--", "--json"],
    ["now"],
    ["--no-such-option"],
    ["---json"],
    ["--"],
    [""],
)


def declared() -> Any:
    """The command as typer has it."""
    return get_command(app).commands["check"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("given", CLEAR, ids=" ".join)
def test_same(given: list[str]) -> None:
    """What is read here is what typer would have read."""
    parameters = inspect.signature(checking.run).parameters
    defaults = {name: one.default for name, one in parameters.items()}

    asked = words.of_check(["check", *given])

    assert asked is not None
    theirs = declared().make_context("check", list(given)).params
    for name, make in words.SINGLE.items():  # it makes paths of words only when it calls
        theirs[name] = make(theirs[name]) if theirs[name] else None
    for name, make in words.REPEATED.items():
        theirs[name] = [make(one) for one in theirs[name] or ()] or None
    assert defaults | asked == theirs


@pytest.mark.parametrize("given", TYPERS, ids=" ".join)
def test_left_to_typer(given: list[str]) -> None:
    """Help, mistakes and whatever is not plain are not decided here."""
    assert words.of_check(["check", *given]) is None


@pytest.mark.parametrize("given", [[], ["fix"], ["--version"], ["--json", "check"]], ids=" ".join)
def test_other_commands(given: list[str]) -> None:
    """Nor are other commands."""
    assert words.of_check(given) is None


def test_table() -> None:
    """The table has every option that `check` declares, and none that it does not."""
    options = declared().params
    several = {one.name for one in options if one.multiple}
    switches = {one.name for one in options if one.is_flag and one.name != "help"}
    single = {one.name for one in options} - several - switches - {"help"}

    assert switches == words.SWITCHES
    assert {*words.SINGLE} == single
    assert {*words.REPEATED} == several
    assert all(
        one.opts == [f"--{one.name.replace('_', '-')}"] for one in options if one.name != "help"
    )
