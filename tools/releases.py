"""Install real Hermes releases, each into its own virtual environment in a cache folder.

`tools/locks/VERSION.txt` fixes every package of a release's environment. The folder of an
environment carries a digest of that lock and of the Python version, so that a changed lock or
another Python gives a new environment. `python -m tools.releases --lock` writes the locks again.
Each environment records its installed files, and `changed` compares them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

LOCKS = Path(__file__).parent / "locks"
ALL = tuple(
    sorted(
        (path.stem for path in LOCKS.glob("*.txt")), key=lambda name: [*map(int, name.split("."))]
    )
)
"""The releases on the package index that are installed here; each has a lock file."""
CHECKOUTS = "HERMES_DOCTOR_CHECKOUTS"
"""The variable that names the folder with the checkouts of all other releases."""
EXTRAS = ("messaging",)
"""Installed with the release: without them no platform and no API server starts."""
RECORD = "installed.json"
"""Contains the inputs and the files of an environment; written last, so it marks it complete."""
FORMAT = 2
"""Format of the record; another number gives new environments."""
Files = dict[str, list[int]]
"""Size and modification time of each file."""
_seen: set[Path] = set()
"""The environments that were found to be complete; tests ask hundreds of times."""


def cache() -> Path:
    """The folder that holds the environments."""
    named = os.environ.get("HERMES_DOCTOR_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "hermes-gateway-doctor" / "releases"


def python_of(version: str) -> Path:
    """Return the interpreter of a release, after installing it if needed.

    A release without a lock file must have a checkout in $HERMES_DOCTOR_CHECKOUTS. Raises
    RuntimeError or OSError if there is none, or if the release cannot be installed.
    """
    if version not in ALL:
        return python_of_checkout(Path(os.environ.get(CHECKOUTS, "")) / version)
    place = folder(version)
    python = place / "bin" / "python"
    if place in _seen or _is_complete(place, version):
        _seen.add(place)
        return python
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{place.name}.lock").open("w") as lock:  # tests may install in parallel
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_complete(place, version):
            _install(version, place)
    return python


def python_of_checkout(checkout: Path) -> Path:
    """Return the interpreter of a checkout, which has its own environment in `.venv`."""
    python = checkout / ".venv" / "bin" / "python"
    if not python.exists():
        raise RuntimeError(f"{checkout} is not a checkout of Hermes with a .venv; set {CHECKOUTS}")
    return python


def version_of_checkout(checkout: Path) -> str:
    """Return the release of a checkout, as its environment names it."""
    packages = python_of_checkout(checkout).parent.parent / "lib"
    [found] = packages.glob("python3*/site-packages/hermes_agent-*.dist-info")
    return found.name.removeprefix("hermes_agent-").removesuffix(".dist-info")


def folder(version: str) -> Path:
    """Return the folder of a release's environment; its name depends on what is installed."""
    digest = hashlib.sha256(json.dumps(_recipe(version), sort_keys=True).encode()).hexdigest()
    return cache() / f"{version}-{digest[:12]}"


def packages(version: str) -> list[str]:
    """List the packages that a release's environment actually contains, as name-version."""
    found = folder(version).glob("lib/python3*/site-packages/*.dist-info")
    return sorted(path.name.removesuffix(".dist-info") for path in found)


def changed() -> dict[str, list[str]]:
    """List the files that differ from what was installed, by the folder of their environment.

    Python's compiled modules are left out, because importing a module writes them.
    """
    found = {}
    for record in sorted(cache().glob(f"*/{RECORD}")):
        place = record.parent
        installed: Files = json.loads(record.read_text()).get("files", {})
        now = _files(place)
        differs = [name for name in now.keys() | installed if now.get(name) != installed.get(name)]
        if installed and differs:
            found[place.name] = sorted(differs)
    return found


def write_lock(version: str) -> None:
    """Resolve a release with its extras and pin every package, for all supported Pythons."""
    wanted = f"hermes-agent[{','.join(EXTRAS)}]=={version}\npip\n"
    options = ["--universal", "--python-version", "3.11", "--no-header", "--no-annotate"]
    target = str(LOCKS / f"{version}.txt")
    LOCKS.mkdir(exist_ok=True)
    _run([*_uv("pip", "compile"), *options, "--quiet", "-o", target, "-"], wanted)


def _recipe(version: str) -> dict[str, object]:
    return {
        "format": FORMAT,
        "release": version,
        "extras": list(EXTRAS),
        "python": ".".join(map(str, sys.version_info[:3])),
        "lock": (LOCKS / f"{version}.txt").read_text(),
    }


def _is_complete(place: Path, version: str) -> bool:
    """Return whether an environment is complete and unchanged since its installation."""
    try:
        record = json.loads((place / RECORD).read_text())
    except FileNotFoundError:
        return False
    return bool(record["packages"] == packages(version))


def _install(version: str, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    lock = str(LOCKS / f"{version}.txt")
    # Copied, not linked: a test that damages a release must not damage uv's cache with it.
    # Not compiled: that takes 15 s of a processor, and a gateway imports a sixth of it.
    options = ["--quiet", "--no-deps", "--link-mode", "copy"]
    _run([*_uv("venv"), "--quiet", "--python", sys.executable, str(place)])
    _run([*_uv("pip", "install"), *options, "--python", str(place / "bin" / "python"), "-r", lock])
    record = _recipe(version) | {"packages": packages(version), "files": _files(place)}
    (place / RECORD).write_text(json.dumps(record, indent=1))


def _files(place: Path) -> Files:
    found: Files = {}
    for base, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for path in (f"{base}/{name}" for name in names):
            st = os.lstat(path)
            found[path.removeprefix(f"{place}/")] = [st.st_size, st.st_mtime_ns]
    found.pop(RECORD, None)
    return found


def _uv(*words: str) -> list[str]:
    return [sys.executable, "-m", "uv", *words, "--cache-dir", str(cache().parent / "uv")]


def _run(command: list[str], given: str = "") -> None:
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        command, env=environ, input=given, capture_output=True, text=True, timeout=900
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")


if __name__ == "__main__":
    names = sys.argv[1:]
    relock = "--lock" in names
    for name in [name for name in names if name != "--lock"] or ALL:
        if relock:
            write_lock(name)
        print(name, python_of(name))
