"""Mount plugin folders as packages, without using bytecode that others could have written."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.accounts import why_untrusted
from hermes_doctor.core.system.cached_calls import CachedCall, start_thread
from hermes_doctor.diagnosis.plugins.built_in import builtin

IMPORT_LIMIT = 5.0
"""Seconds that importing an operator's file may take."""


def refused_paths(folder: Path) -> dict[Path, str]:
    """Map the paths that must not be imported, even indirectly, to the reason."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.name == "__pycache__":  # never read
            continue
        inside = sorted(path.rglob("*")) if path.is_dir() and not path.is_symlink() else []
        why = next((why for one in (path, *inside) if (why := why_untrusted(one))), None)
        if why:
            found[path] = why
    return found


def import_source_only(folder: Path) -> None:
    """Import from this folder without bytecode, also later, when a check runs.

    Another user with write access to a __pycache__ could otherwise replace the code.
    """
    from importlib.machinery import FileFinder, SourceFileLoader

    class Source(SourceFileLoader):
        def path_stats(self, path: object) -> NoReturn:  # noqa: ARG002
            raise OSError  # without the source's mtime, no bytecode is read or written

    for place in (folder, *(one for one in folder.rglob("*") if one.is_dir())):
        sys.path_importer_cache[str(place)] = FileFinder(str(place), (Source, [".py"]))


def mount(folder: Path, package: str) -> None:
    """Make `folder` importable as `package`, so that its files can import each other."""
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
def bytecode_allowed(allowed: bool) -> Iterator[None]:
    """Allow or forbid reading and writing bytecode while the context lasts."""
    before = sys.dont_write_bytecode, sys.pycache_prefix
    if not allowed:  # nor read: another user could have written to a __pycache__
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
    """Import one file; one that takes too long is abandoned in its thread unless `patient`."""
    if patient:
        return importlib.import_module(name)
    cell = CachedCall(name, IMPORT_LIMIT)
    start_thread("plugin", cell, lambda: importlib.import_module(name))
    try:
        cell.wait()
    except CouldNotLook:
        raise TimeoutError from None
    if isinstance(cell.error, KeyboardInterrupt):  # raised by the plugin, not by the user
        raise ImportError(name=name)
    if cell.error is not None:
        raise cell.error
    module: ModuleType = cell.answer
    return module


def short_reason(error: BaseException) -> str:
    """Describe an error of a plugin in one line."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError at line {error.lineno}: {error.msg}"
    if isinstance(error, ImportError) and error.name:
        return f"{type(error).__name__}: {error.name}"
    trace, where = error.__traceback__, ""
    while trace is not None:
        where = f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return type(error).__name__ + where


ENTRY_POINTS = "hermes_doctor.plugins"


def installed_folders(broken: list[Broken]) -> Iterator[tuple[str, Path]]:
    """Yield the plugin folders that installed packages offer; add those that fail to `broken`."""
    if not _offered():
        return
    from importlib.metadata import entry_points

    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        try:
            with bytecode_allowed(False):
                why = _doubt(entry.module)
                if why:
                    broken.append(Broken(Path(entry.value), why))
                    continue
                module = import_plugin(entry.module, patient=False)
            if module.__file__ is None:
                raise ImportError(name=entry.module)
            yield entry.name.replace("-", "_"), Path(module.__file__).parent
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            broken.append(Broken(Path(entry.value), short_reason(error)))


def _doubt(name: str) -> str | None:
    """Say why a module must not be imported; checks its parent packages first."""
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    places: Sequence[str] | None = None
    whole = ""
    for part in name.split("."):
        whole = f"{whole}.{part}" if whole else part
        spec = PathFinder.find_spec(whole, places) if places is not None else find_spec(whole)
        if spec is None or spec.origin is None:
            return None  # the import will report what is wrong
        path = Path(spec.origin)
        for place in (path, path.parent):
            if why := why_untrusted(place):
                return why
        places = spec.submodule_search_locations
    return None


def _offered() -> bool:
    """Tell whether any installed package declares our entry point.

    With `importlib.metadata` instead, `check` takes 26 ms more CPU: 411 ms instead of 385 ms, on a
    used home beside a running gateway (`benchmarks/trees.py`).
    """
    for place in sys.path:
        try:
            with os.scandir(place or ".") as entries:
                infos = [e.path for e in entries if e.name.endswith(".dist-info")]
        except OSError:
            continue
        for info in infos:
            try:
                with open(f"{info}/entry_points.txt", "rb", 0) as file:
                    if ENTRY_POINTS.encode() in file.read():
                        return True
            except OSError:
                continue
    return False


def page_folders(folders: Sequence[Path]) -> list[Path]:
    """Return the built-in folder, those of installed packages and those of the operator."""
    with redirect_stdout(sys.stderr):  # what a package prints is not part of our output
        roots = [folder for _, folder in installed_folders([])]
    roots += [folder for folder in folders if why_untrusted(folder) is None]
    paths = [builtin("docs/failures"), *(root / "docs" / "failures" for root in roots)]
    return [folder for folder in paths if folder.is_dir()]
