"""Run a command where /proc lists very many other processes, which do not exist.

Only this command and what it starts see them: it has its own mounts and its own process ids.

    python crowded_proc.py COUNT PROGRAM WORD...
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

FIRST = 100_000
"""The lowest id of those processes."""
REAL = 40_000
"""Ids below this are those of real processes."""
KINDS = {
    "other": b"/usr/sbin/nginx\0-g\0daemon off;\0",
    "python": b"python\0-m\0http.server\0",
    "hermes": b"hermes\0",
    "gateway": b"/opt/venv/bin/python\0-m\0hermes_cli.main\0gateway\0run\0",
}
"""Names and command lines; a process of each kind in turn."""
_STAT = "900000 ({name}) S 1 1 1 0 -1 4194560 0 0 0 0 5 5 0 0 20 0 1 0 500 1000000 100 " + "0 " * 28


def command(count: int, *words: str) -> list[str]:
    """Return the command that runs another where /proc has so many processes more."""
    here = [sys.executable, "-I", "-S", __file__, str(count), *words]
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", *here]


def _crowd(count: int) -> None:
    """Mount the real /proc elsewhere; its place gets links to it and to the invented processes."""
    _mount("tmpfs", "/mnt")
    real = Path("/mnt/real")
    real.mkdir()
    _mount("proc", str(real))
    names = [name for name in os.listdir(real) if not name.isdigit()]
    _mount("tmpfs", "/proc")
    for name in [*names, *map(str, range(1, REAL))]:
        os.symlink(real / name, f"/proc/{name}")
    made = [_invented(name, line) for name, line in KINDS.items()]
    for number in range(count):
        os.symlink(made[number % len(made)], f"/proc/{FIRST + number}")


def _mount(kind: str, place: str) -> None:
    system = ctypes.CDLL(None, use_errno=True)
    if system.mount(kind.encode(), place.encode(), kind.encode(), 0, None):
        raise OSError(ctypes.get_errno(), f"mount {place}")


def _invented(name: str, line: bytes) -> Path:
    """Make the folder of a process."""
    folder = Path("/mnt") / name
    for inside in ("fd", "fdinfo", "task", "ns"):
        (folder / inside).mkdir(parents=True)
    for file, content in {
        "cmdline": line,
        "environ": b"HERMES_HOME=/srv/other\0",
        "comm": name.encode() + b"\n",
        "stat": _STAT.format(name=name).encode(),
        "status": b"Name:\tx\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nNSpid:\t900000\n",
        "maps": b"",
        "cgroup": b"0::/\n",
    }.items():
        (folder / file).write_bytes(content)
    for file, target in {
        "cwd": "/srv",
        "exe": "/bin/true",
        "root": "/",
        "fd/0": "/dev/null",
    }.items():
        (folder / file).symlink_to(target)
    return folder


if __name__ == "__main__":
    _crowd(int(sys.argv[1]))
    sys.exit(subprocess.run(sys.argv[2:], check=False).returncode)
