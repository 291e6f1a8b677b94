"""Find the plugins that installed packages offer through an entry point."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_doctor.core.system.accounts import why_untrusted
from hermes_doctor.diagnosis.plugins.mount import (
    Broken,
    bytecode_allowed,
    import_plugin,
    short_reason,
)

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
