"""Mount a folder of plugins as a package, and never run bytecode that others could write."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.system import time_limits
from hermes_doctor.system.once import Cell
from hermes_doctor.system.trust import distrust

IMPORT_LIMIT = 5.0
"""Seconds that a file of an operator's may take to load."""


def _refused(folder: Path) -> dict[Path, str]:
    """What in the folder must not be imported, not even by a file that may: with the reason."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.name == "__pycache__":  # never read from
            continue
        inside = sorted(path.rglob("*")) if path.is_dir() and not path.is_symlink() else []
        why = next((why for one in (path, *inside) if (why := distrust(one))), None)
        if why:
            found[path] = why
    return found


def _only_source(folder: Path) -> None:
    """Import from here without any bytecode, also later, when a check runs: who may write to a
    __pycache__ could replace the code."""
    from importlib.machinery import FileFinder, SourceFileLoader

    class Source(SourceFileLoader):
        def path_stats(self, path: object) -> NoReturn:  # noqa: ARG002
            raise OSError  # without a time of the source no bytecode is read or written

    for place in (folder, *(one for one in folder.rglob("*") if one.is_dir())):
        sys.path_importer_cache[str(place)] = FileFinder(str(place), (Source, [".py"]))


def mount(folder: Path, package: str) -> None:
    """Make `folder` importable as `package`, so that its files can import one another."""
    mounted = sys.modules.get(package)
    if mounted is not None:
        if list(getattr(mounted, "__path__", [])) == [str(folder)]:
            return
        for name in [n for n in sys.modules if n == package or n.startswith(package + ".")]:
            del sys.modules[name]
    parent, _, _ = package.rpartition(".")
    for name, places in ((parent, []), (package, [str(folder)])):
        if name not in sys.modules:
            module = ModuleType(name)
            module.__path__ = places
            sys.modules[name] = module
    sys.path_importer_cache.pop(str(folder), None)  # its files may have changed since


@contextmanager
def _bytecode(allowed: bool) -> Iterator[None]:
    """Loading must write nothing into an operator's folder."""
    before = sys.dont_write_bytecode, sys.pycache_prefix
    if not allowed:  # nor is any read: who may write to a __pycache__ could replace the code
        sys.dont_write_bytecode, sys.pycache_prefix = True, os.devnull
    try:
        yield
    finally:
        sys.dont_write_bytecode, sys.pycache_prefix = before


class Broken(NamedTuple):
    """A plugin folder or file that was not loaded, and why."""

    path: Path
    why: str


def import_plugin(name: str, *, patient: bool) -> ModuleType:
    """Import one file; an operator's that never ends is left behind in its thread."""
    if patient:
        return importlib.import_module(name)
    cell = Cell()
    thread = threading.Thread(
        target=cell.fill, args=(lambda: importlib.import_module(name),), daemon=True
    )
    thread.start()
    if not time_limits.Stopwatch(cell.began).wait(cell.done, IMPORT_LIMIT):
        raise TimeoutError
    if isinstance(cell.error, KeyboardInterrupt):  # not ours: nobody pressed a key in there
        raise ImportError(name=name)
    if cell.error is not None:
        raise cell.error
    module: ModuleType = cell.answer
    return module


def short_reason(error: BaseException) -> str:
    """One line for an error of somebody else's code."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError at line {error.lineno}: {error.msg}"
    if isinstance(error, ImportError) and error.name:
        return f"{type(error).__name__}: {error.name}"
    trace, where = error.__traceback__, ""
    while trace is not None:
        where = f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return type(error).__name__ + where
