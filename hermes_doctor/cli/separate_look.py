"""Look at a home with the rights of its owner: as root, in a separate process that has become him.

What root needs is loaded here before that process starts, unless the owner may read this tool and
Python themselves.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hermes_doctor.lazy import EMPTY

if TYPE_CHECKING:
    from hermes_doctor.history.receipts import EndedRun
    from hermes_doctor.home import Home
    from hermes_doctor.model import Report
    from hermes_doctor.plugins.load import Plugins
    from hermes_doctor.system.privileges import Privileges
    from hermes_doctor.system.separate_process import Action

T = TypeVar("T")
STANDARD = (
    *("_sqlite3", "array", "ast", "base64", "binascii", "bisect", "codecs", "concurrent.futures"),
    *("concurrent.futures.thread", "copy", "ctypes", "dataclasses", "difflib", "dotenv", "fcntl"),
    *("fnmatch", "getpass", "hashlib", "heapq", "http.client", "importlib.metadata", "inspect"),
    *("ipaddress", "json", "linecache", "logging", "lzma", "bz2", "marshal", "mmap", "platform"),
    *("plistlib", "psutil", "pty", "pwd", "queue", "rich.console", "rich.progress", "rich.text"),
    *("secrets", "select", "shlex", "shutil", "socket", "sqlite3", "ssl", "string", "struct"),
    *("subprocess", "tarfile", "tempfile", "termios", "textwrap", "tomllib", "traceback"),
    *("unicodedata", "urllib.error", "urllib.parse", "urllib.request", "xml.etree.ElementTree"),
    *("xml.parsers.expat", "yaml", "zipfile", "zlib", "zoneinfo", "dotenv.parser"),
    *("dotenv.variables", "_strptime", "calendar", "locale", "importlib.resources"),
)
"""What functions of this tool import when they are called."""
REPAIRING = ("asking", "cli", "history.receipts", "render", "watch.repair_run")
"""What commands that repair import themselves; a package is loaded with all its modules."""
_NOT_LOADED = tuple(
    f"hermes_doctor.{name}"
    for name in ("__main__", "asking", "cli", "history", "learning", "render", "watch")
)


def look(
    home: Path,
    work: Callable[[], T],
    modules: tuple[str, ...] = (),
    plugins: Plugins | None = None,
    *,
    limit: float = math.inf,
    otherwise: Callable[[], T] | None = None,
    repairs: bool = False,
    more: Mapping[str, Action] = EMPTY,
    keep: Sequence[int] = (),
) -> T:
    """Return what `work` returns; as root in another user's home, it runs in a separate process.

    The result then consists of plain values, of those of `hermes_doctor.model` and the `modules`,
    and comes within `limit` seconds. In any other home, return what `otherwise` does, if given.
    If it `repairs` the home, root does for it also what `gateway/root_actions.py` lists. `more` are
    actions of the command itself, and `keep` open files that the process gets.
    """
    otherwise = otherwise or work
    user = owner_of(home)
    if user is None:
        return otherwise()
    from hermes_doctor import outgoing
    from hermes_doctor.known_secrets import watch_home
    from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
    from hermes_doctor.preferences import places
    from hermes_doctor.probes import root_actions
    from hermes_doctor.redaction import clean
    from hermes_doctor.secret_forms import Secret
    from hermes_doctor.system import separate_process

    _prepare(user, modules, plugins, repairs=repairs)
    # The other process reads the home's secrets, too: only it opens files there.
    outgoing.known.remove_source(home)

    def work_and_tell_secrets() -> tuple[T, list[tuple[str, str]]]:
        watch_home(home)
        try:
            result = work()
        except (CannotFix, CouldNotLook, Trouble) as why:  # root does not know what to hide
            raise type(why)(clean(str(why))) from None
        return result, [(one.value, one.name) for one in outgoing.known.all()]

    actions = dict(root_actions.actions(home, user.uid))
    if repairs:
        from hermes_doctor.gateway import root_actions as repairing

        actions |= {**repairing.actions(home, user.uid), **more}
    with places.remembered():
        result, secrets = separate_process.run_as(
            user,
            work_and_tell_secrets,
            actions,
            modules,
            limit,
            writes=repairs,
            keep=keep,
            closed=None if user.can_reach else home,
        )
    outgoing.known.add(Secret(*one) for one in secrets)
    return result


def owner_of(home: Path) -> Privileges | None:
    """Return the user as whom root works in a home; None if this process works in it itself."""
    if os.geteuid() != 0 or sys.platform != "linux":
        return None
    from hermes_doctor.model import CouldNotLook
    from hermes_doctor.system import files, links_of_others, privileges

    files.judge = links_of_others.refuse_led_out
    try:
        user = privileges.owner_of_home(home)
    except PermissionError:  # a root that may not become others
        return None
    except OSError as error:
        raise CouldNotLook(files.reason(error, home)) from error
    return user


_prepared: set[tuple[int, tuple[str, ...], bool, bool]] = set()
"""By user, modules, kind of work, and whether with plugins: for whom all can be read or is
loaded."""


def _prepare(
    user: Privileges, modules: tuple[str, ...], plugins: Plugins | None, *, repairs: bool
) -> None:
    """Load what the work needs, if the user may not read it; once in the life of a watch."""
    from hermes_doctor.system import privileges

    wanted = (user.uid, modules, repairs, plugins is not None)
    if wanted in _prepared:
        return
    if not privileges.may_read(user, list(_own_files())):
        load_everything(modules)
        if repairs:
            load_for_repairs()
        if plugins is not None:
            _ = (plugins.rules, plugins.explanations, plugins.effects, plugins.fixes)
    _prepared.add(wanted)


def know_secrets(home: Path) -> None:
    """Let the owner's process read what to hide, for a command that opens nothing else there."""
    import contextlib

    from hermes_doctor.model import CouldNotLook

    with contextlib.suppress(CouldNotLook):  # the owner cannot prevent the command by that
        look(home, lambda: None)


