"""A process that has become the owner of a home permanently, and what root does for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_doctor.message import Message, text
from hermes_doctor.model import CouldNotLook, Evidence, Finding, Severity, Trouble
from hermes_doctor.system import root_parent, separate_process
from hermes_doctor.system.privileges import Privileges
from hermes_doctor.system.root_parent import ask_root
from hermes_doctor.system.separate_process import run_as
from tests.helpers.crash_server import STRANGER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
USER = Privileges(STRANGER, STRANGER, (STRANGER,), Path("/"), can_reach=True)


def _status() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def test_it_never_becomes_root_again() -> None:
    """All ids, groups and capabilities are gone, and no program can give them back."""

    def work() -> dict[str, str]:
        ways: list[Callable[[], None]] = [
            lambda: os.seteuid(0),
            lambda: os.setuid(0),
            lambda: os.setgroups([0]),
        ]
        for become in ways:
            try:
                become()
            except PermissionError:
                continue
            raise AssertionError("it became root again")
        return _status() | {"environ": str(os.stat("/proc/self/environ").st_uid)}

    seen = run_as(USER, work, {})

    assert set(seen["Uid"].split()) == set(seen["Gid"].split()) == {str(STRANGER)}
    assert seen["Groups"].split() == [str(STRANGER)]
    assert {int(seen[name], 16) for name in ("CapEff", "CapPrm", "CapAmb")} == {0}
    assert seen["NoNewPrivs"] == "1"
    assert seen["environ"] == "0", "its user could trace it"
    assert not root_parent.is_separate()


def test_it_has_no_open_file_of_root(tmp_path: Path) -> None:
    """Only the three standard ones and its line to root."""
    with (tmp_path / "secret").open("w"):
        opened = run_as(USER, lambda: frozenset(os.listdir("/proc/self/fd")), {})

    assert len(opened) == 5, "one of them lists the folder"


def test_plain_values_come_back() -> None:
    """Findings with their texts, as they were."""
    made = Finding(
        "CODE",
        Severity.ERROR,
        text("{name} is {what}", name="x", what=Path("/y")),
        evidence=(Evidence("a", "b"),),
    )

    found = run_as(USER, lambda: (made, {"n": 1.5}, Path("/z")), {})

    assert found == (made._replace(data={}), {"n": 1.5}, Path("/z"))
    assert isinstance(found[0].title, Message)
    assert found[0].title.template == "{name} is {what}"
    assert found[0].title.values == {"name": "x", "what": "/y"}


class _Odd:
    def __reduce__(self) -> tuple[Callable[..., int], tuple[str]]:
        return os.system, ("true",)


@pytest.mark.parametrize("value", [_Odd(), os.stat("/"), USER])
def test_nothing_else_comes_back(value: object) -> None:
    """Root makes no other values, and calls nothing that the other process names."""
    with pytest.raises(CouldNotLook, match="not valid"):
        run_as(USER, lambda: value, {})


def test_root_does_only_what_is_listed() -> None:
    """An action that is not on the list is refused; its own errors reach the other process."""

    def fails() -> None:
        raise CouldNotLook("it is missing")

    def work() -> tuple[object, ...]:
        said = []
        for name in ("other", "fails"):
            try:
                ask_root(name)
            except CouldNotLook as why:
                said.append(str(why))
        return ask_root("uid"), ask_root("add", 2, 3), *said

    found = run_as(USER, work, {"uid": os.geteuid, "add": lambda a, b: a + b, "fails": fails})

    assert found == (0, 5, "root does not do other", "it is missing")


def test_its_errors() -> None:
    """An expected one is raised here; any other says where it happened."""

    def trouble() -> None:
        raise Trouble("no home")

    def bug() -> None:
        raise KeyError("x")

    with pytest.raises(Trouble, match="no home"):
        run_as(USER, trouble, {})
    with pytest.raises(CouldNotLook, match=r"KeyError.*test_separate_process\.py"):
        run_as(USER, bug, {})


def test_it_is_killed() -> None:
    """Its owner may kill it: that is said, and nothing is left of it."""
    with pytest.raises(CouldNotLook, match="cut off"):
        run_as(USER, lambda: os.kill(os.getpid(), signal.SIGKILL), {})
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner may stop it, too: root does not wait for it."""
    monkeypatch.setattr(separate_process, "STILL", 0.1)

    with pytest.raises(CouldNotLook, match="was stopped"):
        run_as(USER, lambda: os.kill(os.getpid(), signal.SIGSTOP), {})


def test_without_the_capability_to_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that has dropped it: the child ends by itself, and nothing is left."""

    def refuse(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "kill", refuse)
    child = run_as(USER, os.getpid, {})

    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)
