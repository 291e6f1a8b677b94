"""Import this package's modules from their cached bytecode, without Python's module search.

A check run loads some 350 modules, and finding one takes as long as running it. If the bytecode in
`__pycache__` matches its source (by the same rule as Python's own import), the module is loaded
from it directly. Everything else is left to Python, which also writes the bytecode for next time.

With Python's own search instead, `check` takes 22 ms more CPU: 407 ms instead of 385 ms, on a used
home with a running gateway (`benchmarks/trees.py`).
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
_TAG = sys.implementation.cache_tag
_HEAD = MAGIC_NUMBER + bytes(4)
"""The first bytes of bytecode that is validated by its source's time and size."""


class Made:
    """An import loader that executes code which is already compiled."""

    def __init__(self, code: CodeType) -> None:
        self._code = code

    def create_module(self, _: ModuleSpec) -> ModuleType | None:
        """Let Python create the module in the default way."""
        return None

    def get_code(self, _: str) -> CodeType:
        """Return the code, as Python's own loaders do."""
        return self._code

    def exec_module(self, module: ModuleType) -> None:
        """Execute the code in the module."""
        exec(self._code, vars(module))


class Finder:
    """An import finder for the modules of this package."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, _: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module with valid bytecode; None leaves the search to Python."""
        if path is None or not name.startswith(PACKAGE):
            return None
        for place in path:
            base = f"{place}/{name.rpartition('.')[2]}"
            for folder, stem in ((place, base), (base, f"{base}/__init__")):
                file = f"{stem}.py"
                cached = f"{folder}/__pycache__{stem[len(folder) :]}.{_TAG}.pyc"
                code = _bytecode(file, cached)
                if code is None:
                    continue
                spec = ModuleSpec(name, Made(code), origin=file)  # type: ignore[arg-type]
                spec.has_location = True
                spec.cached = cached  # otherwise Python computes it, slowly
                if folder == base:
                    spec.submodule_search_locations = [base]
                return spec
        return None


def _bytecode(file: str, cached: str) -> CodeType | None:
    """Return the cached bytecode of a source file; None if it is missing or outdated."""
    try:
        source = os.stat(file)
        with open(cached, "rb", 0) as f:
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


def install_finder() -> None:
    """Install the finder, unless Python's bytecode settings differ from the defaults."""
    usual = sys.flags.optimize == 0 and sys.pycache_prefix is None
    if usual and Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
