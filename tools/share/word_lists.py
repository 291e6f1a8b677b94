"""Gives the long lists of words, such as all codes, a name, so that a script has each once."""

from __future__ import annotations

from collections.abc import Iterator

from tools.share.command_tree import Command

LONG = 20


class WordLists:
    """The long lists of a tree of commands."""

    def __init__(self, tree: Command) -> None:
        """Name them in the order of the commands."""
        found = dict.fromkeys(words for words in _words(tree) if len(words) >= LONG)
        self.named = {f"words_{number}": words for number, words in enumerate(found, 1)}

    def name_of(self, words: tuple[str, ...]) -> str | None:
        """The name of a list; None for a short one."""
        return next((name for name, one in self.named.items() if one == words), None)


def _words(tree: Command) -> Iterator[tuple[str, ...]]:
    for command in tree.walk():
        yield from (one.value.words for one in command.options if one.value is not None)
        yield from (one.value.words for one in command.arguments)
