"""The words of `check`, read without typer: loading it takes longer than looking.

Only what is beyond doubt is read here. Everything else (help, a mistake, a short form) is
typer's, which reads it all again; the table is held to what `check` declares by a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

SWITCHES = frozenset({"all_homes", "json", "deep", "network"})
SINGLE = {"home": Path, "fail_on": str}
REPEATED = {"only": str, "skip": str, "plugins": Path}


def of_check(words: Sequence[str]) -> dict[str, Any] | None:
    """What was asked of `check`, by the names of its parameters; None when typer is to read it."""
    if words[:1] != ["check"]:
        return None
    asked: dict[str, Any] = {}
    rest = iter(words[1:])
    for word in rest:
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        if flag != f"--{name.replace('_', '-')}":
            return None
        if name in SWITCHES and not equals:
            asked[name] = True
            continue
        value = value if equals else next(rest, "")
        if not value or value.startswith("-"):
            return None
        if name in SINGLE:
            asked[name] = SINGLE[name](value)
        elif name in REPEATED:
            asked.setdefault(name, []).append(REPEATED[name](value))
        else:
            return None
    return asked
