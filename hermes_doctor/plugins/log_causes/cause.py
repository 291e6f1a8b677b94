"""A cause of failures, and how texts that name it are recognised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hermes_doctor.lazy import EMPTY, NamedTuple


class Cause(NamedTuple):
    """Why something fails, whoever reports it."""

    name: str
    family: str
    rank: int
    """Of several causes in an entry, the one with the lowest rank is to blame."""
    code: str
    codes: Sequence[str] = ()
    """Other codes of findings that say the same cause."""
    by_part: Mapping[str, str] = EMPTY
    """Part of the bot → code, where it is not `code`."""
    title: str = ""
    """A fragment with {fields}; a form for unknown fields follows ` | `."""
    detail: str = ""
    advice: str = ""
    """One sentence that says what to do."""
    transient: bool = False
    """Whether it may pass without anybody doing something."""

    def code_in(self, part: str) -> str:
        """Return the code of findings about this cause in a part of the bot."""
        return self.by_part.get(part, self.code)

    def means(self, code: str) -> bool:
        """Tell whether a finding with this code says the same cause."""
        return code == self.code or code in self.codes or code in self.by_part.values()

    def title_with(self, fields: Mapping[str, str]) -> str:
        """Return the title; without its fields if one of them is not known."""
        full, _, plain = self.title.partition(" | ")
        try:
            return full.format_map(fields)
        except KeyError:
            return plain or full
