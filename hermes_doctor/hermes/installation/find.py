"""Find the installed Hermes by its files, without running any of its code."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook, Gateway
from hermes_doctor.core.system.files import (
    MEGABYTE,
    names_in,
    read,
    read_head,
    read_tail,
    user_home,
    which_all,
)
from hermes_doctor.hermes.knowledge import parse_release
from hermes_doctor.hermes.processes import process_stat
from hermes_doctor.hermes.processes.home_of import shares_pids, user_ids

LAUNCHER = b"\n# Written by hermes-doctor: "
"""The text that identifies this tool's launcher, which hides the real `hermes` on PATH."""
DIST_INFO = pattern(r"hermes_agent-(\d[^-]*)\.dist-info")
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
    installations = [
        Installation(version, place, running=False)
        for place in _places(home)
        if (version := _in_environment(place) or _in_checkout(place))
    ]
    return max(installations, key=lambda one: one.release, default=None)


def installation_at(path: Path) -> Installation | None:
    """Return the Hermes in one environment or checkout; None if there is none."""
    version = _in_environment(path) or _in_checkout(path)
    return Installation(version, path, running=False) if version else None


def all_installations(home: Home) -> list[Installation]:
    """Return the Hermes on PATH and each one in a folder that Hermes' installers use."""
    found: dict[str, Installation] = {}
    for place in _places(home):
        installation = installation_at(place)
        if installation is not None:
            found.setdefault(os.path.realpath(place), installation)
    return list(found.values())


def of_command_line(words: Sequence[str]) -> Installation | None:
    """Return the Hermes that a command line uses: by its program, or by an interpreter in it."""
    first = words[0] if "/" in words[0] else program_on_path(words[0])
    called = os.path.basename(words[0])
    if called == "pipx" or (called == "uv" and "tool" in words[1:2]):
        folder = "pipx" if called == "pipx" else "uv"
        places = (place for place in _tools() if folder in place.parts)
        return next(
            (installation for place in places if (installation := installation_at(place))), None
        )
    for word in ([first] if first else []) + [w for w in words[1:] if w.startswith("/")]:
        if not _OF_ONE.fullmatch(os.path.basename(word)) or not os.path.isfile(word):
            continue
        for place in (Path(word).absolute().parent.parent, *_behind(Path(word))):
            installation = installation_at(place)
            if installation is not None:
                return installation
    return None


def _of_the_home(home: Home, pid: int) -> bool:
    """Whether a process runs as the home's owner or as root; others are not trusted.

    It reads the status file, because a process can change the owner of its folder in /proc.
    """
    users = user_ids(pid)
    try:
        return users is not None and users <= {0, os.stat(home.path).st_uid}
    except OSError:
        return False


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
            data, snapshot = read(home / name, MEGABYTE)
            if {snapshot.uid, os.lstat(home / name).st_uid} - {0, os.stat(home.path).st_uid}:
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
    except (OSError, RuntimeError):
        return
    yield real.parent.parent
    interpreter = interpreter_of(real)
    if interpreter and interpreter.is_absolute():
        yield interpreter.parent.parent


def interpreter_of(script: Path) -> Path | None:
    """Return the interpreter that the first line of a script names."""
    try:
        first = read_head(script, 4096)[0].split(b"\n")[0]
    except (OSError, CouldNotLook):
        return None
    words = os.fsdecode(first[2:]).split() if first.startswith(b"#!") else []
    return Path(words[0]) if words else None


def _in_environment(place: Path) -> str | None:
    """Return the Hermes version in this environment, by the dist-info in its site-packages."""
    found = []
    for lib in ("lib", "lib64", "Lib"):
        folders = [place / lib / name / "site-packages" for name in names_in(place / lib)]
        for folder in [*folders, place / lib / "site-packages"]:
            found += [match[1] for name in names_in(folder) if (match := DIST_INFO.fullmatch(name))]
    return max(found, key=parse_release, default=None)


def _in_checkout(place: Path) -> str | None:
    """Return the version in the pyproject.toml of a Hermes checkout."""
    match = _CHECKOUT.search(file_text(place / "pyproject.toml")) if is_checkout(place) else None
    return match[1] if match else None


def is_checkout(folder: Path) -> bool:
    """Tell whether a folder is a checkout of Hermes."""
    return 'name = "hermes-agent"' in file_text(folder / "pyproject.toml")


def file_text(path: Path) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        return read(path, MEGABYTE)[0].decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, CouldNotLook):
        return ""


AUTOSTASH = b"hermes-update-autostash"
_MIDDLE = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}
_INDEX = 64 * MEGABYTE
_REVISION = pattern(r"[0-9a-f]{40,64}")
_ENTRY = 62
"""The bytes of an index entry before its name."""


class Leftovers(NamedTuple):
    """What an unfinished update left in a checkout."""

    stashes: int
    """The number of stashes that an update made and did not apply again."""
    unfinished_operation: str | None
    """The operation that git has not finished, such as a merge."""
    unmerged: int
    """The number of files with a conflict in the index; counted in a deep check run only."""


def find_leftovers(checkout: Path, *, deep: bool) -> Leftovers:
    """Find what an unfinished update left in a checkout."""
    folder = git_folder(checkout)
    try:
        log = read_tail(folder / "logs" / "refs" / "stash", MEGABYTE)[0]
    except (OSError, CouldNotLook):
        log = b""
    stashes = sum(AUTOSTASH in line for line in log.split(b"\n"))
    middle = next((what for name, what in _MIDDLE.items() if os.path.lexists(folder / name)), None)
    return Leftovers(stashes, middle, _unmerged(folder / "index") if deep else 0)


def git_folder(checkout: Path) -> Path:
    """Return git's folder of a checkout; in a linked worktree `.git` is a file that names it."""
    git = checkout / ".git"
    text = file_text(git)
    return checkout / text[8:].strip() if text.startswith("gitdir: ") else git


def branch_of(checkout: Path) -> str | None:
    """Return the branch that is checked out; None if HEAD is a commit."""
    head = file_text(git_folder(checkout) / "HEAD").strip()
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None


def revision_of(checkout: Path) -> str | None:
    """Return the commit of HEAD, read from git's files."""
    git = git_folder(checkout)
    head = file_text(git / "HEAD").strip()
    if not head.startswith("ref: "):
        return head if _REVISION.fullmatch(head) else None
    name = head[5:]
    shared = git / (file_text(git / "commondir").strip() or ".")  # worktrees share the branches
    commit = file_text(shared / name).strip()
    for line in file_text(shared / "packed-refs").splitlines() if not commit else ():
        revision, _, what = line.partition(" ")
        if what == name:
            commit = revision
    return commit if _REVISION.fullmatch(commit) else None


def _unmerged(index: Path) -> int:
    """Count the files with several versions in an index of format 2 or 3."""
    try:
        data, _ = read(index, _INDEX)
        magic, version, count = struct.unpack(">4sII", data[:12])
    except (OSError, CouldNotLook, struct.error):
        return 0
    if magic != b"DIRC" or version not in (2, 3):
        return 0
    names: set[bytes] = set()
    at = 12
    for _ in range(count):
        if at + _ENTRY > len(data):
            break
        (flags,) = struct.unpack(">H", data[at + 60 : at + 62])
        begin = at + (_ENTRY + 2 if flags & 0x4000 else _ENTRY)
        end = data.find(b"\0", begin)
        if end < 0:
            break
        if flags & 0x3000:
            names.add(data[begin:end])
        at += (end - at + 8) // 8 * 8
    return len(names)
