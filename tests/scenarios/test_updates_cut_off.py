"""The guard and the way back, cut off at their writes and on a full disk: nothing is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers import budget, crash_server, fake_environments, support
from tests.helpers.crash_server import NEEDS_ROOM, Cut, Server

EVERY = 4
"""One in so many writes is tried; which ones differs between the two commands."""


@pytest.fixture(scope="module")
def server() -> Server:
    """The warm process."""
    return crash_server.serving(alone=True)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a Hermes of its own."""
    home = support.healthy(tmp_path_factory.mktemp("healthy") / "home")
    fake_environments.make(home)
    return home


def test_a_backup_that_is_cut_off_can_be_made_again(
    server: Server, healthy: Path, tmp_path: Path
) -> None:
    """The home is as it was, no half backup counts, and the next one is whole."""
    before = crash_server.state(healthy)
    home = crash_server.clone(healthy, tmp_path / "home")
    whole = server("hook", "run", "pre-update", "--home", home)
    assert whole.code == 0, whole.said
    for at in budget.sample(range(0, len(whole.calls), EVERY), 8):
        shutil.rmtree(home)
        crash_server.clone(healthy, home)
        server("hook", "run", "pre-update", "--home", home, cuts=[Cut(at, "kill")])
        assert crash_server.state(home) == before, at
        again = server("hook", "run", "pre-update", "--home", home)
        assert again.code == 0, (at, again.said)
        assert crash_server.state(home) == before, at


def test_a_full_disk_stops_the_update(server: Server, healthy: Path, tmp_path: Path) -> None:
    """Nothing is changed, and it says that there is no space."""
    before = crash_server.state(healthy)
    home = crash_server.clone(healthy, tmp_path / "home")
    whole = server("hook", "run", "pre-update", "--home", home)
    needy = [call for call in whole.calls if call.name in NEEDS_ROOM]
    for at in budget.sample(range(0, len(needy), EVERY), 6):
        shutil.rmtree(home)
        crash_server.clone(healthy, home)
        cut = Cut(at, "ENOSPC", only=NEEDS_ROOM, lasting=True)
        ended = server("hook", "run", "pre-update", "--home", home, cuts=[cut])
        assert ended.code in (1, 2), (at, ended.said)
        assert "space" in ended.said.lower(), (at, ended.said)
        assert "Traceback" not in ended.said
        assert crash_server.state(home) == before, at


def test_a_way_back_that_is_cut_off_is_gone_to_its_end(
    server: Server, healthy: Path, tmp_path: Path
) -> None:
    """Run again, it gives the data of before, whatever the first one had come to."""
    updated = crash_server.clone(healthy, tmp_path / "updated")
    assert server("hook", "run", "pre-update", "--home", updated).code == 0
    support.put(updated / "config.yaml", "model: another\n")
    support.put(updated / "auth.json", "{}")
    (updated / "kanban.db").unlink()
    before = crash_server.state(healthy)
    home = crash_server.clone(updated, tmp_path / "home")
    whole = server("rollback", "--yes", "--home", home)
    assert whole.code == 0, whole.said
    assert crash_server.state(home) == before
    for at in budget.sample(
        range(1, len(whole.calls), EVERY), 4, lambda n: whole.calls[n].name == "exchange"
    ):
        shutil.rmtree(home)
        crash_server.clone(updated, home)
        server("rollback", "--yes", "--home", home, cuts=[Cut(at, "kill")])
        again = server("rollback", "--yes", "--home", home)
        assert again.code == 0, (at, again.said)
        assert crash_server.state(home) == before, at
