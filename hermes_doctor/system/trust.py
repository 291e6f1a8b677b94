"""Whether root may trust a file or folder: nobody else could have changed it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path


def distrust(path: Path, *, firm: bool = False, also: Sequence[int] = ()) -> str | None:
    """Why code from this place must not run: somebody else could have written it, or could put
    something else in the place of a folder or a symlink on the way to it.

    A sticky folder is passed, since nobody can move there what is another's. Firmly, only on to a
    folder: a file or a symlink of root's can have been moved into it by somebody else. `also` are
    users whom root trusts.
    """
    try:
        way = list(_way(path))
    except FileNotFoundError:
        return "does not exist"
    except (OSError, ValueError) as error:
        return f"cannot be looked at ({type(error).__name__})"
    passed = dict(way)
    for place, st in way:
        above = passed.get(place.parent)
        if firm and above and not stat.S_ISDIR(st.st_mode) and above.st_mode & stat.S_ISVTX:
            return f"others may write to {place.parent}"
        if st.st_uid not in (0, os.geteuid(), *also):
            return f"{place} belongs to neither root nor you (uid {st.st_uid})"
        shared = st.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(st.st_mode)
        if shared and not (place != way[-1][0] and st.st_mode & stat.S_ISVTX):
            return f"others may write to {place}; chmod go-w {place}"
    return None


def _way(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Everything that is passed on the way to a path, symlinks and what they lead through too."""
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
