"""Run a command in a terminal of 80 columns and 24 rows, and compare what it shows."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

COLUMNS, ROWS = 80, 24
RECORDED = Path(__file__).parents[1] / "data" / "screens"
VARIABLE = "HERMES_DOCTOR_RECORD_SCREENS"
"""Set it to 1 to write the screens instead of comparing them."""
RUN_ID = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{5}\b")
"""The id of a run, a backup or an update."""
DURATION = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|min|h|d)(?: \d+ (?:min|h))?\b")
PROCESS = re.compile(r"\bprocess \d+\b")
_VARIES = (
    (RUN_ID, "20261116-041300-00000"),
    (re.compile(r"\b(?:[A-Z][a-z]{2} \d{1,2} )?\d\d:\d\d\b"), "04:13"),
    (DURATION, "1 s"),
    (PROCESS, "process 2314"),
    (re.compile(r"\b\d+(?:\.\d+)? (?:KB|MB)\b"), "1 MB"),
    (re.compile(r"\b127\.0\.0\.1:\d+\b"), "127.0.0.1:8000"),
    (re.compile(r"\b(\w+\.log):\d+"), r"\1:1"),
    (re.compile(r"\b\d+ (checks passed)"), r"100 \1"),
)
"""What differs from run to run, and what is recorded instead."""
_CODE = re.compile(r"^(.*\S)  +([A-Z0-9]+(?:-[A-Z0-9]+)+)$")


def screen(
    command: Sequence[str | Path], env: Mapping[str, str], cwd: Path, timeout: float = 120
) -> str:
    """Return what a command shows in a terminal, without colours.

    Without stderr: a slow machine may show a line of progress there or not.
    """
    shown = _shown(command, env, cwd, timeout, errors=False)
    plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown)
    return "".join(f"{line.rstrip()}\n" for line in plain.decode().splitlines())


def last_screen(
    command: Sequence[str | Path], env: Mapping[str, str], cwd: Path, timeout: float = 120
) -> str:
    """Return what is left in a terminal when a command has ended, however many rows that needs.

    Lines of progress are gone by then, because they are replaced or erased.
    """
    rows, row, column = [""], 0, 0
    text = _shown(command, env, cwd, timeout, errors=True).decode()
    for sequence, number, final, char in _TOKEN.findall(text):
        if char == "\r":
            column = 0
        elif char == "\n":
            row += 1
            rows += [""] * (row - len(rows) + 1)
        elif final == "A":
            row = max(0, row - int(number or 1))
        elif final == "K":
            rows[row] = "" if number == "2" else rows[row][:column]
        elif not sequence:
            line = rows[row].ljust(column)
            rows[row] = line[:column] + char + line[column + 1 :]
            column += 1
    return "".join(f"{line.rstrip()}\n" for line in rows).rstrip("\n") + "\n"


_TOKEN = re.compile(r"(\x1b\[[?;\d]*?(\d*)([A-Za-z]))|([^\x1b])", re.DOTALL)


def _shown(
    command: Sequence[str | Path],
    env: Mapping[str, str],
    cwd: Path,
    timeout: float,
    *,
    errors: bool,
) -> bytes:
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [str(word) for word in command],
        env={**env, "TERM": "xterm", "NO_COLOR": "1"},
        cwd=cwd,
        stdin=slave,
        stdout=slave,
        stderr=slave if errors else subprocess.DEVNULL,
    )
    os.close(slave)
    try:
        return _read(master, process, timeout)
    finally:
        os.close(master)
        if process.poll() is None:
            process.kill()
        process.wait()


def _read(master: int, process: subprocess.Popen[bytes], timeout: float) -> bytes:
    limit = time.monotonic() + timeout
    shown = b""
    while True:
        ready, _, _ = select.select([master], [], [], 0.1)
        if ready:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end is closed
                part = b""
            if not part:
                break
            shown += part
        elif process.poll() is not None:
            break
        assert time.monotonic() < limit, f"no end after {timeout} s: {shown.decode()}"
    return shown


def steady(shown: str, *more: tuple[str, str]) -> str:
    """Replace what differs from run to run; a code stays at the right edge."""
    return "".join(f"{_steady(line, more)}\n" for line in shown.splitlines())


def _steady(line: str, more: Sequence[tuple[str, str]]) -> str:
    for old, new in more:
        line = line.replace(old, new)
    for pattern, instead in _VARIES:
        line = pattern.sub(instead, line)
    if found := _CODE.match(line):
        said, code = found.groups()
        line = f"{said}{code:>{max(COLUMNS - len(said), len(code) + 2)}}"
    return line


def compare(name: str, shown: str) -> None:
    """Assert that a screen is the recorded one, or record it."""
    path = RECORDED / f"{name}.txt"
    if os.environ.get(VARIABLE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(shown)
    assert path.exists(), f"no screen is recorded; set {VARIABLE}=1 and look at the result"
    assert shown == path.read_text(), f"set {VARIABLE}=1 to record it, and look at the result"
