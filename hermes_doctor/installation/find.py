"""Find the installed Hermes by its files, without running any of its code."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hermes_doctor.home import Home
from hermes_doctor.knowledge.releases import parse_release
from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.model import CouldNotLook, Gateway
from hermes_doctor.processes import process_stat
from hermes_doctor.processes.home_of import shares_pids
from hermes_doctor.system.files import MEGABYTE, list_folder, read, read_head, user_home, which_all

LAUNCHER = b"\n# Written by hermes-doctor: "
"""The text that identifies this tool's launcher, which hides the real `hermes` on PATH."""
_DIST = pattern(r"hermes_agent-(\d[^-]*)\.dist-info")
_OF_ONE = pattern(r"hermes(?:-[a-z]+)?|python[0-9.]*|pip[0-9.]*")
"""Programs that belong to one environment, so that their path shows which one is meant."""
_CHECKOUT = pattern(r'^version\s*=\s*"([^"\n]{1,64})"', re.MULTILINE)


class Installation(NamedTuple):
    """A Hermes that is installed on this machine."""

    version: str
    where: Path
    running: bool
    """Whether a gateway of this home runs from it."""

    @property
    def release(self) -> tuple[int, ...]:
        """The version as comparable numbers."""
        return parse_release(self.version)


def find_installation(home: Home, gateways: Callable[[], list[Gateway]]) -> Installation | None:
    """Find the Hermes of the running gateway, else of the last one, else the newest installed."""
    if home.is_example:
        return None
    try:
        running = gateways()
    except CouldNotLook:
        running = []
    for gateway in running:
        if not _of_the_home(home, gateway.pid):
            continue
        for place in _behind_process(gateway):
            if not shares_pids(gateway.pid):  # its paths are those of its container
                place = Path(f"/proc/{gateway.pid}/root{place}")
            version = _in_environment(place)
            if version:
                return Installation(version, place, running=True)
    for place in _of_the_last(home):
        version = _in_environment(place) or _in_checkout(place)
        if version:
            return Installation(version, place, running=False)
    found = [
        Installation(version, place, running=False)
        for place in _places(home)
        if (version := _in_environment(place) or _in_checkout(place))
    ]
    return max(found, key=lambda one: one.release, default=None)


def installation_at(path: Path) -> Installation | None:
    """Return the Hermes in one environment or checkout; None if there is none."""
    version = _in_environment(path) or _in_checkout(path)
    return Installation(version, path, running=False) if version else None


def all_installations(home: Home) -> list[Installation]:
    """Return the Hermes on PATH and each one in a folder that Hermes' installers use."""
    found: dict[str, Installation] = {}
    for place in _places(home):
        one = installation_at(place)
        if one is not None:
            found.setdefault(os.path.realpath(place), one)
    return list(found.values())


def of_command_line(words: Sequence[str]) -> Installation | None:
    """Return the Hermes that a command line uses: by its program, or by an interpreter in it."""
    first = words[0] if "/" in words[0] else program_on_path(words[0])
    called = os.path.basename(words[0])
    if called == "pipx" or (called == "uv" and "tool" in words[1:2]):
        folder = "pipx" if called == "pipx" else "uv"
        places = (place for place in _tools() if folder in place.parts)
        return next((one for place in places if (one := installation_at(place))), None)
    for word in ([first] if first else []) + [w for w in words[1:] if w.startswith("/")]:
        if not _OF_ONE.fullmatch(os.path.basename(word)) or not os.path.isfile(word):
            continue
        for place in (Path(word).absolute().parent.parent, *_behind(Path(word))):
            one = installation_at(place)
            if one is not None:
                return one
    return None


def _of_the_home(home: Home, pid: int) -> bool:
    """Whether a process runs as the home's owner or as root; others are not trusted.

    It reads the status file, because a process can change the owner of its folder in /proc.
    """
    try:
        return {*_users(pid)} <= {0, os.stat(home.path).st_uid}
    except (OSError, ValueError):
        return False


