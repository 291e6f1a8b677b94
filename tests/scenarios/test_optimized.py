"""`python -O` and `-OO` drop asserts and docstrings: the tool must work without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Status
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.mount import Broken
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.operations.updates import before_update
from tests.helpers import support

LEVELS = ["1", "2"]


def at(level: str) -> dict[str, str]:
    """The environment for one level, without bytecode of the other."""
    return {"PYTHONOPTIMIZE": level, "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.sampled
@pytest.mark.parametrize("level", LEVELS)
def test_every_check_loads_and_looks(home: Path, level: str) -> None:
    """The same checks end in the same way as without it."""
    usual = support.spawned("check", "--json", "--home", home).json
    done = support.spawned("check", "--json", "--home", home, env=at(level))

    assert done.code == 0, done.err
    ended = [(one["id"], one["status"]) for one in done.json["checks"]]
    assert ended == [(one["id"], one["status"]) for one in usual["checks"]]


@pytest.mark.parametrize("level", [pytest.param(LEVELS[0], marks=pytest.mark.wide), LEVELS[1]])
def test_a_fix_is_planned_done_and_undone(home: Path, level: str) -> None:
    """Findings, repair, receipt and undo are the same."""
    old = support.put(home / ".env", b"\xef\xbb\xbfA=1\n").read_bytes()

    found = support.spawned("check", "--json", "--home", home, env=at(level))
    assert "ENV-BOM" in found.codes
    fixed = support.spawned("fix", "--apply", "--yes", "--home", home, env=at(level))
    assert (fixed.code, (home / ".env").read_bytes()) == (0, b"A=1\n"), fixed
    undone = support.spawned("undo", "--yes", "--home", home, env=at(level))

    assert (undone.code, (home / ".env").read_bytes()) == (0, old), undone


def test_questions_and_titles_are_read_from_the_source() -> None:
    """`list` shows the same texts although Python dropped the docstrings."""
    usual = support.spawned("list", "--json")
    assert support.spawned("list", "--json", env=at("2")).json == usual.json


BLIND = '''\
"""A check that always crashes, in the place of all others."""

from hermes_doctor.api import check


@check(id="crashes", group="odd", codes=["ODD-CRASHES"])
def crashes(probes):
    """Is there a crash?"""
    raise RuntimeError("canary-secret")
'''


@pytest.fixture
def blind(tmp_path: Path) -> list[str]:
    """The options with which no check can look."""
    support.put(tmp_path / "odd" / "checks" / "odd.py", BLIND)
    for folder in (tmp_path / "odd", tmp_path / "odd" / "checks"):
        folder.chmod(0o755)
    return ["--plugins", str(tmp_path / "odd"), "--only", "crashes"]


@pytest.mark.parametrize("command", [("check",), ("check", "--all-homes"), ("watch", "--once")])
def test_no_check_could_look(home: Path, blind: list[str], command: tuple[str, ...]) -> None:
    """Exit 2 and one clear line."""
    done = support.doctor(*command, *blind, "--home", home)

    assert done.code == 2, done
    assert f"hermes-doctor: No check could look at {home}: 1 crashed.\n" in done.err


@pytest.mark.parametrize("more", [(), ("--all-homes",)])
def test_no_check_could_look_in_json(home: Path, blind: list[str], more: tuple[str, ...]) -> None:
    """The document says so as an error, and still has the checks with their reasons."""
    done = support.doctor("check", "--json", *more, *blind, "--home", home)

    assert done.code == 2, done
    assert done.json["error"]["exit_code"] == 2
    assert "No check could look" in done.json["error"]["message"]
    assert done.json["summary"]["checks"]["crashed"] >= 1  # a gateway of another test has a home
    assert done.json["summary"]["status"] == "unknown"


def test_one_home_of_two_cannot_be_looked_at(home: Path, tmp_path: Path) -> None:
    """Where others could be looked at, it is 1."""
    support.put(home / "profiles" / "coder" / "config.yaml", "model: x\n")
    text = BLIND.replace("raise", "if probes.home.path.name == 'coder':\n        raise")
    support.put(tmp_path / "odd" / "checks" / "odd.py", text + "    yield from ()\n")
    for folder in (tmp_path / "odd", tmp_path / "odd" / "checks"):
        folder.chmod(0o755)
    words = ["--plugins", str(tmp_path / "odd"), "--only", "crashes", "--json"]

    done = support.doctor("check", "--all-homes", *words, "--home", home)

    assert done.code == 1, done
    mine = [one for one in done.json["homes"] if one["home"].startswith(str(home))]
    assert [("error" in one) for one in mine] == [False, True]
    assert "error" not in done.json


@pytest.mark.parametrize("apply", [(), ("--apply", "--yes")])
def test_fix_without_a_look(home: Path, tmp_path: Path, apply: tuple[str, ...]) -> None:
    """`fix` changes nothing and exits 2."""
    support.put(tmp_path / "odd" / "checks" / "odd.py", BLIND)
    for folder in (tmp_path / "odd", tmp_path / "odd" / "checks"):
        folder.chmod(0o755)
    before_ = support.contents(home)

    done = support.doctor(
        "fix", "ODD-CRASHES", *apply, "--plugins", tmp_path / "odd", "--home", home
    )

    assert done.code == 2, done
    assert "No check could look" in done.err
    assert support.contents(home) == before_


def test_an_update_waits_for_checks_that_were_not_loaded(home: Path) -> None:
    """A check of our own that cannot be loaded stands against an update."""
    found = load.load()
    missing = Broken(builtin("checks") / "disk_usage.py", "ValueError")
    found._broken.append(missing)

    moment = before_update.preflight(Probes(Home(home)), found, timeout=None)

    assert any("disk_usage.py" in text for text in moment.obstacles)


def test_a_report_knows_how_checks_ended(home: Path) -> None:
    """A healthy home is not blind."""
    done = support.check(home)

    assert done.code == 0
    assert done.json["summary"]["checks"][Status.CRASHED] == 0
    assert "error" not in done.json
