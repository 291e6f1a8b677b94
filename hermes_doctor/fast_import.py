"""Our own modules, imported without the search that Python makes for each one.

A look loads some 350 of them, and to find one takes as long as to run it. Where its bytecode lies
beside it and is that of its source, as the import of Python judges it, the module is made from
that at once. Anything else is left to Python, which also writes the bytecode for the next time.

With Python's own search instead, `check` takes 18 ms more CPU: 322 ms instead of 304 ms, on a used
home beside a running gateway (`benchmarks/trees.py`).
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib_external import MAGIC_NUMBER
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

PACKAGE = "hermes_doctor."
_HEAD = MAGIC_NUMBER + bytes(4)
"""How bytecode begins that goes by the time and the size of its source."""


class _Made:
    """Runs code that is there already."""

    def __init__(self, code: CodeType) -> None:
        self._code = code

    def create_module(self, _: ModuleSpec) -> ModuleType | None:
        """As usual."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Run it."""
        exec(self._code, vars(module))


class Finder:
    """Finds the modules of our package."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, _: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What to make a module of; None where Python shall look for itself."""
        if path is None or not name.startswith(PACKAGE):
            return None
        for place in path:
            base = f"{place}/{name.rpartition('.')[2]}"
            for folder, stem in ((place, base), (base, f"{base}/__init__")):
                file = f"{stem}.py"
                code = _bytecode(folder, file)
                if code is None:
                    continue
                spec = ModuleSpec(name, _Made(code), origin=file)  # type: ignore[arg-type]
                spec.has_location = True
                if folder == base:
                    spec.submodule_search_locations = [base]
                return spec
        return None


def _bytecode(folder: str, file: str) -> CodeType | None:
    """The bytecode of a source, if it is there and fits."""
    stem = file[len(folder) + 1 : -3]
    try:
        source = os.stat(file)
        with open(f"{folder}/__pycache__/{stem}.{sys.implementation.cache_tag}.pyc", "rb", 0) as f:
            data = f.read()
    except OSError:
        return None
    made = (int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF)
    told = (int.from_bytes(data[8:12], "little"), int.from_bytes(data[12:16], "little"))
    if data[:8] != _HEAD or made != told:
        return None
    try:
        code = marshal.loads(memoryview(data)[16:])
    except (EOFError, ValueError, TypeError):
        return None
    return code if isinstance(code, CodeType) else None


def quickly() -> None:
    """Import our own modules so from now on."""
    usual = sys.flags.optimize == 0 and sys.pycache_prefix is None
    if usual and Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
