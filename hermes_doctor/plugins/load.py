"""Finds checks and fixes in folders: the built-in ones and an operator's own, by one code."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.plugins.declare import Check, Fix
from hermes_doctor.plugins.log_rules import checks
from hermes_doctor.plugins.log_rules.folder import Folder
from hermes_doctor.system import time_limits
from hermes_doctor.system.once import Cell
from hermes_doctor.system.trust import distrust

if TYPE_CHECKING:
    from hermes_doctor.plugins.log_rules.rule import Cause, Rule

T = TypeVar("T", Check, Fix)
IMPORT_LIMIT = 5.0
"""Seconds that a file of an operator's may take to load."""
ENTRY_POINTS = "hermes_doctor.plugins"
SIGNATURES = "signatures"
_FOLDERS: dict[type[Check] | type[Fix], str] = {Check: "checks", Fix: "fixes"}


class Broken(NamedTuple):
    """A plugin folder or file that was not loaded, and why."""

    path: Path
    why: str


class Loaded(Generic[T]):
    """What the folders held, in file order, with what failed set apart."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self.broken: list[Broken] = []


class Plugins:
    """Everything that was loaded for one command."""

    def __init__(
        self,
        checks: Loaded[Check],
        fixes: Callable[[], Loaded[Fix]],
        broken: Sequence[Broken],
        pages: Sequence[Path],
        signatures: Signatures,
    ) -> None:
        self.checks = (*checks.items, *signatures.checks)
        self._folders = signatures.folders
        self.pages = tuple(pages)
        """The folders that hold a page a code."""
        self._broken = [*broken, *checks.broken, *signatures.broken]
        self._load_fixes = fixes

    @cached_property
    def fixes(self) -> tuple[Fix, ...]:
        """The fixes, loaded when first asked for: a healthy home needs none."""
        loaded = self._load_fixes()
        self._broken += loaded.broken
        return tuple(loaded.items)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What lines of a log mean."""
        return tuple(rule for folder in self._folders for rule in folder.held.rules)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Which finding explains which."""
        return tuple(cause for folder in self._folders for cause in folder.held.causes)

    @property
    def broken(self) -> tuple[Broken, ...]:
        """What was not loaded."""
        return tuple(self._broken)

    def fix(self, id: str) -> Fix | None:
        """The fix of that id."""
        return next((one for one in self.fixes if one.id == id), None)


def load(folders: Sequence[Path] = ()) -> Plugins:
    """The built-in checks and fixes, those of installed packages, and those of the operator."""
    with redirect_stdout(sys.stderr):  # what a plugin prints is not part of our answer
        roots, broken = _roots(folders)
        loaded = _load(Check, roots)
    pages = [builtin("docs/failures"), *(root / "docs" / "failures" for _, root in roots)]
    found = Plugins(
        loaded,
        lambda: _fixes(roots),
        broken,
        [page for page in pages if page.is_dir()],
        _signatures(roots),
    )
    if len(roots) > 1:
        _ = found.fixes  # an operator is told at once that his fix does not load
    return found


class Signatures(NamedTuple):
    """The log rules of all folders: each folder is one check."""

    checks: tuple[Check, ...]
    folders: tuple[Folder, ...]
    broken: tuple[Broken, ...]


def _signatures(roots: Sequence[tuple[str, Path]]) -> Signatures:
    """The log rules that come with the tool, and those of each root."""
    found: list[Folder] = []
    made: list[Check] = []
    broken: list[Broken] = []
    places = [(checks.ID, builtin("checks") / SIGNATURES)]
    places += [(f"{checks.ID}-{n}", root / SIGNATURES) for n, (_, root) in enumerate(roots, 1)]
    for id, place in places:
        if not place.is_dir():
            continue
        suspects = (place, *sorted(place.glob("*.yaml"))) if id != checks.ID else ()
        why = next((why for one in suspects if (why := distrust(one))), None)
        if why:
            broken.append(Broken(place, why))
            continue
        folder = Folder(place, ours=id == checks.ID)
        found.append(folder)
        broken += [Broken(one.path, f"line {one.line}: {one.what}") for one in folder.faults]
        if folder.codes:
            made.append(checks.check_of(id, folder))
    return Signatures(tuple(made), tuple(found), tuple(broken))


def _fixes(roots: Sequence[tuple[str, Path]]) -> Loaded[Fix]:
    with redirect_stdout(sys.stderr):
        return _load(Fix, roots)


def builtin(kind: str) -> Path:
    """Where the built-in `kind` lies: inside the package in a wheel, beside it in a checkout."""
    here = Path(__file__).parent.parent
    if (here / kind).is_dir():
        return here / kind
    if (here.parent / "pyproject.toml").is_file():  # in site-packages, beside us is not ours
        return here.parent / kind
    raise FileNotFoundError(f"this installation of hermes-doctor lacks its {kind}/; reinstall it")


def _roots(folders: Sequence[Path]) -> tuple[list[tuple[str, Path]], list[Broken]]:
    """The folders to load from, each with the package name it is mounted as."""
    roots: list[tuple[str, Path]] = []
    broken: list[Broken] = []
    for name, folder in _installed(broken):
        roots.append((f"hermes_doctor_installed_{name}", folder))
    for n, folder in enumerate(folders):
        why = distrust(folder)
        kinds = (*_FOLDERS.values(), SIGNATURES)
        if why is None and not any((folder / kind).is_dir() for kind in kinds):
            why = "holds neither a checks/ nor a fixes/ nor a signatures/ folder"
        if why:
            broken.append(Broken(folder, why))
        else:
            roots.append((f"hermes_doctor_plugins_{n}", folder.resolve()))
    return roots, broken


def _installed(broken: list[Broken]) -> Iterator[tuple[str, Path]]:
    """The folders that installed packages offer through the entry point."""
    if not _offered():
        return
    from importlib.metadata import entry_points

    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        try:
            with _bytecode(False):
                why = _doubt(entry.module)
                if why:
                    broken.append(Broken(Path(entry.value), why))
                    continue
                module = _import(entry.module, patient=False)
            if module.__file__ is None:
                raise ImportError(name=entry.module)
            yield entry.name.replace("-", "_"), Path(module.__file__).parent
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            broken.append(Broken(Path(entry.value), _short(error)))


def _doubt(name: str) -> str | None:
    """Why a module of an installed package must not be imported; its package is judged first."""
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    places: Sequence[str] | None = None
    whole = ""
    for part in name.split("."):
        whole = f"{whole}.{part}" if whole else part
        spec = PathFinder.find_spec(whole, places) if places is not None else find_spec(whole)
        if spec is None or spec.origin is None:
            return None  # importing it will say what is wrong
        path = Path(spec.origin)
        for place in (path, path.parent):
            if why := distrust(place):
                return why
        places = spec.submodule_search_locations
    return None


def _offered() -> bool:
    """Whether any installed package names our entry point.

    With `importlib.metadata` instead, `check` takes 28 ms more CPU: 332 ms instead of 304 ms, on a
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
                if ENTRY_POINTS.encode() in Path(info, "entry_points.txt").read_bytes():
                    return True
            except OSError:
                continue
    return False


