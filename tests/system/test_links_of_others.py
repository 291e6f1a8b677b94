"""A folder of another user inside a home of root's: its links give root nothing to read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.helpers import crash_server, support

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has files to lose")
FOUND = "the disk is full"


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of root's with logs of another user."""
    with support.reachable_folder() as place:
        home = support.healthy(place / "home")
        at = f"{datetime.now():%Y-%m-%d %H:%M:%S,000}"
        line = f"{at} WARNING gateway.platforms.base: Failed to write runtime status (connected) "
        line += "for qqbot: [Errno 28] No space left on device: '/home/op/.hermes/x.tmp'\n"
        support.put(place / "errors.log", line * 3)
        crash_server.chown(home / "logs")
        yield home


def said(home: Path) -> str:
    """What `check` says of the log."""
    return support.doctor("check", "--only", "log-rules", "-v", "--home", home).out


def test_a_file_in_the_folder_is_read(home: Path) -> None:
    """Of that user or of root, who may run the gateway."""
    (home.parent / "errors.log").rename(home / "logs" / "errors.log")
    for owner in (crash_server.STRANGER, 0):
        os.chown(home / "logs" / "errors.log", owner, owner)
        assert FOUND in said(home)


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_link_out_of_it(home: Path, mode: int) -> None:
    """Root reads what everybody may read, and says that it did not read the rest."""
    log = home.parent / "errors.log"
    log.chmod(mode)
    (home / "logs" / "errors.log").symlink_to(log)

    told = " ".join(said(home).split())

    assert (FOUND in told) == (mode == 0o644)
    assert ("a link of another user (uid 12345) leads to it" in told) == (mode == 0o600)


def test_a_second_name_of_a_file_of_root(home: Path) -> None:
    """A hard link is no way, either."""
    log = home.parent / "errors.log"
    log.chmod(0o600)
    os.link(log, home / "logs" / "errors.log")

    assert FOUND not in said(home)


def test_a_file_below_a_closed_folder(home: Path) -> None:
    """Everybody might read it, but that user does not get there."""
    closed = home.parent / "closed"
    closed.mkdir(0o700)
    (home.parent / "errors.log").rename(closed / "errors.log")
    (closed / "errors.log").chmod(0o644)
    (home / "logs" / "errors.log").symlink_to(closed / "errors.log")

    assert FOUND not in said(home)
