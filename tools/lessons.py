"""Run hermes_doctor/operations/learning/lessons with a release, in a temporary home."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from hermes_doctor.operations.learning import isolation, questions
from hermes_doctor.operations.learning.isolation import Lesson
from tools import releases

PATIENCE = 600
"""Seconds for all scripts of one release; a busy machine is slow."""


def ask(version: str, script: Path, question: Any = None) -> Any:
    """Return a release's answer to any script: the last line that it prints."""
    lesson = Lesson(script.read_text(), (), question)
    return _said(releases.python_of(version), {"asked": lesson})["asked"]


def learn(version: str, *names: str, python: Path | None = None) -> dict[str, Any]:
    """Return a release's answers for these files of knowledge, or for all of them."""
    wanted = {name: questions.lesson(name, version) for name in names or questions.SCRIPTS}
    said = _said(python or releases.python_of(version), wanted)
    return questions.answers(version, said)


def _said(python: Path, wanted: dict[str, Lesson]) -> dict[str, Any]:
    return isolation.ask_all(python, wanted, seconds=PATIENCE)


def visit(version: str, folder: Path) -> None:
    """Let a release use the databases of each home in the folder; raises if it fails on one."""
    lesson = questions.lesson(questions.SCHEMAS, version)
    asked = lesson._replace(words=("visit", str(folder)), question=None, writes=(folder,))
    _said(releases.python_of(version), {"visit": asked})


def empty(home: Path) -> Path:
    """Create an empty home with the folders of its databases."""
    shutil.rmtree(home, ignore_errors=True)
    for folder in ("cron", "gateway"):
        (home / folder).mkdir(parents=True)
    return home
