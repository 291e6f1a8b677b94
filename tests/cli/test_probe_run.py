"""`probe` as it is typed: one line, and an exit code that a container manager understands."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hermes_doctor.cli import probe_run
from hermes_doctor.examination import health
from hermes_doctor.probes.probes import Probes
from tests.helpers import fake_gateway, support


@pytest.mark.parametrize("question", health.QUESTIONS)
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


@pytest.mark.parametrize("question", health.QUESTIONS)
def test_no_home(question: str) -> None:
    """A volume that is not mounted is no gateway."""
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

    def hang(_: Probes, __: str) -> health.Answer:
        forever.wait(60)
        raise AssertionError

    monkeypatch.setattr(health, "answer", hang)
    monkeypatch.setattr(probe_run, "LIMIT", 0.05)
    try:
        assert probe_run.run("live", home) == 0
        assert probe_run.run("ready", home) == 1
    finally:
        forever.set()

    assert capsys.readouterr().out.count("could not check: ") == 2