def _load(kind: type[T], roots: Sequence[tuple[str, Path]]) -> Loaded[T]:
    """Every `kind` of the built-in folder, then of each root's folder of that name."""
    name = _FOLDERS[kind]
    found: Loaded[T] = Loaded()
    folders = [("hermes_doctor", builtin(name), True)]
    folders += [(prefix, root / name, False) for prefix, root in roots]
    seen: dict[str, Path] = {}
    for prefix, folder, ours in folders:
        if not folder.is_dir():
            continue
        why = None if ours else distrust(folder)
        if why:
            found.broken.append(Broken(folder, why))
            continue
        package = f"{prefix}.{name}"
        with _bytecode(ours):
            mount(folder, package)
            if not ours:
                _only_source(folder)
            refused = {} if ours else _refused(folder)
            for path, why in refused.items():
                found.broken.append(Broken(path, why))
                sys.modules[f"{package}.{path.name.partition('.')[0]}"] = None  # type: ignore[assignment]
            for path in sorted(folder.glob("[!_]*.py")):
                if path in refused:
                    continue
                try:
                    module = _import(f"{package}.{path.stem}", patient=ours)
                except BaseException as error:
                    if isinstance(error, KeyboardInterrupt):
                        raise
                    found.broken.append(Broken(path, _short(error)))
                    continue
                for thing in vars(module).values():
                    if not isinstance(thing, kind):
                        continue
                    if thing.id in seen:
                        why = f"its id {thing.id} is taken by {seen[thing.id]}"
                        found.broken.append(Broken(path, why))
                    else:
                        seen[thing.id] = path
                        found.items.append(thing)
    return found


def _import(name: str, *, patient: bool) -> ModuleType:
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


def _short(error: BaseException) -> str:
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
