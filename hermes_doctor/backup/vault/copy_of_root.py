"""Let root open a copy that the operator has named, for a process that works as a home's owner.

That is an archive, or a zip or a snapshot that Hermes has made, to which perhaps only root can get.
The process gets open files to read, and of a folder only what its manifest lists. What lies in a
folder of another user is opened with the rights of that user.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hermes_doctor.backup.vault import age, age_of_root, hermes_backups
from hermes_doctor.backup.vault.age import NamedCopy
from hermes_doctor.backup.vault.manifest import MANIFEST
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import privileges
from hermes_doctor.core.system.files import open_regular
from hermes_doctor.core.system.named_path import open_folder_of
from hermes_doctor.core.system.privileges import Privileges, as_owner_of
from hermes_doctor.core.system.separate_process import Action, OpenFile


@contextmanager
def opened(
    copy: NamedCopy, home: Home, owner: Privileges
) -> Iterator[tuple[NamedCopy, Mapping[str, Action]]]:
    """Yield the copy as the process is to know it, and what root does for it.

    What the owner can open himself, such as a backup in the home, is left to the process.
    """
    with ExitStack() as stack:
        path = Path(os.path.abspath(copy.path.expanduser()))
        source: int | None = None
        more: dict[str, Action] = {}
        if "/" not in copy.name and not path.is_file():
            pass  # a backup's id
        elif _is_of_owner(path, home, owner):
            copy = copy._replace(name=str(path))
        elif (path / MANIFEST).is_file():
            more["open_in_copy"] = _Snapshot(path).open
            copy = copy._replace(kind="snapshot", mtime_ns=path.stat().st_mtime_ns)
        elif path.is_file():
            source = _open(path)
            stack.callback(os.close, source)
            if age.is_open_archive(source):
                copy = copy._replace(kind="archive")
            elif path.suffix == ".zip":
                more["open_in_copy"] = lambda _: OpenFile(os.dup(source))
                copy = copy._replace(kind="zip", mtime_ns=os.fstat(source).st_mtime_ns)
        given = source if copy.kind == "archive" else None
        of_age = stack.enter_context(age_of_root.actions(copy.keys, source=given))
        yield copy, {**of_age, **more}


def _is_of_owner(path: Path, home: Home, owner: Privileges) -> bool:
    if any(path.is_relative_to(top) for top in (home.path, home.named) if top):
        return True
    user = privileges.of(path)
    return user is not None and user.uid == owner.uid and user.can_reach


def _open(path: Path) -> int:
    """Open a file as output files are: behind no link of another user, and in no other's place."""
    try:
        with open_folder_of(path) as place:
            shared = os.fstat(place.fd).st_mode & stat.S_ISVTX
            with as_owner_of(place.path) as here:
                fd = open_regular(here, follow=False)
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        raise Trouble("Could not read {path} ({reason}).", path=path, reason=why) from None
    if shared and os.fstat(fd).st_nlink != 1:
        os.close(fd)
        raise Trouble(
            "{path} has a second name, which another user could have given to a file of root. "
            "Copy it to a folder of root's, and name the copy.",
            path=path,
        )
    return fd


class _Snapshot:
    """A folder that Hermes has made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: set[str] | None = None

    def open(self, name: str) -> OpenFile | None:
        """Open a file of it that its manifest lists; None if it does not exist."""
        if name != MANIFEST and name not in self._listed():
            raise CouldNotLook("{file} is not in the manifest", file=name)
        try:
            return OpenFile(hermes_backups.open_in_folder(self._folder / name))
        except FileNotFoundError:
            return None

    def _listed(self) -> set[str]:
        if self._names is None:
            listed = hermes_backups.names_of(self._folder)
            self._names = {name + end for name in listed for end in ("", "-wal", "-journal")}
        return self._names
