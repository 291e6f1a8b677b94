"""Writes what a command would print to a file, which a monitor may read at any moment.

The user names the file, perhaps by mistake: nothing is written inside a Hermes home, and a file
that this tool did not write is replaced only if it is empty or with --force.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from hermes_doctor.core import home as homes
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.outgoing import clean_lines
from hermes_doctor.core.system.files import user_home
from hermes_doctor.core.system.named_path import NamedPath, open_folder_of

_NEW_FILE_MODE = 0o666
WORLD_READABLE = 0o644
"""The mode of a file that another user's service reads; the umask does not change it."""
_PART = 1024 * 1024
"""Characters of a report that are made fit to leave at once, and the rest of the line."""
_OURS = re.compile(
    rb"hermes-doctor [0-9]|HERMES [A-Z]+ - |# HELP hermes_doctor_|::(error|warning|notice) |"
    rb'\{.*"schema": "hermes-doctor/|<\?xml[^>]*>\s*<testsuites name="hermes-doctor"',
    re.DOTALL,
)
"""How a file begins that this tool wrote, in any format."""
_OF_HERMES = ("state.db", "kanban.db", "gateway_state.json", "gateway.lock", "auth.json", "SOUL.md")
"""A folder with two of these is a home, whether the command works on it or not."""


class Rules(NamedTuple):
    """What may be written."""

    homes: tuple[Path, ...] = ()
    """The homes that the command works on; nothing is written into them or any other."""
    force: bool = False
    """Whether to replace a file that this tool did not write."""
    advice: str = "Name another file, or delete it first."
    """What to do about such a file."""


NO_RULES = Rules()


def rules_for(
    found: Iterable[homes.Home], *, force: bool = False, advice: str = Rules().advice
) -> Rules:
    """The rules for a command that works on these homes."""
    paths = [path for home in found for path in (home.path, homes.root_home(home).path)]
    return Rules(tuple(dict.fromkeys(paths)), force, advice)


def find(given: Path, rules: Rules = NO_RULES) -> Path:
    """Return the file that is meant; raise Trouble if no file may be written there."""
    with _opened(given, rules) as place:
        return place.path


@contextmanager
def _opened(given: Path, rules: Rules) -> Iterator[NamedPath]:
    """Open the folder of the file that is meant; behind a link, that is the file it leads to."""
    path = given
    with contextlib.ExitStack() as stack:
        try:
            path = given.expanduser()
            place = stack.enter_context(open_folder_of(path))
        except (OSError, RuntimeError, ValueError) as error:
            raise _why_not(error, given, path) from None
        found = place.found
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise _not_a_file(place.path)
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=place.fd, effective_ids=True):
            raise Trouble(
                "Cannot write to {path}: you may not write to its folder.", path=place.path
            )
        above = os.fstat(place.fd)
        if (
            found is not None
            and above.st_mode & stat.S_ISVTX
            and found.st_uid not in (os.geteuid(), above.st_uid)
        ):
            raise Trouble(
                "{path} belongs to another user (uid {uid}). Name another file.",
                path=place.path,
                uid=found.st_uid,
            )
        if inside := _home_around(place, rules.homes):
            raise Trouble(
                "Cannot write to {path}: it is inside the Hermes home {home}. Name a place "
                "outside of it.",
                path=place.path,
                home=inside,
            )
        if found is not None and not rules.force and not _is_ours(place, found):
            raise Trouble(
                "{path} exists and was not written by hermes-doctor. {advice}",
                path=place.path,
                advice=rules.advice,
            )
        yield place


def _why_not(error: OSError | RuntimeError | ValueError, given: Path, path: Path) -> Trouble:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ELOOP:
        return Trouble("Cannot write to {path}: its links form a loop.", path=given)
    if number == errno.EISDIR:
        return _not_a_file(path)
    if number in (errno.ENOENT, errno.ENOTDIR):
        return Trouble(
            "Cannot write to {path}: its folder does not exist. Create it first.", path=path
        )
    why = os.strerror(number).lower() if number else str(error)
    return Trouble("Cannot write to {path}: {why}.", path=given, why=why)


def _not_a_file(path: Path) -> Trouble:
    return Trouble("{path} is not a file. Name a file to write to.", path=path)


def _home_around(place: NamedPath, known: Iterable[Path]) -> Path | None:
    """The home that a place is in, whatever name it was reached by."""
    numbers = {}
    for path in (*known, user_home() / ".hermes", homes.CONTAINER_HOME):
        with contextlib.suppress(OSError):
            if homes.looks_like_home(path):
                st = os.stat(path)
                numbers[st.st_dev, st.st_ino] = path
    for depth, fd in enumerate(place.folders):
        st = os.fstat(fd)
        if (st.st_dev, st.st_ino) in numbers:
            return numbers[st.st_dev, st.st_ino]
        seen = 0
        for name in _OF_HERMES:
            with contextlib.suppress(OSError):
                os.stat(name, dir_fd=fd, follow_symlinks=False)
                seen += 1
        if seen > 1:
            return Path(*place.path.parts[: depth + 1])
    return None


def _is_ours(place: NamedPath, found: os.stat_result) -> bool:
    """Whether a file is empty, or begins as one that this tool wrote."""
    if not found.st_size:
        return True
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(place.name, flags, dir_fd=place.fd)
    except OSError:
        return False
    try:
        return _OURS.match(os.read(fd, 4096)) is not None
    except OSError:
        return False
    finally:
        os.close(fd)


def replace(given: Path, made: str, mode: int | None = None, rules: Rules = NO_RULES) -> None:
    """Replace the file atomically: a reader sees the old content or the new.

    An existing file keeps its mode, and its owner and group as far as we may give them. A new file
    gets the `mode`, or what the umask leaves.
    """
    with _opened(given, rules) as place:
        _replace(place, made, mode)


def _replace(place: NamedPath, made: str, mode: int | None) -> None:
    temporary, fd = None, place.fd
    try:
        old = place.found
        private = old is not None or mode is not None
        name = f".{token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        new = os.open(name, flags, 0o600 if private else _NEW_FILE_MODE, dir_fd=fd)
        temporary = name
        with open(new, "wb") as file:
            file.writelines(_clean(made))
            file.flush()
            if old is not None:
                try:
                    os.fchown(new, old.st_uid, old.st_gid)
                except PermissionError:
                    with contextlib.suppress(PermissionError):
                        os.fchown(new, -1, old.st_gid)
                os.fchmod(new, stat.S_IMODE(old.st_mode))
            elif mode is not None:
                os.fchmod(new, mode)
            os.fsync(new)
        os.replace(temporary, place.name, src_dir_fd=fd, dst_dir_fd=fd)
    except OSError as error:
        _remove(temporary, fd)
        why = os.strerror(error.errno) if error.errno else str(error)
        raise Trouble("Could not write {path}: {why}.", path=place.path, why=why) from None
    except BaseException:  # Ctrl-C
        _remove(temporary, fd)
        raise


def _remove(temporary: str | None, folder: int) -> None:
    if temporary is not None:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)


def _clean(made: str) -> Iterator[bytes]:
    """Yield a report that is fit to leave, in parts of whole lines.

    To look for secrets in the reports on 1,000 homes at once would need 600 MB of memory.
    """
    start = 0
    while start < len(made):
        end = made.find("\n", start + _PART) + 1 or len(made)
        yield clean_lines(made[start:end]).encode(errors="replace")
        start = end


def show(made: str) -> None:
    """Print in UTF-8, which monitors expect, even if the terminal has another encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.writelines(_clean(made))
    sys.stdout.buffer.flush()
