"""The lock of a home, held so that no gateway starts."""

from __future__ import annotations

import fcntl
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.hermes.processes.home_of import LOCK
from hermes_doctor.repair.gateway.process_handle import StartLock


def test_it_excludes_every_other_process(tmp_path: Path) -> None:
    """As a gateway does: whoever tries meanwhile is refused at once, and not afterwards."""
    one, other = StartLock(Home(tmp_path)), StartLock(Home(tmp_path))

    assert one.take() and one.take(), "taking it twice changes nothing"
    assert not other.take()
    one.release()
    one.release()
    assert other.take()
    other.release()


def test_a_lock_of_a_gateway_is_left_alone(tmp_path: Path) -> None:
    """What it wrote into the file stays, and so does its lock."""
    path = tmp_path / LOCK
    path.write_text('{"pid": 1}')
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert not StartLock(Home(tmp_path)).take()
    lock = StartLock(Home(tmp_path))
    assert lock.take()
    assert path.read_text() == '{"pid": 1}'
    lock.release()


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    """Nothing outside of the home is created or locked."""
    (tmp_path / LOCK).symlink_to(tmp_path / "elsewhere")
    assert not StartLock(Home(tmp_path)).take()
    assert not (tmp_path / "elsewhere").exists()
