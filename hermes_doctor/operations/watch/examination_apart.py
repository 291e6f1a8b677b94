"""Examines the home in a process of its own in each round, unless nothing has changed.

Each process tells what it had to load: modules, files of knowledge and patterns of log rules. The
watch then loads that, so that no later process has to; only what belongs to this tool: nothing of a
home.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import re
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from hermes_doctor.core import known_secrets
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import EMPTY, compile_patterns
from hermes_doctor.core.model import CouldNotLook, Report
from hermes_doctor.core.system import remembered_files
from hermes_doctor.diagnosis.examination.check_threads import describe_crash
from hermes_doctor.diagnosis.plugins.load import Plugins
from hermes_doctor.diagnosis.plugins.log_rules import matcher
from hermes_doctor.hermes.knowledge import releases
from hermes_doctor.operations.watch.child_process import ChildFailed, ChildProcesses
from hermes_doctor.operations.watch.what_changed import Examined, Look
from hermes_doctor.sqlite.examine import known_sound

LIMIT = 120.0
"""Seconds for one examination, whose checks have limits of their own; as on an idle machine."""

Separate = Callable[[Callable[[], Any], Callable[[], Any]], Any]
"""Does the first in a process of the home's owner if root watches another user's home; in any other
home, does the second."""


class ExaminationApart:
    """Examines one home; each call starts a process, which has ended when the call returns."""

    def __init__(
        self,
        examine: Callable[[], Report],
        plugins: Plugins,
        children: ChildProcesses,
        separate: Separate | None = None,
        unchanged_home: Home | None = None,
    ) -> None:
        """Keep the last report while nothing changes in `unchanged_home`, if it is given."""
        self._examine, self._plugins, self._children = examine, plugins, children
        self._separate = separate or (lambda _, otherwise: otherwise())
        self._home = unchanged_home
        self._report: Report | None = None
        self._examined: Examined | None = None
        """What the last report depends on; None if the next call must examine the home."""
        self._preloading = Preloading(plugins)
        known_sound.remember()
        remembered_files.remember()

    def forget(self) -> None:
        """Examine the home at the next call even if nothing has changed."""
        self._examined = None

    def __call__(self) -> Report:
        """Return the report; what goes wrong in the process is raised here."""
        try:
            report, news, memory = self._separate(
                self._work, lambda: self._children.run(self._work, limit=LIMIT)
            )
        except ChildFailed as why:
            self.forget()
            raise CouldNotLook(str(why)) from None
        if report is None and self._report is not None:
            return self._report._replace(started_at=datetime.now(UTC))
        self.forget()
        if not isinstance(report, Report):
            raise CouldNotLook(str(report))
        self._preloading.load(news)
        known_sound.adopt(memory["sound"])
        remembered_files.adopt(memory["files"])
        known_secrets.adopt_judged(memory["words"])
        if memory["examined"]:
            self._examined = Examined(**memory["examined"])
        gc.collect()  # a watch makes little garbage, so it would be left for a thousand rounds
        self._report = report._replace(effects=self._plugins.effects)
        return self._report

    def _work(self) -> tuple[Report | str | None, list[list[str]], dict[str, dict[str, Any]]]:
        """Examine, in the process; return the report or why there is none, and what to remember.

        Neither a report nor a reason means that nothing has changed since the last report.
        """
        self._preloading.begin()
        judged = {*known_secrets.judged}
        try:
            look = Look(self._home) if self._home else None
            if look and look.change_since(self._examined) is None:
                return None, [], {}
            if look:
                look.record()
            report = self._examine()._replace(effects=EMPTY)
            words = {one: used for one, used in known_secrets.judged.items() if one not in judged}
            memory: dict[str, dict[str, Any]] = {}
            memory |= {
                "sound": known_sound.news(),
                "files": remembered_files.news(),
                "words": words,
            }
            examined = look.examined() if look else None
            memory["examined"] = examined._asdict() if examined else {}
            return report, self._preloading.news(), memory
        except CouldNotLook as doubt:
            return str(doubt), [], {}
        except Exception as error:  # noqa: BLE001 (one bad round must not end the watch)
            return f"it crashed: {describe_crash(error)}", [], {}


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
        self._files = {*releases.loaded_names()}
        self._patterns = {*matcher.compiled_patterns()}

    def news(self) -> list[list[str]]:
        """What this process had to load: modules, files of knowledge, patterns of log rules."""
        return [
            [module for module in sys.modules if module not in self._modules],
            [
                loaded_name
                for loaded_name in releases.loaded_names()
                if loaded_name not in self._files
            ],
            [
                compiled_pattern
                for compiled_pattern in matcher.compiled_patterns()
                if compiled_pattern not in self._patterns
            ],
        ]

    def load(self, news: Sequence[Sequence[str]]) -> None:
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
                releases.load_knowledge(name)
        compile_patterns(one for one in [*sys.modules] if one.partition(".")[0] == OURS)
        matcher.compile_patterns({*news[2]}, self._plugins.rules)
        for rule in self._plugins.rules:
            matcher.candidates_of(rule)
        gc.collect()
        gc.freeze()  # the processes then share the pages of what is loaded for longer
