"""docs/by-hand.md: each command parses, each code exists, and what is refused has no fix."""

from __future__ import annotations

import functools
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer import TyperException
from typer.main import get_command

from hermes_doctor.cli.commands import app
from hermes_doctor.diagnosis.plugins import load
from tests.helpers.each import each
from tools.share.command_tree import NAME

PAGE = (Path(__file__).parents[2] / "docs" / "by-hand.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| by hand |", "| --- |"))
]
PLUGINS = load.load()
CODES = {code for check in PLUGINS.checks for code in check.codes}
FIXED = {code for fix in PLUGINS.fixes for code in fix.codes}
REFUSES = {"GW-DUPLICATE"}
"""Its fix is for other causes of that code; it refuses while several gateways run."""
_CODE = re.compile(r"\b[A-Z]+[A-Z0-9]*(?:-[A-Z0-9]+)+\b")
_NOT_CODES = {"UTF-8", "UTF-16"}

every_row = each(ROWS)


def command(row: list[str]) -> list[str]:
    """The words of the command in a row, without sudo."""
    [line] = re.findall(r"^`(?:sudo )?(.*)`$", row[1])
    return shlex.split(line)


@functools.cache
def program() -> Any:
    """The program with all its commands."""
    return get_command(app)


def parse(words: list[str]) -> None:
    """Parse a command as the program does, without running it."""
    found, above = program(), None
    name, *rest = words
    while True:
        above = found.make_context(name, [*rest], parent=above)
        below = getattr(found, "commands", {})
        if not rest or rest[0] not in below:
            break
        found, (name, *rest) = below[rest[0]], rest
    if below and not found.invoke_without_command:
        raise TyperException(f"no command below {name}: {rest}")


def test_there_are_rows() -> None:
    """Every group has rows with three cells, and no step is there twice."""
    groups = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]

    assert all("\n| --- | --- | --- |\n| " in group for group in groups)
    assert {len(row) for row in ROWS} == {3}
    assert all(all(row) for row in ROWS)
    assert len({row[0] for row in ROWS}) == len(ROWS) > 60


@every_row
def test_command(row: list[str]) -> None:
    """The command and its options exist, and it has the arguments that it needs."""
    words = command(row)

    assert words[0] == NAME
    parse(words)


@pytest.mark.parametrize(
    "line",
    ["fix GW-DOWN --aply", "explian GW-DOWN", "switch-provider --apply", "backup prone"],
)
def test_a_wrong_command_is_found(line: str) -> None:
    """The test above fails for a wrong option, a wrong command or a missing argument."""
    with pytest.raises(TyperException):
        parse([NAME, *line.split()])


@every_row
def test_codes(row: list[str]) -> None:
    """Every code that a row names exists; `fix` is offered for codes that have a fix."""
    words = command(row)
    named = set(_CODE.findall(" ".join(row[1:]))) - _NOT_CODES

    assert named <= CODES
    if words[1] == "fix":
        assert named & {*words} <= FIXED


@every_row
def test_refused(row: list[str]) -> None:
    """`No` is in the last cell exactly if the command only explains, and no fix exists."""
    words = command(row)

    assert row[2].startswith("**No**: ") is (words[1] == "explain")
    if words[1] == "explain":
        assert words[2] not in FIXED - REFUSES
