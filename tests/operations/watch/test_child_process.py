"""A piece of work in a process of its own: its result comes back, and nothing else of it stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.operations.watch import child_process
from hermes_doctor.operations.watch.child_process import ChildFailed, ChildProcesses
from tests.helpers.watch_parts import copies

KEPT: list[bytes] = []


def fds() -> list[str]:
    """The open descriptors of this process."""
    return sorted(os.listdir("/proc/self/fd"))


def until(true: Callable[[], object]) -> None:
    limit = time.monotonic() + 30
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_the_result_comes_back_and_nothing_stays() -> None:
    """What the work allocates, its threads and its process are gone."""
    children, before = ChildProcesses(), fds()

    def work() -> list[int]:
        KEPT.append(bytes(1 << 20))
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        return [os.getpid(), len(KEPT), threading.active_count()]

    pids = set()
    for _ in range(5):
        pid, kept, threads = children.run(work)
        pids.add(pid)
        assert kept == 1 and threads >= 2
        assert KEPT == []
    assert os.getpid() not in pids and len(pids) == 5
    assert not copies()
    assert fds() == before


def test_a_large_result() -> None:
    """A result may be larger than a pipe; one that is too large is refused."""
    children = ChildProcesses()
    assert children.run(lambda: "x" * 3_000_000) == "x" * 3_000_000
    with pytest.raises(CouldNotLook, match="too large"):
        children.run(lambda: "x" * (child_process.MOST_BYTES + (2 << 20)))
    assert not copies()


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed (SIGKILL, perhaps because memory"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "killed (SIGSEGV)"),
        (lambda: os._exit(0), "ended without a result"),
        (lambda: object(), "ended without a result"),
    ],
)
def test_a_process_without_a_result(work: Callable[[], object], why: str) -> None:
    """The reason is reported, and the next one works."""
    children = ChildProcesses()
    with pytest.raises(ChildFailed) as failed:
        children.run(work)
    assert why in str(failed.value)
    assert children.run(lambda: 1) == 1
    assert not copies()


def test_what_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    """Also a command that the work waits for."""
    pids = tmp_path / "pid"

    def work() -> None:
        with subprocess.Popen(["sleep", "600"]) as command:
            pids.write_text(str(command.pid))

    with pytest.raises(CouldNotLook, match="took longer than 2 s"):
        ChildProcesses().run(work, limit=2)
    until(lambda: not psutil.pid_exists(int(pids.read_text())) or _is_zombie(pids))
    assert not copies()


def _is_zombie(pids: Path) -> bool:
    """Whether the command has ended; what it was a child of may not have noticed yet."""
    return psutil.Process(int(pids.read_text())).status() == psutil.STATUS_ZOMBIE


def test_an_exception_in_the_meantime_ends_the_process() -> None:
    """Such as that of a signal, in the middle of a round."""

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    before = fds()
    with pytest.raises(KeyboardInterrupt):
        ChildProcesses().run(lambda: time.sleep(600), idle=stop)
    assert not copies()
    assert fds() == before


def test_it_has_no_descriptors_of_the_watch(tmp_path: Path) -> None:
    """A copy of a lock's descriptor would keep the lock; only those that are named are kept."""
    with (tmp_path / "lock").open("w") as lock, (tmp_path / "kept").open("w") as kept:
        found = ChildProcesses().run(_open_files, keep=[kept.fileno()])
        assert str(tmp_path / "kept") in found
        assert str(tmp_path / "lock") not in found and lock.fileno() > 2
        assert len(found) == 5, "the usual three, the pipe, and the one that is kept"


def _open_files() -> list[str]:
    found = []
    for fd in fds():
        with contextlib.suppress(FileNotFoundError):  # the one that listed the folder
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
    return found


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    """However the parent ends."""
    told = tmp_path / "pid"

    def work() -> None:
        told.write_text(str(os.getpid()))
        time.sleep(600)

    parent = os.fork()
    if parent == 0:
        ChildProcesses().run(work)
        os._exit(0)
    until(lambda: told.exists() and told.read_text())
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    pid = int(told.read_text())
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie")


def test_a_process_that_cannot_be_killed_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs in the kernel, on a dead network drive: others would only join it."""
    children = ChildProcesses()
    monkeypatch.setattr(child_process, "UNKILLABLE", 0.05)
    real = child_process._status
    monkeypatch.setattr(child_process, "_status", lambda _: None)
    with pytest.raises(CouldNotLook, match="took longer"):
        children.run(lambda: time.sleep(600), limit=0.1)
    with pytest.raises(CouldNotLook, match="the disk does not answer"):
        children.run(lambda: 1)
    monkeypatch.setattr(child_process, "_status", real)
    until(lambda: _answers(children))
    assert not copies()


def _answers(children: ChildProcesses) -> bool:
    try:
        return bool(children.run(lambda: 1) == 1)
    except CouldNotLook:
        return False


def test_a_hanging_thread_does_not_keep_the_result_back() -> None:
    """The result ends with a mark: a thread in the kernel would keep the pipe open."""

    def work() -> str:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        return "found"

    began = time.monotonic()
    assert ChildProcesses().run(work) == "found"
    assert time.monotonic() - began < 20
