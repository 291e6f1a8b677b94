"""Regular expressions that are compiled when they are first used: a look uses few of them.

With `re.compile` instead, `check` takes 14 ms more CPU: 318 ms instead of 304 ms, on a used home
beside a running gateway (`benchmarks/trees.py`).
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Later:
    """Stands for a compiled pattern, and becomes one method by method.

    It is not the pattern itself: a match names as its `re` the one that was compiled.
    """

    def __init__(self, source: Any, flags: int) -> None:
        self._made_of = source, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._made_of), name)
        setattr(self, name, found)  # from now on it is found without us
        return found


def pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, without its price as long as nobody asks."""
    return cast("re.Pattern[AnyStr]", _Later(source, flags))
