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

from hermes_doctor.knowledge import data as knowledge
from hermes_doctor.lazy import compile_patterns
from hermes_doctor.plugins.load import Plugins
from hermes_doctor.plugins.log_rules import matcher

OURS = "hermes_doctor"
_ROOTS = frozenset({OURS, "psutil", "yaml", "_yaml", *sys.stdlib_module_names})
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
        self._files = {*knowledge.loaded_names()}
        self._patterns = {*matcher.compiled_patterns()}

    def news(self) -> list[list[str]]:
        """What this process had to load: modules, files of knowledge, patterns of log rules."""
        return [
            [one for one in sys.modules if one not in self._modules],
            [one for one in knowledge.loaded_names() if one not in self._files],
            [one for one in matcher.compiled_patterns() if one not in self._patterns],
        ]

    def load(self, news: Sequence[Sequence[str]]) -> None:
        """Load what a process had to load."""
        if not any(news):
            return
        modules, files = (
            [one for one in names[:_MOST] if _NAME.fullmatch(one)] for names in news[:2]
        )
        if any(one.startswith(f"{OURS}.fixes") for one in modules):
            _ = self._plugins.fixes
        _ = self._plugins.explanations, self._plugins.effects
        for name in modules:
            if name.partition(".")[0] in _ROOTS and name not in sys.modules:
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
        for name in files:
            with contextlib.suppress(OSError, ValueError):
                knowledge.load_knowledge(name)
        compile_patterns(one for one in [*sys.modules] if one.partition(".")[0] == OURS)
        matcher.compile_patterns({*news[2]}, self._plugins.rules)
        for rule in self._plugins.rules:
            matcher.candidates_of(rule)
        gc.collect()
        gc.freeze()  # the processes then share the pages of what is loaded for longer
