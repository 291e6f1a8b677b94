"""Load checks, fixes and log rules: built-in ones, those of packages and the operator's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.plugins import built_in, index
from hermes_doctor.plugins.declare import Check, Fix
from hermes_doctor.plugins.effects import read_effects
from hermes_doctor.plugins.entry_points import installed_folders
from hermes_doctor.plugins.log_rules import checks
from hermes_doctor.plugins.log_rules.folder import Folder
from hermes_doctor.plugins.mount import (
    Broken,
    bytecode_allowed,
    import_plugin,
    import_source_only,
    mount,
    refused_paths,
    short_reason,
)
from hermes_doctor.system.trust import why_untrusted

if TYPE_CHECKING:
    from hermes_doctor.model import Effect
    from hermes_doctor.plugins.log_rules.rule import Explanation, Rule

T = TypeVar("T", Check, Fix)
SIGNATURES = "signatures"
_FOLDERS: dict[type[Check] | type[Fix], str] = {Check: "checks", Fix: "fixes"}
_NUMBERS = {"checks": built_in.CHECKS, "fixes": built_in.FIXES}


class Loaded(Generic[T]):
    """The checks or fixes that were loaded, in file order, and the files that failed."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self.broken: list[Broken] = []


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
        """The fixes, loaded on first use because a healthy home needs none."""
        loaded = self._load_fixes()
        self._broken += loaded.broken
        return tuple(loaded.items)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The log rules of all folders."""
        return tuple(rule for folder in self._folders for rule in folder.rule_set.rules)

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """The explanations of all folders: which finding explains which."""
        return tuple(one for folder in self._folders for one in folder.rule_set.explanations)

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
        return next((one for one in self.fixes if one.id == id), None)


def load(folders: Sequence[Path] = ()) -> Plugins:
    """Load the built-in plugins, those of installed packages and those of the operator."""
    with redirect_stdout(sys.stderr):  # what a plugin prints is not part of our output
        roots, broken = _roots(folders)
        loaded = _load(Check, roots)
    found = Plugins(
        loaded,
        lambda: _fixes(roots),
        broken,
        _signatures(roots),
    )
    if len(roots) > 1:
        _ = found.fixes  # report broken fixes of an operator at once
    return found


class LogRuleChecks(NamedTuple):
    """The log rules of all folders, with one check per folder."""

    checks: tuple[Check, ...]
    folders: tuple[Folder, ...]
    broken: tuple[Broken, ...]


def _signatures(roots: Sequence[tuple[str, Path]]) -> LogRuleChecks:
    """Load the built-in log rules and those of each root."""
    found: list[Folder] = []
    made: list[Check] = []
    broken: list[Broken] = []
    places = [(checks.ID, builtin("checks") / SIGNATURES)]
    places += [(f"{checks.ID}-{n}", root / SIGNATURES) for n, (_, root) in enumerate(roots, 1)]
    for id, place in places:
        if not place.is_dir():
            continue
        suspects = (place, *sorted(place.glob("*.yaml"))) if id != checks.ID else ()
        why = next((why for one in suspects if (why := why_untrusted(one))), None)
        if why:
            broken.append(Broken(place, why))
            continue
        folder = Folder(place, ours=id == checks.ID)
        found.append(folder)
        broken += [Broken(one.path, f"line {one.line}: {one.what}") for one in folder.faults]
        if folder.codes:
            made.append(checks.check_of(id, folder))
    return LogRuleChecks(tuple(made), tuple(found), tuple(broken))


def _fixes(roots: Sequence[tuple[str, Path]]) -> Loaded[Fix]:
    with redirect_stdout(sys.stderr):
        return _load(Fix, roots)


def builtin(kind: str) -> Path:
    """Return the path of the built-in `kind`: in the package (wheel) or next to it (checkout)."""
    here = Path(__file__).parent.parent
    if (here / kind).is_dir():
        return here / kind
    if (here.parent / "pyproject.toml").is_file():  # what is next to site-packages is not ours
        return here.parent / kind
    raise FileNotFoundError(f"this installation of hermes-doctor lacks its {kind}/; reinstall it")


def _roots(folders: Sequence[Path]) -> tuple[list[tuple[str, Path]], list[Broken]]:
    """Return the folders to load from, each with the package name it is mounted as."""
    roots: list[tuple[str, Path]] = []
    broken: list[Broken] = []
    for name, folder in installed_folders(broken):
        roots.append((f"hermes_doctor_installed_{name}", folder))
    for n, folder in enumerate(folders):
        why = why_untrusted(folder)
        kinds = (*_FOLDERS.values(), SIGNATURES)
        if why is None and not any((folder / kind).is_dir() for kind in kinds):
            why = "contains neither a checks/ nor a fixes/ nor a signatures/ folder"
        if why:
            broken.append(Broken(folder, why))
        else:
            roots.append((f"hermes_doctor_plugins_{n}", folder.resolve()))
    return roots, broken


def _load(kind: type[T], roots: Sequence[tuple[str, Path]]) -> Loaded[T]:
    """Load every `kind` from the built-in folder, then from each root's folder of that name."""
    name = _FOLDERS[kind]
    found: Loaded[T] = Loaded()
    folders = [("hermes_doctor", builtin(name), True)]
    folders += [(prefix, root / name, False) for prefix, root in roots]
    seen: dict[str, Path] = {}
    for prefix, folder, ours in folders:
        if not folder.is_dir():
            continue
        why = None if ours else why_untrusted(folder)
        if why:
            found.broken.append(Broken(folder, why))
            continue
        package = f"{prefix}.{name}"
        with bytecode_allowed(ours):
            mount(folder, package)
            if not ours:
                import_source_only(folder)
            refused = {} if ours else refused_paths(folder)
            for path, why in refused.items():
                found.broken.append(Broken(path, why))
                sys.modules[f"{package}.{path.name.partition('.')[0]}"] = None  # type: ignore[assignment]
            indexed = index.read(folder, package, kind) if ours else {}
            for path in sorted(folder.glob("[!_]*.py"), key=str):
                if path in refused:
                    continue
                things = indexed.get(path.name)
                if things is None:
                    try:
                        module = import_plugin(f"{package}.{path.stem}", patient=ours)
                    except BaseException as error:
                        if isinstance(error, KeyboardInterrupt):
                            raise
                        found.broken.append(Broken(path, short_reason(error)))
                        continue
                    things = [one for one in vars(module).values() if isinstance(one, kind)]
                for thing in things:
                    if thing.id in seen:
                        why = f"its id {thing.id} is taken by {seen[thing.id]}"
                        found.broken.append(Broken(path, why))
                    else:
                        seen[thing.id] = path
                        found.items.append(thing)
        if ours and not found.broken and (gone := _NUMBERS[name] - len(found.items)) > 0:
            found.broken.append(Broken(folder, _why_missing(gone, name)))
    return found


def _why_missing(gone: int, name: str) -> str:
    return text(
        "{gone} of the {number} built-in {name} are missing; reinstall hermes-gateway-doctor",
        gone=gone,
        number=_NUMBERS[name],
        name=name,
    )
