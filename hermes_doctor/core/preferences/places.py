"""Where the operator's files are, and whether they can be trusted.

They are outside of every Hermes home, so that an agent that works in its home cannot mute its own
problems. A file that another user could have written is refused.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system.accounts import MISSING, why_untrusted
from hermes_doctor.core.system.files import MEGABYTE, read, user_home

SYSTEM = Path("/etc/hermes-doctor")
"""The folder for all users."""
CONFIG, MUTES = "config.toml", "mutes.json"

_hidden = False
_remembered: dict[Path, tuple[bytes | Trouble | None, float]] | None = None
"""What the files contain and when they were changed, in a process that may no longer read them."""


class InsideHome(Trouble):
    """A file of the operator is inside the Hermes home."""


def folders() -> tuple[Path, Path]:
    """The folder for all users, and the one of this user, whose settings win."""
    return SYSTEM, own_folder()


def own_folder() -> Path:
    """The folder of this user."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    config = Path(base) if os.path.isabs(base) else user_home() / ".config"
    return config / "hermes-doctor"


def writing_folder() -> Path:
    """Where this user's mutes are stored: root's are for all users."""
    chosen = os.path.isabs(os.environ.get("XDG_CONFIG_HOME", ""))
    return SYSTEM if os.geteuid() == 0 and not chosen else own_folder()


def existing(name: str) -> list[Path]:
    """The files with this name that exist, or that could not be looked for."""
    if _hidden:
        return []
    places = dict.fromkeys(folder / name for folder in folders())
    if _remembered is not None:
        return [path for path in places if path in _remembered]
    return [path for path in places if _is_there(path)]


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Read all files now, because a process that has become another user may not read them."""
    global _remembered
    found: dict[Path, tuple[bytes | Trouble | None, float]] = {}
    for path in (*existing(CONFIG), *existing(MUTES)):
        with contextlib.suppress(FileNotFoundError):
            try:
                found[path] = read_trusted(path), changed_at(path)
            except Trouble as trouble:
                found[path] = trouble, 0.0
    before, _remembered = _remembered, found
    try:
        yield
    finally:
        _remembered = before


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """Act as if there were no files of the operator: the demo is the same for everybody."""
    global _hidden
    before, _hidden = _hidden, True
    try:
        yield
    finally:
        _hidden = before


def _is_there(path: Path) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        # Reading it says why. The folder of another user, whose HOME this process has, is not ours.
        return path.parent == SYSTEM or bool(os.environ.get("XDG_CONFIG_HOME"))
    return True


def refuse_inside(home: Path) -> None:
    """Raise InsideHome if one of the files is inside this home."""
    for path in (*existing(CONFIG), *existing(MUTES)):
        refuse_path_inside(path, home)


def refuse_path_inside(path: Path, home: Path) -> None:
    """Raise InsideHome if the path leads into the home, where an agent could change it."""
    if any(Path(os.path.realpath(one)).is_relative_to(home) for one in (path, path.parent)):
        raise InsideHome(
            "Refused to use {path}: it is inside the Hermes home, where the agent could change "
            "it. Set XDG_CONFIG_HOME to another folder.",
            path=path,
        )


def read_trusted(path: Path) -> bytes | None:
    """Read a file; None if it does not exist. Raise Trouble if it cannot be read or trusted."""
    if _remembered is not None:
        known, _ = _remembered.get(path, (None, 0.0))
        if isinstance(known, Trouble):
            raise known
        return known
    if not _is_there(path):
        return None
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            raise Trouble("Could not read {path}: it is not a file.", path=path)
        why = why_untrusted(path)
        if why == MISSING:
            return None  # removed at this moment
        if why:
            raise Trouble("Refused to read {path}: {reason}.", path=path, reason=why)
        return read(path, MEGABYTE)[0]
    except FileNotFoundError:
        if os.path.islink(path):
            raise Trouble("{path} is a link that leads nowhere.", path=path) from None
        return None  # removed at this moment
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise Trouble("Could not read {path}: {reason}.", path=path, reason=reason) from None
    except CouldNotLook as doubt:
        raise Trouble("Could not read {path}: {reason}.", path=path, reason=doubt) from None


def changed_at(path: Path) -> float:
    """When the disk says that a file was changed, in seconds since the epoch."""
    if _remembered is not None and path in _remembered:
        return _remembered[path][1]
    return os.stat(path).st_ctime
