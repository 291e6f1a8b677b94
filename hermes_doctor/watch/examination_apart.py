"""Examines the home in a process of its own in each round."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from hermes_doctor import known_secrets
from hermes_doctor.examination.running_checks import describe_crash
from hermes_doctor.lazy import EMPTY
from hermes_doctor.model import CouldNotLook, Report
from hermes_doctor.plugins.load import Plugins
from hermes_doctor.sqlite import known_sound
from hermes_doctor.system import file_facts
from hermes_doctor.watch.child_process import ChildFailed, ChildProcesses
from hermes_doctor.watch.preloading import Preloading

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
        separate: Separate = lambda _, otherwise: otherwise(),
    ) -> None:
        self._examine, self._plugins, self._children = examine, plugins, children
        self._separate = separate
        self._preloading = Preloading(plugins)
        known_sound.remember()
        file_facts.remember()

    def __call__(self) -> Report:
        """Return the report; what goes wrong in the process is raised here."""
        try:
            found, news, memory = self._separate(
                self._work, lambda: self._children.run(self._work, limit=LIMIT)
            )
        except ChildFailed as why:
            raise CouldNotLook(str(why)) from None
        if not isinstance(found, Report):
            raise CouldNotLook(str(found))
        self._preloading.load(news)
        known_sound.adopt(memory["sound"])
        file_facts.adopt(memory["files"])
        known_secrets.adopt_judged(memory["words"])
        gc.collect()  # a watch makes little garbage, so it would be left for a thousand rounds
        return found._replace(effects=self._plugins.effects)

    def _work(self) -> tuple[Report | str, list[list[str]], dict[str, dict[str, Any]]]:
        """Examine, in the process; return the report or why there is none, and what to remember."""
        self._preloading.begin()
        judged = {*known_secrets.judged}
        try:
            found = self._examine()._replace(effects=EMPTY)
            words = {one: used for one, used in known_secrets.judged.items() if one not in judged}
            memory: dict[str, dict[str, Any]] = {}
            memory |= {"sound": known_sound.known(), "files": file_facts.known(), "words": words}
            return found, self._preloading.news(), memory
        except CouldNotLook as doubt:
            return str(doubt), [], {}
        except Exception as error:  # noqa: BLE001 (one bad round must not end the watch)
            return f"it crashed: {describe_crash(error)}", [], {}
