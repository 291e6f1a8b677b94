"""Decide whether root may trust a file or folder: no other user could have changed it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_doctor.message import text

MISSING = "it does not exist"


def why_untrusted(
    path: Path, *, strict: bool = False, trusted_uids: Sequence[int] = ()
) -> str | None:
    """Return why code from this path must not run; None if it may.

    It must not run if another user could have written it, or could replace a folder or a symlink
    on the way to it. A sticky folder is allowed on the way, since users cannot rename the files of
    others in it. With `strict`, only a folder may follow a sticky folder: another user could have
    moved a file or a symlink of root's into it. Root also trusts the `trusted_uids`.
    """
    try:
        way = list(_way(path))
    except FileNotFoundError:
        return MISSING
    except (OSError, ValueError) as error:
        return text("could not check it ({error})", error=type(error).__name__)
    passed = dict(way)
    for place, st in way:
        above = passed.get(place.parent)
        if strict and above and not stat.S_ISDIR(st.st_mode) and above.st_mode & stat.S_ISVTX:
            return text("other users may write to {folder}", folder=place.parent)
        if st.st_uid not in (0, os.geteuid(), *trusted_uids):
            return text(
                "{path} belongs to neither root nor you (uid {uid})", path=place, uid=st.st_uid
            )
        shared = st.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(st.st_mode)
        if shared and not (place != way[-1][0] and st.st_mode & stat.S_ISVTX):
            return text(
                "other users may write to {path} (chmod go-w {path} solves that)", path=place
            )
    return None


def _way(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield every folder and symlink on the way to a path, following the symlinks."""
    rest, here, links = list(path.absolute().parts[1:]), Path("/"), 0
    yield here, os.lstat(here)
    while rest:
        name = rest.pop(0)
        if name == "..":
            here = here.parent
            continue
        place = here / name
        st = os.lstat(place)
        yield place, st
        if not stat.S_ISLNK(st.st_mode):
            here = place
            continue
        links += 1
        if links > 40:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = Path(os.readlink(place))
        rest = [part for part in target.parts if part != "/"] + rest
        here = Path("/") if target.is_absolute() else here
