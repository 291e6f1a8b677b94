"""The words that a shell completes are those that the commands accept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_doctor.cli import option_declarations
from tests.helpers import support


@pytest.mark.parametrize(
    ("complete", "start", "words"),
    [
        (option_declarations.complete_severity, "", ["critical", "error", "warning", "info"]),
        (option_declarations.complete_format, "j", ["json", "junit"]),
        (option_declarations.complete_question, "", ["live", "ready", "started"]),
        (option_declarations.complete_protocol, "c", ["chat_completions", "codex_responses"]),
        (option_declarations.complete_store, "we", ["webhooks", "weixin"]),
        (option_declarations.complete_selector, "DB-NOT", ["DB-NOTADB"]),
        (option_declarations.complete_selector, "databases", ["databases"]),
    ],
)
def test_words(complete: Callable[[str], list[str]], start: str, words: list[str]) -> None:
    """Each has all words, or those with the prefix."""
    assert complete(start) == words


@pytest.mark.parametrize("word", option_declarations.complete_severity(""))
def test_severities_are_accepted(word: str, home: Path) -> None:
    """`check --fail-on` takes each of them."""
    assert support.doctor("check", "--home", home, "--fail-on", word, "--json").err == ""
