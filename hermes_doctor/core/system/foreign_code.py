"""Find code of other users that a Python environment would run, without running any of it.

Python runs what is in the folders of `sys.path`, and these folders can name others: by a `.pth`
file, an egg link, the finder of an editable installation, or `pyvenv.cfg`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.core.message import text
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system.accounts import MISSING, Account, why_untrusted

MOST_FILES = 400_000
"""A Hermes with all of its packages has 30,000."""
_MOST_BYTES = 1_000_000
_QUOTED = re.compile(r"""["'](/[^"'\n]+)["']""")
_IMPORT = re.compile(r"import[ \t]")
_MODULE = re.compile(r"\bimport[ \t]+(\w+)")
_OTHER = re.compile(r"\.git|node_modules")
"""Folders of a checkout without modules of Python."""


def refuse_foreign_code(python: Path, user: Account | None) -> None:
    """Raise CannotFix if this interpreter would run code of another user as root."""
    if os.geteuid() != 0 or (user is not None and user.uid != 0):
        return
    if why := why_foreign(python):
        raise CannotFix("root does not run the code of this Hermes: {reason}.", reason=why)


def why_foreign(python: Path) -> str | None:
    """Return why root must not run this interpreter; None if only root could have changed its code.

    The interpreter, its settings, its libraries and every folder that these name must belong to
    root, and no other user may write there.
    """
    search = _Search()
    try:
        search.look_at_interpreter(python)
    except _Foreign as why:
        return why.reason
    except (OSError, ValueError) as error:
        return text("could not check {path} ({error})", path=python, error=type(error).__name__)
    return None


class _Foreign(Exception):
    """Says whose code there is."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Search:
    """The folders that were looked at."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.files = 0

    def look_at_interpreter(self, python: Path) -> None:
        _require(python)
        real = python.resolve()
        prefixes = {python.absolute().parent.parent}
        bases = {real.parent.parent}
        for program in {python, real}:
            paths = program.with_name(f"{program.name}._pth")  # replaces all other folders
            if paths.exists():
                for named in self._named_by(paths.parent, _read(paths)):
                    self._look_at_named(named)
        complete = True  # it uses the packages of the whole system
        for settings in (python.parent / "pyvenv.cfg", python.parent.parent / "pyvenv.cfg"):
            if settings.exists():
                _require(settings)
                content = _read(settings)
                pairs = (line.partition("=") for line in content.splitlines())
                values = {name.strip().lower(): value.strip() for name, _, value in pairs}
                home = values.get("home", "")
                if home.startswith("/"):
                    _require(Path(home))
                    bases |= {Path(home).parent, Path(home).resolve().parent}
                complete = values.get("include-system-site-packages", "").lower() == "true"
                break
        for prefix in prefixes - (set() if complete else bases):
            for packages in prefix.glob("lib*/python*/site-packages"):
                self.look_at_site(packages)
        for base in bases:
            self._look_at_base(base, complete)

    def _look_at_base(self, base: Path, complete: bool) -> None:
        if not base.is_dir():
            return
        for library in base.glob("lib*/*.so*"):
            _require(library)
        for folder in (*base.glob("lib*/python3.*"), *base.glob("lib*/python*.zip")):
            self.look_at(folder, without=("site-packages", "dist-packages"))
        if complete:
            for name in ("site-packages", "dist-packages"):
                for place in {base, base / "local"}:
                    for packages in place.glob(f"lib*/python*/{name}"):
                        self.look_at_site(packages)

    def look_at_site(self, folder: Path) -> None:
        """Look at a folder whose `.pth` files are obeyed."""
        self.look_at(folder)
        for name in sorted(os.listdir(folder)):
            if name.endswith((".pth", ".egg-link")):
                for named in self._named_by(folder, _read(folder / name)):
                    self._look_at_named(named)

    def _named_by(self, folder: Path, content: str) -> Iterator[Path]:
        """Yield the paths in a `.pth` file, and those in the modules that it imports."""
        for line in content.splitlines():
            if line.startswith("#") or not line.strip():
                continue
            if not _IMPORT.match(line):
                yield folder / line.strip()
                continue
            yield from map(Path, _QUOTED.findall(line))
            for module in _MODULE.findall(line):
                file = folder / f"{module}.py"
                if file.exists():
                    yield from map(Path, _QUOTED.findall(_read(file)))

    def _look_at_named(self, path: Path) -> None:
        """Look at a folder or file; where there is none, nobody else may be able to put one."""
        while not os.path.lexists(path) and path != path.parent:
            path = path.parent
            if os.path.lexists(path):
                _require(path)
                return
        self.look_at(path)

    def look_at(self, folder: Path, without: tuple[str, ...] = ()) -> None:
        """Look at everything in a folder, following its symlinks."""
        _require(folder)
        waiting = [os.path.realpath(folder)]
        while waiting:
            place = waiting.pop()
            if place in self.seen or not os.path.isdir(place):
                continue
            self.seen.add(place)
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.name in without or _OTHER.fullmatch(entry.name):
                        continue
                    self.files += 1
                    if self.files > MOST_FILES:
                        raise _Foreign(text("{path} has too many files to check", path=folder))
                    if not entry.is_dir() and not entry.is_file():
                        continue  # a device or a broken symlink has no code
                    if entry.is_symlink():
                        _require(Path(entry.path))
                    else:
                        _require_own(entry)
                    if entry.is_dir():
                        waiting.append(os.path.realpath(entry.path))


def _require(path: Path) -> None:
    why = why_untrusted(path)
    if why and why != MISSING:
        raise _Foreign(why)


def _require_own(entry: os.DirEntry[str]) -> None:
    """Raise for a file or folder that another user could have changed; its folder was checked."""
    st = entry.stat(follow_symlinks=False)
    if st.st_uid not in (0, os.geteuid()) or st.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        _require(Path(entry.path))


def _read(path: Path) -> str:
    """Read a small file as Python does: without a mark for UTF-8, and with paths of any bytes."""
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise _Foreign(text("{path} is too large to check", path=path))
    return data.decode("utf-8-sig", "surrogateescape")
