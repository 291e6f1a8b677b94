"""A process that has become the owner of a home permanently, and what root does for it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from hermes_doctor.core.message import Message, text
from hermes_doctor.core.model import CouldNotLook, Evidence, Finding, Severity, Trouble
from hermes_doctor.core.system import root_parent, separate_process, transfer
from hermes_doctor.core.system.privileges import Privileges
from hermes_doctor.core.system.root_parent import ask_root
from hermes_doctor.core.system.separate_process import run_as
from tests.helpers.crash_server import STRANGER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
USER = Privileges(STRANGER, STRANGER, (STRANGER,), Path("/"), can_reach=True)


def children() -> set[int]:
    """The processes of this test, some of which other tests have left running."""
    return {one.pid for one in psutil.Process().children()}


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
    assert found[0].title.values == {"name": "x", "what": Path("/y")}


class _Odd:
    def __reduce__(self) -> tuple[Callable[..., int], tuple[str]]:
        return os.system, ("true",)


@pytest.mark.parametrize("value", [_Odd(), os.stat("/"), USER])
def test_nothing_else_comes_back(value: object) -> None:
    """The other process sends no other values."""
    with pytest.raises(CouldNotLook, match="may not pass"):
        run_as(USER, lambda: value, {})


def test_root_makes_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the other process sends: root calls nothing that it names."""
    monkeypatch.setattr(transfer, "dump", lambda *_: b'["os.system", "true"]')

    with pytest.raises(CouldNotLook, match="not valid"):
        run_as(USER, lambda: 1, {})


@pytest.mark.parametrize(
    "message",
    [
        *(b"", b"{", b"5", b"[]", b'["a", 2, 3]', b"[" * 100_000, b"E", b"E5", b"E[]"),
        *(b"R", b"Rx", b"R((((((((", b"R\x80\x04X\xff", b"RI12x\n."),
    ],
    ids=lambda message: repr(message[:12]),
)
def test_bytes_that_mean_nothing(message: bytes) -> None:
    """Whatever its user made of the other process, root's command ends with a reason."""

    def work() -> None:
        line = root_parent._ask.__self__.line  # type: ignore[union-attr]
        transfer.send(line, message)

    with pytest.raises(CouldNotLook, match="not valid"):
        run_as(USER, work, {})


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
    before = children()
    with pytest.raises(CouldNotLook, match="cut off"):
        run_as(USER, lambda: os.kill(os.getpid(), signal.SIGKILL), {})
    assert children() == before


def test_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner may stop it, too: root does not wait for it."""
    monkeypatch.setattr(separate_process, "STILL", 0.1)

    with pytest.raises(CouldNotLook, match="was stopped"):
        run_as(USER, lambda: os.kill(os.getpid(), signal.SIGSTOP), {})


@pytest.mark.parametrize("asks", [False, True])
def test_it_takes_too_long(monkeypatch: pytest.MonkeyPatch, asks: bool) -> None:
    """Whether it is silent or asks again and again; it is gone then."""
    monkeypatch.setattr(separate_process, "STILL", 0.1)

    def work() -> None:
        while True:
            time.sleep(0.01)
            if asks:
                ask_root("uid")

    before = children()
    with pytest.raises(CouldNotLook, match=r"took longer than 0\.3 s"):
        run_as(USER, work, {"uid": os.geteuid}, limit=0.3)
    assert children() == before


def test_one_that_hangs_in_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root does not wait for it, and starts no other one until it is gone."""
    monkeypatch.setattr(separate_process, "UNKILLABLE", 0.0)
    waits = [(0, 0), (0, 0)]
    wait = os.waitpid
    monkeypatch.setattr(os, "waitpid", lambda *given: waits.pop() if waits else wait(*given))

    assert run_as(USER, lambda: 1, {}) == 1
    waits.append((0, 0))
    with pytest.raises(CouldNotLook, match="an earlier check still waits"):
        run_as(USER, lambda: 2, {})
    monkeypatch.undo()
    while separate_process._hanging:
        with contextlib.suppress(CouldNotLook):
            assert run_as(USER, lambda: 3, {}) == 3


def test_without_the_capability_to_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that has dropped it: the child ends by itself, and nothing is left."""

    def refuse(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "kill", refuse)
    child = run_as(USER, os.getpid, {})

    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)


@pytest.mark.parametrize(("module", "name"), [(socket, "socketpair"), (os, "fork")])
def test_it_cannot_be_started(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> None:
    """A container or a hardened service may forbid the system call: root does not look itself."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(module, name, refuse)

    with pytest.raises(CouldNotLook) as why:
        run_as(USER, lambda: 1, {})

    assert str(why.value) == (
        "the home belongs to another user, and the process that works as this user could not be "
        "started (operation not permitted)"
    )
