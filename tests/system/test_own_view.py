"""The way to a home below a folder that root closed: what the owner's process sees, and others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.system import own_view, privileges, separate_process
from tests.cli.test_separate_look import opened_by_root
from tests.helpers import crash_server, support
from tests.helpers.crash_server import STRANGER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")


@pytest.fixture
def home() -> Iterator[Path]:
    """Another user's home below a folder of root's that nobody else may enter, as in Docker."""
    with support.reachable_folder() as place:
        closed = place / "volumes"
        closed.mkdir(0o700)
        support.put(closed / "other" / "secret", "root's")
        home = support.healthy(closed / "one" / "_data" / "home")
        crash_server.chown(home)
        yield home


def owner(home: Path) -> privileges.Privileges:
    """The user as whom root works in the home."""
    found = privileges.owner_of_home(home)
    assert found is not None and found.uid == STRANGER and not found.can_reach
    return found


def test_its_owner_reaches_it(home: Path) -> None:
    """By the same path, to read and to write; and nothing else below the closed folder."""

    def work() -> list[object]:
        (home / "new").write_text("from its owner")
        above = home.parents[2]
        return [os.getuid(), os.listdir(above), os.access(above, os.W_OK), home.stat().st_dev]

    uid, listed, writes, device = separate_process.run_as(owner(home), work, {})

    assert (uid, listed, writes) == (STRANGER, ["one"], False)
    assert device == home.stat().st_dev, "the home must be on the same disk"
    assert (home / "new").stat().st_uid == STRANGER
    assert sorted(os.listdir(home.parents[2])) == ["one", "other"]
    assert str(home) not in Path("/proc/self/mountinfo").read_text()


def test_root_without_the_right(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is told in a way that the caller can tell from others."""
    monkeypatch.setattr(own_view, "_NEW_MOUNT_NAMESPACE", 0x1)  # not valid, so it is refused
    with pytest.raises(own_view.NoView, match="may not make a mount namespace"):
        separate_process.run_as(owner(home), lambda: 1, {})
    assert support.check(home).json["home"] == str(home)


def test_a_folder_that_was_replaced(home: Path) -> None:
    """What belongs to somebody else by now is not shown to the owner."""
    user = owner(home)
    os.chown(home, 0, 0)
    with pytest.raises(Exception, match="replaced the folder"):
        separate_process.run_as(user, lambda: 1, {})


@pytest.mark.needs("strace")
@pytest.mark.parametrize("command", [("check", "--json"), ("fix", "--apply", "--yes")])
def test_root_opens_nothing_in_it(home: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    """The same holds as in a home that its owner can reach."""
    shutil.rmtree(home)
    crash_server.sick(home)
    crash_server.chown(home)

    by_root, by_others = opened_by_root(command, home, tmp_path / "log")

    assert [path for path in by_root if path.startswith(f"{home}/")] == []
    assert any(path.startswith(str(home)) for path in by_others)
