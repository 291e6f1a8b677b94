"""The contract of every fix: it cures, twice equals once, and undo restores the bytes.

The test file of a fix declares a problem that the fix cures, as `PLANTED`. A fix that needs more
than files, such as a service manager, names the test that proves the contract for it instead, as
`PROVED_BY`. `tests/scenarios/test_fix_contracts.py` runs the first and looks for the second.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.helpers import settings_verdicts, support
from tests.helpers.provider_mistakes import MISTAKES


@dataclass(frozen=True)
class Planted:
    """A problem that a fix cures."""

    code: str
    plant: Callable[[Path], object]
    """Puts it into a healthy home; what it returns does not matter."""
    options: tuple[str, ...] = ()
    """Further options of `fix`."""
    files: tuple[str, ...] = ()
    """The files that the problem is in, if others change meanwhile; empty for the whole home."""
    beside: Callable[[Path], AbstractContextManager[object]] = contextlib.nullcontext
    """What runs during all of it, such as a gateway."""


@dataclass(frozen=True)
class ProvedBy:
    """The test that proves the contract of a fix which needs more than files."""

    test: str
    """File and function below `tests/`, such as `real/test_steering.py::test_brought_back`."""
    why: str
    """What the fix needs that a planted problem cannot give it."""
    undoes: bool = True
    """Whether the test undoes the fix; False only where there is nothing to undo."""


def mistake(name: str) -> Planted:
    """One of the mistakes about provider, model or key."""
    found = MISTAKES[name]
    return Planted(found.code, lambda home: settings_verdicts.write(home, found))


def tests_of(fix: str) -> ModuleType:
    """The tests of a fix."""
    return importlib.import_module(f"tests.fixes.test_{fix.replace('-', '_')}")


def prove(home: Path, fix: str, planted: Planted) -> None:
    """Plant the problem, find it, cure it, try again, undo: assert all that the contract says."""
    planted.plant(home)
    with planted.beside(home):
        sick = _contents(home, planted)
        assert planted.code in support.check(home).codes, "the check shows it"

        done = _apply(home, planted)
        applied = {
            (item["fix"], item["outcome"])
            for run in done.json["repair"]["runs"]
            for item in run["items"]
        }
        assert (fix, "verified") in applied, done.out + done.err
        assert _contents(home, planted) != sick, "it changes something"
        cured = _contents(home, planted)

        again = _apply(home, planted)
        assert again.json["repair"]["runs"] == [], "twice equals once"
        assert _contents(home, planted) == cured

        undone = support.doctor("undo", "--yes", "--home", home)
        assert undone.code == 0, undone.out + undone.err
        assert _contents(home, planted) == sick, "undo restores the bytes"


def _apply(home: Path, planted: Planted) -> support.Done:
    words = (planted.code, *planted.options, "--apply", "--yes", "--json")
    return support.doctor("fix", *words, "--home", home)


def _contents(home: Path, planted: Planted) -> dict[str, tuple[Any, ...]]:
    """All bytes, modes and owners that must be restored."""
    found = support.contents(home)
    return {name: found[name] for name in planted.files if name in found} or found
