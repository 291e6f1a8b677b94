"""What a watch knows lies beside the home, and survives whoever wrote it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes_doctor.core import home
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Severity
from hermes_doctor.operations.watch import state, store as stores
from hermes_doctor.operations.watch.changes import CurrentFinding
from hermes_doctor.operations.watch.state import FailedRepair, WatchState
from hermes_doctor.operations.watch.store import WatchStateFiles

KEY = ("A", "a subject")


def known() -> WatchState:
    made = WatchState()
    made.boot = "one"
    made.pid = 7
    made.began = "then"
    made.interval = 30.0
    made.heals = True
    made.standing = {KEY: CurrentFinding(Severity.ERROR, "wrong", "looks", 2)}
    made.unanswered = {"looks": 1}
    made.repairs = [5.0]
    made.failures = {KEY: FailedRepair(1, 99.0)}
    made.notified = {KEY: ("error", 5.0)}
    made.deeds = [{"at": "then", "what": "healed"}]
    return made


def written(**changes: object) -> bytes:
    """A file as the tool writes it, but for something that it never does."""
    mine = {"schema": stores.SCHEMA, "home": "/home"}
    return json.dumps({**state.document(known()), **mine, **changes}).encode()


def test_what_is_saved_is_known_again(tmp_path: Path) -> None:
    """What is saved is known again."""
    store = WatchStateFiles(Home(tmp_path / "home"), tmp_path / "state")
    store.save(known())

    found = WatchStateFiles(Home(tmp_path / "home"), tmp_path / "state").load("one")
    assert found and vars(found) == vars(known())
    assert store.file.stat().st_mode & 0o777 == 0o600


def test_times_of_another_boot_mean_nothing(tmp_path: Path) -> None:
    """Times of another boot mean nothing."""
    store = WatchStateFiles(Home(tmp_path / "home"), tmp_path / "state")
    store.save(known())

    found = store.load("two")

    assert found and not found.repairs and not found.failures
    assert found.standing == known().standing, "but what stood may still stand"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"schema": "hermes-doctor/watch/1"}',
        b"\xff\xfe",
        b"[" * 100000,
        json.dumps({"schema": "hermes-doctor/watch/1", "standing": {"a": 1}}).encode(),
        written(failures=[[*KEY, 1, float("inf")]]),
        written(failures=[[*KEY, 1, float("nan")]]),
        written(failures=[[*KEY, -1, 5.0]]),
        written(failures=[[*KEY, 1, 10**400]]),
        written(failures=[[*KEY, float("inf"), 5.0]]),
        written(clocks=[float("nan"), 1.0, 1.0]),
        written(interval=float("-inf")),
        written(busy_since=float("nan")),
        written(standing=[[*KEY, "error", "wrong", "looks", -7, 0]]),
    ],
)
def test_a_file_that_is_none_is_nothing(tmp_path: Path, text: bytes) -> None:
    """A file that is none is nothing."""
    store = WatchStateFiles(Home(Path("/home")), tmp_path / "state")
    store.folder.mkdir()
    store.file.write_bytes(text)

    assert store.load("one") is None
    store.file.write_bytes(written())
    found = store.load("one")
    assert found and vars(found) == vars(known())


def test_only_what_is_new_is_written(tmp_path: Path) -> None:
    """Only what is new is written."""
    store = WatchStateFiles(Home(tmp_path / "home"), tmp_path / "state")
    store.save(known())
    first = store.file.stat()
    os.utime(store.file, (1, 1))
    told = known()
    told.round_at = "later"
    store.save(told)

    again = store.file.stat()
    assert again.st_ino == first.st_ino, "the same file"
    assert again.st_mtime > 1, "which says when the last round was"
    told.repairs = []
    store.save(told)
    assert store.file.stat().st_ino != first.st_ino


def test_one_heals_and_only_it_writes(tmp_path: Path) -> None:
    """One heals and only it writes."""
    home = Home(tmp_path / "home")
    one, two = (WatchStateFiles(home, tmp_path / "state") for _ in range(2))

    assert one.take() and one.take()
    assert not two.take()
    assert two.holder() == os.getpid()
    assert two.others() and not one.others()
    two.save(known())
    assert not two.file.exists()
    one.save(known())
    assert two.file.exists()


def test_it_is_taken_away_without_a_trace(tmp_path: Path) -> None:
    """It is taken away without a trace."""
    store = WatchStateFiles(Home(tmp_path / "home"), tmp_path / "state")
    store.take()
    store.save(known())
    store.remove()

    assert not store.folder.exists()


def test_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the user's state lies, and not where a relative path would lead."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert home.state_folder() == tmp_path / "hermes-doctor"
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home.state_folder() == tmp_path / ".local/state/hermes-doctor"


def test_names_are_fit_for_a_unit() -> None:
    """Names are fit for a unit."""
    names = [
        home.identity(Home(Path(path)))
        for path in ("/home/a/.hermes", "/home/b/.hermes", "/h/profiles/x y\n%z", "/", "/…")
    ]

    assert len({*names}) == len(names)
    assert all(name.replace("-", "").isalnum() and name.isascii() for name in names)


def test_one_that_only_looks_leaves_what_was_spent(tmp_path: Path) -> None:
    """A watch in a terminal beside one that heals by cron does not give it a new budget."""
    store = WatchStateFiles(Home(tmp_path / "home"), tmp_path / "state")
    store.save(known())
    looking = known()
    looking.heals, looking.repairs, looking.failures = False, [], {}
    WatchStateFiles(Home(tmp_path / "home"), tmp_path / "state").save(looking)

    told = store.load("one")

    assert told is not None and told.repairs == [5.0] and told.failures == known().failures


def test_a_pipe_in_the_place_of_a_file_hangs_nothing(tmp_path: Path) -> None:
    """Neither in that of the lock, nor of what is known."""
    store = WatchStateFiles(Home(tmp_path / "home"), tmp_path / "state")
    store.folder.mkdir()
    os.mkfifo(store.lock)
    os.mkfifo(store.file)

    assert store.load("one") is None and not store.others()
    with pytest.raises(OSError, match="the lock file was replaced"):
        store.take()
    looking = known()
    looking.heals = False
    store.save(looking)
    assert store.load("one") is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be led where others may not go")
def test_root_is_led_nowhere(tmp_path: Path) -> None:
    """Whoever owns the folder can lead root only where he could go himself."""
    stranger = 12345
    tmp_path.chmod(0o755)
    private = tmp_path / "private"
    private.mkdir(0o700)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "hermes-doctor").symlink_to(private)
    for path in (theirs, theirs / "hermes-doctor"):
        os.chown(path, stranger, stranger, follow_symlinks=False)
    store = WatchStateFiles(Home(tmp_path / "home"), theirs / "hermes-doctor")
    with pytest.raises(OSError):
        store.take()
    with pytest.raises(OSError):
        store.save(known())

    assert not store.others() and os.listdir(private) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be given another's file")
def test_root_takes_nobody_elses_lock(tmp_path: Path) -> None:
    """In a folder of its own a lock of somebody else was put there by him."""
    store = WatchStateFiles(Home(tmp_path / "home"), tmp_path / "state")
    store.folder.mkdir(0o700)
    store.lock.touch()
    os.chown(store.lock, 12345, 12345)

    with pytest.raises(OSError, match="the lock file was replaced"):
        store.take()
