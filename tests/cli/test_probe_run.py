"""`probe` as it is typed: one line, and an exit code that a container manager understands."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hermes_doctor.cli import probe_run
from hermes_doctor.diagnosis.examination import container_probe
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import fake_gateway, support


@pytest.mark.parametrize("question", container_probe.QUESTIONS)
def test_no_gateway(home: Path, question: str) -> None:
    """It says so in one line, and changes nothing."""
    before = support.tree(home)

    done = support.doctor("probe", question, "--home", home)

    assert (done.code, done.err) == (1, "")
    assert done.out == f"not {question}: no gateway of this home runs\n"
    assert support.tree(home) == before


def test_a_gateway(home: Path) -> None:
    """It is live, whatever its platforms do."""
    with fake_gateway.gateway(home):
        done = support.doctor("probe", "live", "--home", home)

    assert (done.code, done.out.count("\n")) == (0, 1)
    assert done.out.startswith("live: process ")


@pytest.mark.parametrize("question", container_probe.QUESTIONS)
def test_no_home(question: str) -> None:
    """If the volume is not mounted, every answer is no."""
    done = support.doctor("probe", question, "--home", "/nowhere")

    assert (done.code, done.err) == (1, "")
    assert done.out.startswith(f"not {question}: --home names /nowhere, which does not exist")


@pytest.mark.parametrize("words", [["alive"], ["live", "--bogus"], []])
def test_mistakes(words: list[str]) -> None:
    """They have the exit code of every wrong option."""
    done = support.doctor("probe", *words)

    assert done.code == 2
    assert done.out == ""


def test_it_never_hangs(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After its limit it says what it could not do; that restarts nothing."""
    forever = threading.Event()

    def hang(_: Probes, __: str) -> container_probe.Answer:
        forever.wait(60)
        raise AssertionError

    monkeypatch.setattr(container_probe, "answer", hang)
    monkeypatch.setattr(probe_run, "LIMIT", 0.05)
    try:
        assert probe_run.run("live", home) == 0
        assert probe_run.run("ready", home) == 1
    finally:
        forever.set()

    assert capsys.readouterr().out.count("could not check: ") == 2


def test_a_bug_of_this_tool_restarts_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A crash is reported in one line; `live` still answers yes, so nothing is restarted."""

    def crash(_: Probes, __: str) -> container_probe.Answer:
        raise ValueError("secret")

    monkeypatch.setattr(container_probe, "answer", crash)

    assert (probe_run.run("live", home), probe_run.run("started", home)) == (0, 1)
    said = capsys.readouterr().out
    assert said.count("a bug in hermes-doctor, ValueError at test_probe_run.py") == 2
    assert "secret" not in said


def test_a_full_disk(home: Path) -> None:
    """The exit code is right even if the line cannot be written."""
    words = ["-m", "hermes_doctor", "probe", "live", "--home", str(home)]
    with fake_gateway.gateway(home), Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, *words], stdout=full, env=support.environ({}))

    assert done.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="root gives the home to nobody else")
def test_a_home_that_may_not_be_read() -> None:
    """Without the right to read the home, only `live` answers yes."""
    with support.reachable_folder() as place:
        home = support.healthy(place / "home")
        home.chmod(0o700)
        found = {
            question: support.doctor("probe", question, "--home", home, user=65534)
            for question in container_probe.QUESTIONS
        }

    assert {name: done.code for name, done in found.items()} == {
        "live": 0,
        "ready": 1,
        "started": 1,
    }
    assert found["live"].out.startswith("perhaps live, could not check: ")


def test_a_mistake_in_config_toml_restarts_nothing(home: Path, tmp_path: Path) -> None:
    """It says nothing about the gateway; `ready` still needs proof."""
    support.put(tmp_path / "config" / "hermes-doctor" / "config.toml", "colour = 1\n", 0o600)
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HERMES_HOME": str(home)}
    live = support.doctor("probe", "live", env=env)
    assert live.code == 0 and "config.toml:1: unknown key colour." in live.out
    assert support.doctor("probe", "ready", env=env).code == 1
