"""Import PyYAML without compiling its one slow pattern.

PyYAML compiles a pattern for the characters that YAML forbids. The pattern names all the others, up
to the last one of Unicode, which takes Python's compiler 7 ms of a check of 300 ms. The equivalent
here names the forbidden ones and takes less than 1 ms.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["yaml"]

SLOW = "[^\x09\x0a\x0d\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
FAST = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]|[\ud800-\udfff]|[\ufffe-\uffff]"
_compile = re.compile


def _compile_fast(pattern: Any, flags: Any = 0) -> Any:
    return _compile(FAST if pattern == SLOW else pattern, flags)


re.compile = _compile_fast
try:
    import yaml  # a version of PyYAML with another pattern compiles its own
finally:
    re.compile = _compile
