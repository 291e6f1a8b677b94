"""What a watch remembers of files from round to round, although each round has its own process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

T = TypeVar("T")
Identity = tuple[int, ...]
"""Which file it was, with its size and its times."""
RECENT = 2.0
"""Seconds within which two changes of a file may have the same time."""


class RememberedFiles(Generic[T]):
    """What was found in files, by name; at most `most` of them."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.entries: dict[str, tuple[Identity, T]] | None = None
        """None while nothing is remembered."""
        self._shared: dict[str, tuple[Identity, T]] = {}
        """What the watch knows; the process of a round need not tell it again."""

    def remember(self) -> None:
        """Remember from now on."""
        self.entries = {} if self.entries is None else self.entries

    def forget(self) -> None:
        """Remember nothing any more."""
        self.entries = None

    def known(self) -> dict[str, tuple[Identity, T]]:
        """What is remembered, for another process."""
        return {} if self.entries is None else dict(self.entries)

    def news(self) -> dict[str, tuple[Identity, T]]:
        """What the watch does not know yet; it may keep the rest, which no file fits any more."""
        return {
            name: one for name, one in self.known().items() if self._shared.get(name) is not one
        }

    def adopt(self, news: Mapping[str, tuple[Identity, T]]) -> None:
        """Remember what another process has found out."""
        if self.entries is not None:
            older = {name: one for name, one in self.entries.items() if name not in news}
            self.entries = dict([*older.items(), *news.items()][-self.most :])
            self._shared = dict(self.entries)
