"""Where the built-in checks, fixes and log rules are, and what is computed from them beforehand.

A wheel contains the computed files: `tools/build_hook.py` writes them. A checkout computes a file
when it is first needed and after each change of a source, and keeps it in `.generated`. A kept file
counts only if it belongs to this user or to root, nobody else may write it, and its first line is
the state of the sources. Where nothing can be kept, everything works without, and each start takes
seconds instead of a tenth of one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import hermes_doctor
from hermes_doctor.core.model import CouldNotLook

SIGNATURES = "signatures"
IN_WHEEL, IN_CHECKOUT = "generated", ".generated"
"""The folder of the computed files: in the package, or at the top of a checkout."""
_SOURCES = (".py", ".yaml", ".txt")
_MODE, _FOLDER_MODE = 0o644, 0o755
"""The owner of a home reads the files that root has computed."""
Compute = Callable[[], Mapping[str, str] | None]
"""Returns the texts of files by name; None if a mistake in the sources has to be shown."""


def builtin(kind: str) -> Path:
    """Return the path of the built-in `kind`: in the package (wheel) or next to it (checkout)."""
    here = _package()
    if (here / kind).is_dir():
        return here / kind
    if is_checkout():  # what is next to site-packages is not ours
        return here.parent / kind
    raise FileNotFoundError(f"this installation of hermes-doctor lacks its {kind}/; reinstall it")


def is_checkout() -> bool:
    """Whether the sources are those of a checkout, which may change at any time."""
    here = _package()
    return not (here / "checks").is_dir() and (here.parent / "pyproject.toml").is_file()


def computed(name: str, compute: Compute) -> bytes | None:
    """Return a computed file; None if there is none, so that its sources have to be read.

    In a checkout, `compute` is called if the file is missing or older than a source.
    """
    if not is_checkout():
        try:
            return (_package() / IN_WHEEL / name).read_bytes()
        except OSError:
            return None
    if name in _computed:
        return _computed[name]
    folder, state = builtin(IN_CHECKOUT), _state_of_sources()
    if state is not None and (kept := _kept(folder, name)):
        first_line, _, content = kept.partition(b"\n")
        if first_line == state:
            return content
    texts = compute()
    if texts is None:
        return None
    for other, text in texts.items():
        _computed[other] = text.encode()
        if state is not None:
            _keep(folder, other, b"%s\n%s" % (state, _computed[other]))
    return _computed[name]


_computed: dict[str, bytes] = {}
"""What this process has computed: it is not computed twice if it cannot be kept."""


def forget(name: str) -> None:
    """Have a file of a checkout computed again at the next start."""
    if is_checkout():
        _keep(builtin(IN_CHECKOUT), name, b"")


def _package() -> Path:
    return Path(hermes_doctor.__file__).parent


@cache
def _state_of_sources() -> bytes | None:
    """Identify the plugins and the code that reads them by sizes and times; None if unreadable."""
    import zlib

    folders = (*map(builtin, ("checks", "fixes")), Path(__file__).parent)
    try:
        states = sorted(source for folder in folders for source in _sources(os.fspath(folder)))
    except OSError:
        return None
    return b"%d sources %08x" % (len(states), zlib.crc32(repr(states).encode()))


def _sources(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SOURCES):
                st = entry.stat()
                yield entry.path, st.st_size, st.st_mtime_ns
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from _sources(entry.path)


def _kept(folder: Path, name: str) -> bytes | None:
    """Return a file of the folder unless another user could have written it."""
    if not _is_ours(folder):
        return None
    try:
        with open(
            os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
        ) as file:
            return file.read() if _only_we_write(os.fstat(file.fileno())) else None
    except OSError:
        return None


def _keep(folder: Path, name: str, content: bytes) -> None:
    """Write a file into the folder if that belongs to this user, or can be made as his."""
    from hermes_doctor.core.system import disk

    try:
        if os.stat(folder.parent).st_uid != os.geteuid():
            return
        if not os.path.lexists(folder):
            disk.make_folder(folder)
            disk.set_mode(folder, _FOLDER_MODE)
        if _is_ours(folder):
            disk.save(folder / name, content, _MODE)
    except (OSError, CouldNotLook):
        pass  # a read-only checkout, a full disk: it is computed each time


def _is_ours(folder: Path) -> bool:
    try:
        st = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(st.st_mode) and _only_we_write(st)


def _only_we_write(st: os.stat_result) -> bool:
    return st.st_uid in (0, os.geteuid()) and not st.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
