"""Keep every processor of the machine busy for as long as a test needs it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

BESIDE = 4
"""Busy processes for each processor."""
LONGEST = 300
"""Seconds after which a busy process ends by itself, should the test be killed."""
_LOOP = f"""\
import time
end = time.monotonic() + {LONGEST}
print(flush=True)
while time.monotonic() < end:
    pass
"""


@contextlib.contextmanager
def machine(beside: int = BESIDE) -> Iterator[None]:
    """Run that many busy processes for each processor."""
    command = [sys.executable, "-I", "-S", "-c", _LOOP]
    with contextlib.ExitStack() as loops:
        for _ in range(beside * len(os.sched_getaffinity(0))):
            loop = loops.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            loops.callback(loop.kill)
            assert loop.stdout is not None
            loop.stdout.readline()  # wait until it runs
        yield
