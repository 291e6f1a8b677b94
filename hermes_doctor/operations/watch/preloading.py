"""Loads into the watch what its processes need each round, so that none has to load it again.

Each process tells what it had to load: modules, files of knowledge and patterns of log rules. Only
what belongs to this tool is then loaded: nothing of a home.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import re
import sys
from collections.abc import Sequence

from hermes_doctor.core.lazy import compile_patterns
from hermes_doctor.diagnosis.plugins.load import Plugins
from hermes_doctor.diagnosis.plugins.log_rules import matcher
from hermes_doctor.hermes.knowledge import data

OURS = "hermes_doctor"
_STARTS_A_PROGRAM = frozenset({"antigravity", "idlelib", "this", "turtle", "turtledemo"})
_ROOTS = frozenset({OURS, "psutil", "yaml", "_yaml", *sys.stdlib_module_names}) - _STARTS_A_PROGRAM
_NAME = re.compile(r"[A-Za-z0-9_]+(?:[./-][A-Za-z0-9_]+)*")
_MOST = 5000
"""Names that one process may tell."""


class Preloading:
    """What the watch has loaded, and what its last process had to load in addition."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._modules: set[str] = set()
        self._files: set[str] = set()
        self._patterns: set[str] = set()

    def begin(self) -> None:
        """Note, in a process that begins, what the watch has loaded."""
        self._modules = {*sys.modules}
        self._files = {*data.loaded_names()}
        self._patterns = {*matcher.compiled_patterns()}

    def news(self) -> list[list[str]]:
        """What this process had to load: modules, files of knowledge, patterns of log rules."""
        return [
            [module for module in sys.modules if module not in self._modules],
            [loaded_name for loaded_name in data.loaded_names() if loaded_name not in self._files],
            [
                compiled_pattern
                for compiled_pattern in matcher.compiled_patterns()
                if compiled_pattern not in self._patterns
            ],
        ]

    def load(self, news: Sequence[Sequence[str]]) -> None:
        """Load what a process had to load."""
        if not any(news):
            return
        modules, files = (
            [one for one in names[:_MOST] if _NAME.fullmatch(one)] for names in news[:2]
        )
        if any(module.startswith(f"{OURS}.fixes") for module in modules):
            _ = self._plugins.fixes
        _ = self._plugins.explanations, self._plugins.effects
        for name in modules:
            is_program = name.endswith("__main__")
            if name.partition(".")[0] in _ROOTS and name not in sys.modules and not is_program:
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
        for name in files:
            with contextlib.suppress(OSError, ValueError):
                data.load_knowledge(name)
        compile_patterns(one for one in [*sys.modules] if one.partition(".")[0] == OURS)
        matcher.compile_patterns({*news[2]}, self._plugins.rules)
        for rule in self._plugins.rules:
            matcher.candidates_of(rule)
        gc.collect()
        gc.freeze()  # the processes then share the pages of what is loaded for longer
