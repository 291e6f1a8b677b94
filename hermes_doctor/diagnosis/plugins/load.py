"""Load checks, fixes and log rules: built-in ones, those of packages and the operator's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import text
from hermes_doctor.core.model import PARTS, CouldNotLook, Effect
from hermes_doctor.core.system.accounts import why_untrusted
from hermes_doctor.core.system.files import MEGABYTE, read_if_there
from hermes_doctor.diagnosis.plugins import index
from hermes_doctor.diagnosis.plugins.built_in import SIGNATURES, builtin, is_checkout
from hermes_doctor.diagnosis.plugins.declare import Check, Fix
from hermes_doctor.diagnosis.plugins.log_rules.folder import ID, Folder, check_of
from hermes_doctor.diagnosis.plugins.mount import (
    Broken,
    bytecode_allowed,
    import_plugin,
    import_source_only,
    installed_folders,
    mount,
    refused_paths,
    short_reason,
)

if TYPE_CHECKING:
    from hermes_doctor.core.model import Effect
    from hermes_doctor.diagnosis.plugins.log_rules.rule import Explanation, Rule

T = TypeVar("T", Check, Fix)
PACKAGE = "hermes-gateway-doctor"


class Loaded(Generic[T]):
    """The checks or fixes that were loaded, in file order, and the files that failed."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self.broken: list[Broken] = []
        self._files: dict[str, Path] = {}
        """By id."""

    def add(self, path: Path, items: Sequence[T]) -> None:
        """Add what a file declares; an id that is in use already is refused."""
        for item in items:
            if item.id in self._files:
                why = f"its id {item.id} is taken by {self._files[item.id]}"
                self.broken.append(Broken(path, why))
            else:
                self._files[item.id] = path
                self.items.append(item)


class Plugins:
    """All checks, fixes and log rules that were loaded for one command."""

    def __init__(
        self,
        checks: Loaded[Check],
        fixes: Callable[[], Loaded[Fix]],
        broken: Sequence[Broken],
        signatures: LogRuleChecks,
    ) -> None:
        self.checks = (*checks.items, *signatures.checks)
        self._folders = signatures.folders
        self._broken = [*broken, *checks.broken, *signatures.broken]
        self._load_fixes = fixes

    @cached_property
    def fixes(self) -> tuple[Fix, ...]:
        """The fixes by id, loaded on first use because a healthy home needs none."""
        loaded = self._load_fixes()
        self._broken += loaded.broken
        return tuple(sorted(loaded.items, key=lambda fix: fix.id))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The log rules of all folders."""
        return tuple(rule for folder in self._folders for rule in folder.rule_set.rules)

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """The explanations of all folders: which finding explains which."""
        return tuple(
            explanation for folder in self._folders for explanation in folder.rule_set.explanations
        )

    @cached_property
    def effects(self) -> dict[str, Effect]:
        """What each problem does to the bot, by code; an operator's folder comes last and wins."""
        found: dict[str, Effect] = {}
        for folder in self._folders:
            found |= read_effects(folder.path)
        return found

    @property
    def broken(self) -> tuple[Broken, ...]:
        """The files and folders that were not loaded."""
        return tuple(self._broken)

    def fix(self, id: str) -> Fix | None:
        """Return the fix with this id."""
        return next((fix for fix in self.fixes if fix.id == id), None)


def load(folders: Sequence[Path] = ()) -> Plugins:
    """Load the built-in plugins, those of installed packages and those of the operator."""
    with redirect_stdout(sys.stderr):  # what a plugin prints is not part of our output
        roots, broken = _roots(folders)
        loaded = _load(Check, roots)
    plugins = Plugins(loaded, lambda: _fixes(roots), broken, _signatures(roots))
    if len(roots) > 1:
        _ = plugins.fixes  # report broken fixes of an operator at once
    return plugins


class LogRuleChecks(NamedTuple):
    """The log rules of all folders, with one check per folder."""

    checks: tuple[Check, ...]
    folders: tuple[Folder, ...]
    broken: tuple[Broken, ...]


