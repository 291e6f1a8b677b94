"""Install Docker Compose 2 from Debian's package into the cache, for older Debian releases."""

from __future__ import annotations

import fcntl
import hashlib
import platform
import subprocess
import urllib.request
from pathlib import Path

from tools import releases

ADDRESS = "http://deb.debian.org/debian/pool/main/d/docker-compose/docker-compose_2.26.1-4_{}.deb"
SUMS = {
    "amd64": "47681197cb2b1ab88206b42a1a92fc75f50d9530a6322d03494a473eed0408ea",
    "arm64": "bbafaa666f3e7fa00ad36f2a8bab889f1c791ca8743d674e7267a3d07203869c",
}
_KINDS = {"x86_64": "amd64", "aarch64": "arm64"}


def folder() -> Path:
    """Return a settings folder for `docker` with the plugin; raise if it cannot be installed."""
    place = releases.cache().parent / "compose"
    plugin = place / "cli-plugins" / "docker-compose"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:  # tests may install in parallel
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not plugin.exists():
            _unpack(place)
            plugin.parent.mkdir(exist_ok=True)
            (place / "usr/libexec/docker/cli-plugins/docker-compose").rename(plugin)
    return place


def _unpack(place: Path) -> None:
    kind = _KINDS[platform.machine()]
    with urllib.request.urlopen(ADDRESS.format(kind), timeout=120) as answer:
        data: bytes = answer.read()
    if hashlib.sha256(data).hexdigest() != SUMS[kind]:
        raise RuntimeError("Debian's docker-compose is not the one that is known")
    package = place / "package.deb"
    package.write_bytes(data)
    subprocess.run(["dpkg-deb", "-x", package, place], check=True, capture_output=True)
    package.unlink()