def _users(pid: int) -> list[int]:
    """Return all uids of a process (effective, real, saved); OSError when it is gone."""
    if os.path.isdir("/proc/self"):
        with open(f"/proc/{pid}/status", errors="replace") as status:
            return [int(uid) for line in status if line[:4] == "Uid:" for uid in line.split()[1:]]
    import psutil

    try:
        return [*psutil.Process(pid).uids()]
    except psutil.Error as error:
        raise ProcessLookupError from error


def _behind_process(gateway: Gateway) -> Iterator[Path]:
    """Yield the environment of a process: by its command line, then by the files it has loaded."""
    if gateway.python:
        yield Path(gateway.python).parent.parent
    for line in process_stat.maps(gateway.pid).splitlines():
        before, found, _ = line.partition("/site-packages/")
        if found and "/" in before:
            yield Path(before[before.index("/") :]).parent.parent
            return


def _of_the_last(home: Home) -> Iterator[Path]:
    """Yield the folders that the last gateway was started from, by the files that it left."""
    import json

    for name in ("gateway.pid", "gateway_state.json"):
        try:
            data, taken = read(home / name, MEGABYTE)
            if {taken.uid, os.lstat(home / name).st_uid} - {0, os.stat(home.path).st_uid}:
                continue  # written by another user
            said = json.loads(data)
        except (OSError, CouldNotLook, ValueError, RecursionError):
            continue
        argv = said.get("argv") if isinstance(said, dict) else None
        program = Path(str(argv[0])) if isinstance(argv, list) and argv else Path()
        if program.is_absolute():
            yield from program.parents[1:7]
            return


def _places(home: Home) -> Iterator[Path]:
    """Yield the environments and checkouts where Hermes' installers put it, and that on PATH."""
    command = program_on_path("hermes")
    if command:
        yield from _behind(Path(command))
    user = user_home()
    root = home.path.parent.parent if home.profile else home.path
    for base in (root / "hermes-agent", user / ".hermes" / "hermes-agent", Path("/opt/hermes")):
        yield from (base / "venv", base / ".venv", base)
    yield from _tools()


def _tools() -> Iterator[Path]:
    """Yield the environments that uv and pipx make for Hermes."""
    user = user_home()
    for tools in (
        user / ".local/share/uv/tools",
        user / ".local/share/pipx/venvs",
        user / ".local/pipx/venvs",
        Path("/opt/pipx/venvs"),
    ):
        yield tools / "hermes-agent"


def program_on_path(name: str) -> str | None:
    """Return the path of a program on PATH; this tool's own launcher is skipped."""
    return next((path for path in which_all(name) if not _is_launcher(path)), None)


def _is_launcher(path: str) -> bool:
    try:
        return LAUNCHER in read_head(Path(path), 512)[0]
    except (OSError, CouldNotLook):
        return False


def _behind(command: Path) -> Iterator[Path]:
    """Yield the environments that a `hermes` command can belong to, by folder and interpreter."""
    try:
        real = command.resolve()
        yield real.parent.parent
        first = read_head(real, 4096)[0].split(b"\n")[0]
    except (OSError, RuntimeError, CouldNotLook):
        return
    if first.startswith(b"#!"):
        words = os.fsdecode(first[2:]).split()
        if words and Path(words[0]).is_absolute():
            yield Path(words[0]).parent.parent


def _in_environment(place: Path) -> str | None:
    """Return the Hermes version in this environment, by the dist-info in its site-packages."""
    found = []
    for lib in ("lib", "lib64", "Lib"):
        folders = [place / lib / name / "site-packages" for name in _names(place / lib)]
        for folder in [*folders, place / lib / "site-packages"]:
            found += [match[1] for name in _names(folder) if (match := _DIST.fullmatch(name))]
    return max(found, key=parse_release, default=None)


def _in_checkout(place: Path) -> str | None:
    """Return the version in the pyproject.toml of a Hermes checkout."""
    try:
        data, _ = read(place / "pyproject.toml", 1_000_000)
    except (FileNotFoundError, CouldNotLook):
        return None
    text = data.decode("utf-8", "replace")
    match = _CHECKOUT.search(text) if 'name = "hermes-agent"' in text else None
    return match[1] if match else None


def _names(folder: Path) -> list[str]:
    try:
        return list_folder(folder)
    except CouldNotLook:
        return []