def _signatures(roots: Sequence[tuple[str, Path]]) -> LogRuleChecks:
    """Load the built-in log rules and those of each root."""
    folders: list[Folder] = []
    made: list[Check] = []
    broken: list[Broken] = []
    places = [(ID, builtin("checks") / SIGNATURES)]
    places += [(f"{ID}-{n}", root / SIGNATURES) for n, (_, root) in enumerate(roots, 1)]
    for id, place in places:
        if not place.is_dir():
            continue
        suspects = (place, *sorted(place.glob("*.yaml"))) if id != ID else ()
        why = next((why for suspect in suspects if (why := why_untrusted(suspect))), None)
        if why:
            broken.append(Broken(place, why))
            continue
        folder = Folder(place, ours=id == ID)
        folders.append(folder)
        broken += [
            Broken(fault.path, f"line {fault.line}: {fault.what}") for fault in folder.faults
        ]
        if folder.codes:
            made.append(check_of(id, folder))
    return LogRuleChecks(tuple(made), tuple(folders), tuple(broken))


def _fixes(roots: Sequence[tuple[str, Path]]) -> Loaded[Fix]:
    with redirect_stdout(sys.stderr):
        return _load(Fix, roots)


def _roots(folders: Sequence[Path]) -> tuple[list[tuple[str, Path]], list[Broken]]:
    """Return the folders to load from, each with the package name it is mounted as."""
    roots: list[tuple[str, Path]] = []
    broken: list[Broken] = []
    for name, folder in installed_folders(broken):
        roots.append((f"hermes_doctor_installed_{name}", folder))
    for n, folder in enumerate(folders):
        why = why_untrusted(folder)
        kinds = (*index.FOLDERS.values(), SIGNATURES)
        if why is None and not any((folder / kind).is_dir() for kind in kinds):
            why = "contains neither a checks/ nor a fixes/ nor a signatures/ folder"
        if why:
            broken.append(Broken(folder, why))
        else:
            roots.append((f"hermes_doctor_plugins_{n}", folder.resolve()))
    return roots, broken


def _load(kind: type[T], roots: Sequence[tuple[str, Path]]) -> Loaded[T]:
    """Load every `kind` from the built-in folder, then from each root's folder of that name."""
    name = index.FOLDERS[kind]
    loaded: Loaded[T] = Loaded()
    _load_builtin(kind, builtin(name), loaded)
    for prefix, root in roots:
        folder = root / name
        if not folder.is_dir():
            continue
        if why := why_untrusted(folder):
            loaded.broken.append(Broken(folder, why))
            continue
        package = f"{prefix}.{name}"
        with bytecode_allowed(False):
            mount(folder, package)
            import_source_only(folder)
            refused = refused_paths(folder)
            for path, why in refused.items():
                loaded.broken.append(Broken(path, why))
                sys.modules[f"{package}.{path.name.partition('.')[0]}"] = None  # type: ignore[assignment]
            for path in sorted(folder.glob("[!_]*.py"), key=str):
                if path not in refused:
                    _import(kind, path, package, loaded, patient=False)
    return loaded


def _load_builtin(kind: type[T], folder: Path, found: Loaded[T]) -> None:
    """Load what comes with the tool, and say if a part of it is missing."""
    package = f"hermes_doctor.{folder.name}"
    mount(folder, package)
    number, indexed = index.read(kind) or (0, {})
    for path in sorted(folder.glob("[!_]*.py"), key=str):
        if path.name in indexed:
            found.add(path, indexed[path.name])
        else:
            _import(kind, path, package, found, patient=True)
    found.items.sort(key=lambda plugin: plugin.id)  # `list` shows them by id, whatever their files
    if found.broken or is_checkout():
        return
    if not number:
        why = f"the index of the built-in {folder.name} is missing or damaged; reinstall {PACKAGE}"
        found.broken.append(Broken(folder, why))
    elif (missing := number - len(found.items)) > 0:
        why = "{missing} of the {number} built-in {name} are missing; reinstall {package}"
        values = {"missing": missing, "number": number, "name": folder.name, "package": PACKAGE}
        found.broken.append(Broken(folder, text(why, **values)))


def _import(kind: type[T], path: Path, package: str, found: Loaded[T], *, patient: bool) -> None:
    try:
        module = import_plugin(f"{package}.{path.stem}", patient=patient)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        found.broken.append(Broken(path, short_reason(error)))
        return
    found.add(path, index.declared_in(module, kind))


EFFECTS = "effects.txt"


def read_effects(folder: Path) -> dict[str, Effect]:
    """The effects by code; a line that is not `CODE PART WORDS` is ignored."""
    try:
        if_there = read_if_there(folder / EFFECTS, MEGABYTE)
    except (CouldNotLook, OSError):
        return {}
    effects = {}
    data = if_there[0] if if_there else b""
    for line in data.decode("utf-8", "replace").splitlines():
        words = line.split(None, 2)
        if len(words) == 3 and not line.startswith("#") and words[1] in PARTS:
            effects[words[0]] = Effect(words[1], words[2])
    return effects
