"""What the watch does when a signal arrives."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from hermes_doctor.operations.watch.signals import Signals, StopRequested

PATIENCE = 30.0


def test_a_signal_that_does_not_interrupt_the_wait_ends_it() -> None:
    """As one that arrives just before the wait begins: the system call is not interrupted by it."""
    signals, stop = Signals(), threading.Event()
    sender = threading.Thread(target=_send_soon, args=(stop,))
    with signals.heard():
        sender.start()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # the other thread takes it
        try:
            begun = time.monotonic()
            signals.wait(PATIENCE)
            assert signals.ending and time.monotonic() - begun < PATIENCE / 2
        finally:
            stop.set()
            sender.join()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])


def _send_soon(stop: threading.Event) -> None:
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGTERM)
    stop.wait(PATIENCE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_examination_is_interrupted(number: int) -> None:
    """And only an examination; then everything is as before."""
    signals, before = Signals(), signal.getsignal(number)
    with signals.heard():
        with pytest.raises(StopRequested), signals.stoppable():
            os.kill(os.getpid(), number)
            signals.wait(PATIENCE)
        os.kill(os.getpid(), number)
        assert signals.ending
        with pytest.raises(StopRequested), signals.stoppable():
            pytest.fail("an examination began after the request to stop")
    assert signal.getsignal(number) == before
    assert signal.set_wakeup_fd(-1) == -1


def test_sighup_only_ends_the_wait() -> None:
    """The next round begins, and the wait after it is a whole one again."""
    signals = Signals()
    with signals.heard(), signals.stoppable():
        os.kill(os.getpid(), signal.SIGHUP)
        signals.wait(PATIENCE)
        assert signals.hurry and not signals.ending
        signals.hurry = False
        begun = time.monotonic()
        signals.wait(0.1)
        assert time.monotonic() - begun >= 0.1
