"""PyYAML refuses the same characters as with its own pattern, and is the one that is installed."""

from __future__ import annotations

import re
import subprocess
import sys

from hermes_doctor.settings.fast_yaml import FAST, SLOW

SCRIPT = """
import re
compile = re.compile
from hermes_doctor.settings import fast_yaml
assert re.compile is compile
print(ascii(fast_yaml.yaml.reader.Reader.NON_PRINTABLE.pattern))
"""


def test_same_characters() -> None:
    """The two patterns match the same characters of all that Unicode has."""
    slow, fast = re.compile(SLOW), re.compile(FAST)
    for number in range(sys.maxunicode + 1):
        assert bool(slow.match(chr(number))) == bool(fast.match(chr(number))), hex(number)


def test_used() -> None:
    """The installed PyYAML has the pattern that is replaced, and nothing else is replaced."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)

    assert (done.stderr, done.stdout) == ("", f"{FAST!a}\n")
