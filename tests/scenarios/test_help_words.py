"""The words of all commands: whole summaries, and plain English in every help text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from hermes_doctor.cli.commands import TASKS, app
from tests.helpers import support
from tests.helpers.each import each
from tests.helpers.plain_words import refused_words

LIMIT = 55


def _commands(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group, each with the words that call it."""
    yield words, command
    for name, one in getattr(command, "commands", {}).items():
        yield from _commands(one, *words, name)


ALL = dict(_commands(typer.main.get_command(app)))
GROUPS = [words for words, one in ALL.items() if hasattr(one, "commands")]


def _summary(command: Any) -> str:
    return str(command.help or "").split("\n\n")[0].replace("\n", " ").strip()


@each(ALL)
def test_words(words: tuple[str, ...]) -> None:
    """No help text, example or option contains a refused word; every option has a help."""
    command = ALL[words]
    options = [one for one in command.params if not getattr(one, "hidden", False)]
    for text in (command.help or "", command.epilog or "", *(one.help or "" for one in options)):
        assert not refused_words(text), text
    assert [one.name for one in options if not one.help] == []
    for one in options:
        assert one.help[0].isupper(), one.help


@each([words for words in ALL if words])
def test_summaries(words: tuple[str, ...]) -> None:
    """A summary is one short sentence that fits into one line of the list of commands."""
    summary = _summary(ALL[words])
    assert 0 < len(summary) <= LIMIT
    assert summary.endswith(".")
    assert ". " not in summary


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_lists_are_not_cut(words: tuple[str, ...]) -> None:
    """`--help` shows every summary whole, in one line of at most 80 characters."""
    shown = support.doctor(*words, "--help", env={"COLUMNS": "80"}).out
    for name, one in ALL[words].commands.items():
        assert re.search(rf"^  {name} +{re.escape(_summary(one))}$", shown, re.MULTILINE), name
    assert "…" not in shown.partition("Examples:")[0]
    assert max(map(len, shown.splitlines())) <= 80


def test_tasks() -> None:
    """The commands are listed by task, in a fixed order."""
    shown = support.doctor("--help", env={"COLUMNS": "80"}).out
    assert [line[:-1] for line in shown.splitlines() if line[:-1] in TASKS] == list(TASKS)
