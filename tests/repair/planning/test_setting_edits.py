"""Edits as steps: one span, refused where a package manager writes the home."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.api import Probes, ReplaceFile, ReplaceSpan
from hermes_doctor.api.edits import Assign, Put
from hermes_doctor.api.repairs import edit_config, edit_env, restart_if_running
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.hermes.installation.find import Installation
from tests.helpers import fake_gateway, support


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return support.healthy(tmp_path / "home")


def test_a_step_changes_the_span_and_says_which_line(home: Path) -> None:
    """The plan shows one small change."""
    (step,) = edit_config(Probes(Home(home)), "another model", Put(("model", "default"), "m-2"))
    assert isinstance(step, ReplaceSpan)
    assert step.after == step.before.replace(b"acme/test-model", b"m-2")
    assert len(step.new) < len("test-model")
    assert step.sentence() == "config.yaml line 3: another model"


def test_nothing_to_change_is_no_step(home: Path) -> None:
    """Applying twice equals once."""
    probes = Probes(Home(home))
    assert not list(edit_config(probes, "x", Put(("model", "default"), "acme/test-model")))
    assert not list(edit_env(probes, "x", Assign("SECOND", "two")))


def test_a_file_that_is_not_there_is_written(home: Path) -> None:
    """A first variable needs a file."""
    (home / ".env").unlink()
    (step,) = edit_env(Probes(Home(home)), "a key", Assign("A_KEY", "x"))
    assert isinstance(step, ReplaceFile)
    assert step.data == b"A_KEY=x\n"
    assert step.sentence() == ".env: a key (new file)"


def test_a_home_that_a_package_manager_writes_is_left_to_it(home: Path) -> None:
    """What we wrote would be taken back."""
    support.put(home / ".managed", "")
    with pytest.raises(CannotFix, match="NixOS"):
        list(edit_config(Probes(Home(home)), "x", Put(("a",), 1)))
    with pytest.raises(CannotFix, match="NixOS"):
        list(edit_env(Probes(Home(home)), "x", Assign("A", "1")))


def test_a_marked_file_is_not_edited(home: Path) -> None:
    """Its first variable would still be lost."""
    support.put(home / ".env", b"\xef\xbb\xbfA=1\n")
    with pytest.raises(CannotFix, match="UTF-8"):
        list(edit_env(Probes(Home(home)), "x", Assign("A", "2")))


def test_without_a_gateway_nothing_is_restarted(home: Path) -> None:
    """The next start reads everything."""
    assert not list(restart_if_running(Probes(Home(home)), "platform", "access", "fallback"))


@pytest.mark.parametrize(
    ("what", "version", "restarts"),
    [
        ("model", "0.13.0", False),
        ("key", "0.13.0", False),
        ("variable", "0.18.0", True),
        ("variable", "0.18.1", False),
        ("fallback", "0.18.2", True),
        ("fallback", "0.19.0", False),
        ("platform", "0.19.0", True),
        ("access", "0.19.0", True),
    ],
)
def test_only_what_is_read_at_the_start_needs_one(
    home: Path, monkeypatch: pytest.MonkeyPatch, what: str, version: str, *, restarts: bool
) -> None:
    """Each release restarts for what it would not notice."""
    where = home.parent / "venv"
    support.put(where / "bin" / "python", "", mode=0o755)
    installed = Installation(version, where, running=True)
    monkeypatch.setattr(HermesView, "installation", lambda _: installed)
    with fake_gateway.gateway(home):
        probes = Probes(Home(home))
        found = list(restart_if_running(probes, "model", what))
        assert [one.sentence().split()[0] for one in found] == ["restart"] * restarts


def test_a_gateway_that_is_not_ours_to_restart_keeps_running(home: Path) -> None:
    """The file is mended all the same."""
    with fake_gateway.gateway(home):
        assert not list(restart_if_running(Probes(Home(home)), "platform"))
