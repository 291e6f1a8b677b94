"""Mount a file system that answers nothing, like a network drive whose server is gone."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

DEVICE = Path("/dev/fuse")
_LAZY = 2
"""MNT_DETACH: the mount goes even while it is in use."""


@contextlib.contextmanager
def mounted(place: Path) -> Iterator[None]:
    """Mount it; every access hangs, and cannot be interrupted, until the context ends.

    A process of its own reads all requests, so that the kernel waits for the answers.
    """
    place.mkdir(exist_ok=True)
    server = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(place)], stdout=subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"mounted\n"
        yield
    finally:
        server.kill()  # the kernel then ends all requests with an error
        server.communicate()
        ctypes.CDLL(None).umount2(os.fsencode(place), _LAZY)


def _serve(place: str) -> None:
    """Mount it, agree on the protocol, and read all other requests without an answer."""
    device = os.open(DEVICE, os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    system = ctypes.CDLL(None, use_errno=True)
    if system.mount(b"hung", os.fsencode(place), b"fuse", 0, options):
        raise OSError(ctypes.get_errno(), "mount")
    unique = struct.unpack_from("<IIQ", os.read(device, 1 << 20))[2]
    agreed = struct.pack("<IIIIHHIIHHI28x", 7, 31, 4096, 0, 8, 8, 4096, 1, 1, 0, 0)
    os.write(device, struct.pack("<IiQ", 16 + len(agreed), 0, unique) + agreed)
    sys.stdout.write("mounted\n")
    sys.stdout.flush()
    while True:
        os.read(device, 1 << 20)


if __name__ == "__main__":
    _serve(sys.argv[1])
