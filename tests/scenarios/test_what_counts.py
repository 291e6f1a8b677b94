"""What `fix --apply --yes` does without being told what, and what its exit code counts."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from hermes_doctor.cli.exits import exit_code_of
from tests.helpers import support
from tests.helpers.support import Done

CHECK = '''\
from hermes_doctor.api import Finding, Severity, check


@check(id="signs", group="test", codes=["ONE", "TWO"])
def signs(probes):
    """Are there signs?"""
    for code in ("ONE", "TWO"):
        path = probes.home / code
        if path.exists():
            level, fix = path.read_text().split()
            yield Finding(code, Severity(level), f"sign {code}", code, fix=fix.strip("-") or None)
'''
FIXES = '''\
from hermes_doctor.api import CannotFix, GatewayStep, MoveAside, ReplaceFile, Safety, fix, snapshot


class Owner:
    """An owner who starts nothing, and leaves a second sign each time that it is asked to."""

    def __init__(self, home):
        self.home = home

    def describe(self):
        return "a test"

    def running(self):
        return None

    def restless(self):
        return False

    def notes(self):
        return ()

    def start(self, limit):
        with open(self.home / "starts", "a") as file:
            file.write("x")
        (self.home / "TWO").write_text("error start-two")
        raise CannotFix("it did not come up")

    def __eq__(self, other):
        return True

    __hash__ = None


@fix(id="start-one", codes=["ONE"], safety=Safety.SAFE)
def start_one(probes, finding):
    """Start it."""
    yield GatewayStep(Owner(probes.home), restart=False, why="a test")


@fix(id="start-two", codes=["TWO"], safety=Safety.SAFE)
def start_two(probes, finding):
    """Start it otherwise."""
    yield GatewayStep(Owner(probes.home), restart=False, why="a test")


@fix(id="refuse", codes=["ONE"], safety=Safety.SAFE)
def refuse(probes, finding):
    """Not here."""
    raise CannotFix("not here")
    yield


@fix(id="write-outside", codes=["ONE"], safety=Safety.SAFE)
def write_outside(probes, finding):
    """Write beside the home."""
    path = probes.home.path.parent / "beside"
    yield ReplaceFile(path, b"new", why="a test", expect=snapshot(path))


@fix(id="write-inside", codes=["ONE"], safety=Safety.SAFE)
def write_inside(probes, finding):
    """Take the sign away."""
    path = probes.home / "ONE"
    yield MoveAside(path, why="a test")
'''


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A plugin folder with signs and fixes of all kinds."""
    folder = tmp_path / "mine"
    support.put(folder / "checks" / "signs.py", CHECK, 0o644)
    support.put(folder / "fixes" / "signs.py", FIXES, 0o644)
    for place in (folder, folder / "checks", folder / "fixes"):
        place.chmod(0o755)
    return folder


def repair(home: Path, mine: Path, *words: str) -> Done:
    """Repair all, or what is named."""
    return support.doctor("fix", *words, "--yes", "--home", home, "--plugins", mine)


def started(home: Path) -> int:
    """How often a start was asked for."""
    return len((home / "starts").read_text()) if (home / "starts").exists() else 0


def test_one_start_a_command(home: Path, mine: Path) -> None:
    """What did not come up is not started again because it is down now."""
    support.put(home / "ONE", "error start-one")

    done = repair(home, mine, "--apply")

    assert (done.code, started(home)) == (1, 1), done.out + done.err
    assert "TWO" in done.out
    assert "already restarted once" in " ".join(done.out.split())


@pytest.mark.sampled
@pytest.mark.parametrize("fix", ["start-one", "write-outside"])
def test_information_alone(home: Path, mine: Path, fix: str) -> None:
    """For a mere information neither the gateway nor the machine is touched, unless it is named."""
    support.put(home / "ONE", f"info {fix}")
    support.put(home.parent / "beside", "old")

    shown = repair(home, mine)
    applied = repair(home, mine, "--apply")
    told = support.doctor("fix", "--json", "--home", home, "--plugins", mine)

    assert "On request: ONE" in " ".join(shown.out.split())
    assert "fix ONE --apply --yes" in " ".join(applied.out.split())
    assert (shown.code, applied.code) == (0, 0)
    assert started(home) == 0
    assert (home.parent / "beside").read_text() == "old"
    assert json.loads(told.out)["repair"]["plan"][0]["unnamed"] is True

    named = support.doctor("fix", "ONE", "--json", "--home", home, "--plugins", mine)
    assert named.json["repair"]["plan"][0]["unnamed"] is False
    repair(home, mine, "ONE", "--apply")
    assert started(home) == (fix == "start-one")


def test_information_in_the_home(home: Path, mine: Path) -> None:
    """What stays in the home, and lets the gateway be, needs no name."""
    support.put(home / "ONE", "info write-inside")
    done = repair(home, mine, "--apply")
    assert done.code == 0, done.out
    assert not (home / "ONE").exists()


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("sign", "code"),
    [
        ("error refuse", 1),
        ("warning refuse", 1),
        ("info refuse", 0),
        ("warning -", 0),
        ("info -", 0),
    ],
)
def test_left(home: Path, mine: Path, sign: str, code: int) -> None:
    """A fix that was offered and refused is something left; an information is not."""
    support.put(home / "ONE", sign)
    assert repair(home, mine, "--apply").code == code


def test_words_of_our_own(capsys: pytest.CaptureFixture[str]) -> None:
    """An error without a number is shown in its own words, one with a number in the system's."""

    def own() -> None:
        raise FileNotFoundError("this installation lacks its checks/")

    def system() -> None:
        raise OSError(errno.ENOSPC, "x", "file")

    def full() -> None:
        raise OSError(errno.ENOSPC, "x")

    def signal() -> None:
        raise OSError(errno.EPERM, "x")

    assert [exit_code_of(run) for run in (own, system, full, signal)] == [2, 2, 2, 2]
    assert capsys.readouterr().err.splitlines() == [
        "hermes-doctor: this installation lacks its checks/",
        "hermes-doctor: No space left on device: file",
        "hermes-doctor: Could not write the output or a file: No space left on device.",
        "hermes-doctor: The system reported an error: Operation not permitted.",
    ]
