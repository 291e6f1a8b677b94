"""What is loaded later behaves as if it were there, and is there when it matters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor import later, steps
from hermes_doctor.later import Later

MOVE = Later("hermes_doctor.steps", "MoveAside")
STEP = Later("hermes_doctor.steps", "Step")


def test_stands_for_it() -> None:
    """It can be called, asked, derived from and checked against."""

    class Mine(STEP):  # type: ignore[misc, valid-type]
        pass

    made = MOVE(Path("/a"), why="it is old")

    assert type(made) is steps.MoveAside
    assert isinstance(made, MOVE)  # type: ignore[arg-type]
    assert not isinstance(3, MOVE)
    assert Mine.__mro__[1] is steps.Step
    assert issubclass(Mine, STEP)
    assert MOVE.__mro__ is steps.MoveAside.__mro__
    assert steps.MoveAside | None == MOVE | None
    assert None | steps.MoveAside == None | MOVE


def test_what_is_loaded_is_itself() -> None:
    """Nothing stands for a name whose module is there anyway."""
    assert later.named("hermes_doctor.steps", "Step") is steps.Step


def test_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a check or a fix runs, its names are the things themselves."""
    monkeypatch.setitem(globals(), "NAME", MOVE)

    @later.settled
    def plan(step: object) -> bool:
        """Says whether it is one."""
        match step:
            case NAME():  # type: ignore[name-defined]  # noqa: F821
                return type(step) is NAME  # type: ignore[name-defined]  # noqa: F821
        return False

    assert plan.__doc__ == "Says whether it is one."
    assert plan(steps.MoveAside(Path("/a"), why="it is old"))


def test_listing_the_fixes_loads_nothing_else() -> None:
    """A report names the fixes on offer; what they would do is not needed for that."""
    code = (
        "import sys; from hermes_doctor import plugins; found = plugins.load()\n"
        "before = {*sys.modules}; found.fixes; print(*sorted({*sys.modules} - before))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)

    loaded = done.stdout.split()
    assert "hermes_doctor.fixes.rewrite_env" in loaded, done.stderr
    assert [m for m in loaded if not m.startswith("hermes_doctor.fixes")] == []
