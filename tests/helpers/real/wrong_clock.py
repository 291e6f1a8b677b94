"""A real Hermes whose clock is wrong until a test sets it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import support

CUSTOMIZED = '''
"""Move the clock of this process by as many seconds as a file says."""
import datetime, os, time

real, real_ns, known = time.time, time.time_ns, datetime.datetime

def wrong_by():
    with open(os.environ["WRONG_CLOCK"]) as file:
        return float(file.read() or 0)

class Kind(type):
    def __instancecheck__(cls, one):
        return isinstance(one, known)

class Wrong(known, metaclass=Kind):
    @classmethod
    def now(cls, tz=None):
        return known.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls):
        return known.utcfromtimestamp(time.time())

Wrong.__name__ = Wrong.__qualname__ = "datetime"
datetime.datetime = Wrong
time.time = lambda: real() + wrong_by()
time.time_ns = lambda: real_ns() + int(wrong_by() * 1e9)
'''


@dataclass(frozen=True)
class WrongClock:
    """The clock of the gateway of one home."""

    folder: Path
    seconds: float

    @property
    def environment(self) -> dict[str, str]:
        """Variables that give a Hermes this clock."""
        support.put(self.folder / "sitecustomize.py", CUSTOMIZED)
        support.put(self.folder / "wrong-by", str(self.seconds))
        return {
            "PYTHONPATH": str(self.folder),
            "WRONG_CLOCK": str(self.folder / "wrong-by"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def correct(self, home: Path) -> None:
        """Set the clock. Files of the start have the time that the wrong clock showed."""
        for name in ("gateway.pid", "gateway.lock"):
            written = (home / name).stat().st_mtime + self.seconds
            os.utime(home / name, (written, written))
        (self.folder / "wrong-by").write_text("")
