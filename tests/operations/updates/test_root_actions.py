"""Root exchanges only images of containers that it has found, and runs only what it has planned."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.core.model import CannotFix
from hermes_doctor.operations.updates import root_actions
from tests.helpers import support
from tests.helpers.fake_engine import NEW, OLD, Engine

ID = "20261115-031500-1234f"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine with one container of the home."""
    made = Engine(tmp_path)
    monkeypatch.setenv("PATH", f"{made.bin}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A healthy home."""
    return support.healthy(tmp_path / "home")


def test_the_image_of_a_container_of_the_home_is_tagged(home: Path, engine: Engine) -> None:
    """No other one is, and only under the id of an update."""
    tag = root_actions.actions(home, os.geteuid())["tag_previous_image"]
    with pytest.raises(CannotFix, match="No container of this home has that image"):
        tag(NEW, ID, [])
    for wrong in ("latest", "../other", f"{ID} x", "-f"):
        with pytest.raises(CannotFix, match="was not written by hermes-doctor"):
            tag(OLD, wrong, [])
        with pytest.raises(CannotFix, match="was not written by hermes-doctor"):
            tag(OLD, ID, [wrong])
    assert f"hermes-doctor/before:{ID}" not in engine.held["names"]

    tag(OLD, ID, [])

    assert engine.held["names"][f"hermes-doctor/before:{ID}"] == OLD


def test_only_what_is_planned_runs(home: Path, engine: Engine) -> None:
    """A command of another process is refused, whatever it is."""
    actions = root_actions.actions(home, os.geteuid())
    recorded = ("0.18.2", "container hermes", "hermes:latest", OLD)
    with pytest.raises(CannotFix, match="cannot be recreated automatically"):
        actions["plan_recreation"](*recorded, "hermes", ID, None)
    for command in (["docker", "run", "--privileged", "x"], ["touch", str(home / "made")], []):
        with pytest.raises(CannotFix, match="runs only what it has planned"):
            actions["recreate"](command, descriptors=(0,))
    assert not (home / "made").exists()
    assert {words[0] for words in engine.held["asked"]} <= {"ps", "inspect", "image"}
