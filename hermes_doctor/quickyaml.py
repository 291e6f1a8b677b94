"""PyYAML, loaded without the pattern that takes longer to compile than the rest of it to load.

It tells characters that may not stand in YAML, and only the parser in Python has a use for it, not
that of libyaml. So it is put where `re` keeps what it has compiled: one that is compiled when it
is first used. Where PyYAML or `re` do it otherwise, nothing is gained and nothing is lost.
"""

from __future__ import annotations

import re

from hermes_doctor.patterns import pattern

_UNWRITABLE = "[^\x09\x0a\x0d\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_KEY = (str, _UNWRITABLE, 0)
_known = [getattr(re, name, {}) for name in ("_cache", "_cache2")]

_known[0][_KEY] = pattern(_UNWRITABLE)
try:
    import yaml as yaml
finally:
    for one in _known:
        one.pop(_KEY, None)