def look_at(home: Path, examine: Callable[[], Report], plugins: Plugins) -> Report:
    """Return the report of an examination of a home; see `look`."""
    return look(home, examine, plugins=plugins)


def ended_runs(home: Home, known: Sequence[EndedRun]) -> list[EndedRun]:
    """Read the receipts of a home; see `look`."""
    from hermes_doctor.history import receipts

    return look(home.path, lambda: receipts.ended_runs(home, known), (receipts.__name__,))


def _own_files() -> Iterator[str]:
    """Yield Python, its library, and every file of this tool."""
    import hermes_doctor
    from hermes_doctor.plugins.load import builtin

    yield from (sys.executable, os.__file__, os.path.dirname(os.__file__))
    yield from (path for path in sys.path if os.path.exists(path))
    tops = (*hermes_doctor.__path__, str(builtin("checks")), str(builtin("fixes")))
    for top in tops:
        for base, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name != "__pycache__"]
            yield base
            yield from (f"{base}/{name}" for name in files)


def load_everything(modules: Sequence[str] = ()) -> None:
    """Import all modules and read all files of this tool that the work may need; also these."""
    import contextlib
    import encodings
    import importlib
    import pkgutil

    import hermes_doctor
    from hermes_doctor import known_secrets
    from hermes_doctor.knowledge import data
    from hermes_doctor.plugins import load

    _ = load.load().fixes  # mounts the folders of checks and fixes
    for name in (*STANDARD, *modules):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    importlib.import_module("hermes_doctor.cli.progress_bars")
    for module in pkgutil.walk_packages(hermes_doctor.__path__, "hermes_doctor."):
        if not module.name.startswith(_NOT_LOADED):
            importlib.import_module(module.name)
    for module in pkgutil.walk_packages(encodings.__path__, "encodings."):
        with contextlib.suppress(ImportError):  # some exist only on Windows
            importlib.import_module(module.name)
    for kind in ("checks", "fixes"):
        for path in load.builtin(kind).glob("[!_]*.py"):
            importlib.import_module(f"hermes_doctor.{kind}.{path.stem}")
    data.load_all()
    known_secrets.load_own_texts()


def load_for_repairs() -> None:
    """Import also what shows a repair, asks about it, and what these libraries import late."""
    import contextlib
    import importlib
    import pkgutil

    for name in (*(f"hermes_doctor.{one}" for one in REPAIRING), "rich", "typer"):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{name}."):
            if not module.name.endswith("__main__"):
                with contextlib.suppress(ImportError, AssertionError):  # some are for Windows
                    importlib.import_module(module.name)
