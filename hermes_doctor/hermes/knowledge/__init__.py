"""Facts about each Hermes release, in JSON files that `tools/` generates from the releases.

It contains only data and the code that reads it; `settings` and `probes` judge by it.
"""

from __future__ import annotations

import re
from functools import cache


@cache
def parse_release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version text; empty if it has none."""
    match = re.match(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,9}", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
