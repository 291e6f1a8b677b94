"""Each examination has a process of its own; the watch learns the result, and what to load."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

from hermes_doctor.core.model import CouldNotLook, Report
from hermes_doctor.diagnosis.plugins.load import load
from hermes_doctor.operations.watch.child_process import ChildProcesses
from hermes_doctor.operations.watch.examination_apart import ExaminationApart
from tests.helpers.watch_parts import copies, finding, report, watch

EFFECTS = load().effects


def apart(examine: object) -> ExaminationApart:
    return ExaminationApart(examine, load(), ChildProcesses())  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def unfrozen() -> object:
    """What a watch loads stays for its whole life; a test ends sooner."""
    yield None
    gc.unfreeze()


def test_the_report_is_the_same() -> None:
    """With the effects of problems, which the watch knows itself."""
    sick = report(finding("A"))
    assert apart(lambda: sick._replace(effects=EFFECTS))() == sick._replace(effects=EFFECTS)


def test_why_there_is_no_report() -> None:
    """A check that could not look, a crash, and a process that the kernel ends."""

    def blind() -> Report:
        raise CouldNotLook("no rights")

    def crashing() -> Report:
        raise KeyError("a secret")

    def killed() -> Report:
        os.kill(os.getpid(), 9)
        raise AssertionError

    with pytest.raises(CouldNotLook, match="no rights"):
        apart(blind)()
    with pytest.raises(CouldNotLook, match="it crashed: KeyError at test_examination_apart"):
        apart(crashing)()
    with pytest.raises(CouldNotLook, match=r"its process was killed \(SIGKILL, perhaps because"):
        apart(killed)()


def test_a_round_after_one_that_was_killed(home: Path) -> None:
    """The watch says why it could not check, and the next round goes on."""
    left = [os.getpid(), 0]

    def examine() -> Report:
        if left[1] == 1:
            os.kill(os.getpid(), 9)
        return report(finding("A"))

    made, heard, _ = watch(home, apart(examine))
    for number in range(3):
        left[1] = number
        made.round(begins=number == 0)
    assert heard.kinds == ["start", "found", "note"]
    assert heard[2].title.startswith("could not check: its process was killed (SIGKILL")
    assert made.memory.standing["A", "thing"].rounds >= 1
    assert not copies()


def test_threads_that_hang_do_not_reach_the_watch() -> None:
    """They end with the process of their round."""

    def examine() -> Report:
        for _ in range(5):
            threading.Thread(target=time.sleep, args=(600,), name="probe-x", daemon=True).start()
        return report()

    before, one = threading.active_count(), apart(examine)
    for _ in range(20):
        one()
    assert threading.active_count() == before


class Garbage:
    """Something that refers to itself, so that only the garbage collector can free it."""

    def __init__(self) -> None:
        self.itself = self


def test_a_round_leaves_no_garbage_behind() -> None:
    """The watch makes so little of it that Python would let it grow for a thousand rounds."""
    one = apart(report)
    gc.disable()
    try:
        left = weakref.ref(Garbage())
        assert left() is not None
        one()
        assert left() is None
    finally:
        gc.enable()


LOADING = """
import gc, sys
from hermes_doctor.core.model import Report
from hermes_doctor.diagnosis.plugins.load import load
from hermes_doctor.operations.watch.child_process import ChildProcesses
from hermes_doctor.operations.watch.examination_apart import ExaminationApart
from tests.helpers.watch_parts import copies, report

def examine():
    before = set(sys.modules)
    import NAMES
    from hermes_doctor.hermes.knowledge.releases import load_knowledge, loaded_names
    known = loaded_names()
    load_knowledge("networks")
    loaded = len(set(sys.modules) - before) + len(set(loaded_names()) - set(known))
    return report()._replace(seconds=float(loaded))

one = ExaminationApart(examine, load(), ChildProcesses())
print([one().seconds > 0 for _ in range(3)], "colorsys" in sys.modules, "not_ours" in sys.modules)
"""


def test_what_a_round_loads_is_loaded_once(tmp_path: Path) -> None:
    """The next rounds find it; code that is not of this tool is never loaded into the watch."""
    (tmp_path / "not_ours.py").write_text("")
    told = run(LOADING.replace("NAMES", "colorsys"), tmp_path)
    assert told == "[True, False, False] True False"
    told = run(LOADING.replace("NAMES", "colorsys, not_ours"), tmp_path)
    assert told == "[True, True, True] True False"


def run(program: str, folder: Path) -> str:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": f"{root}:{folder}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
