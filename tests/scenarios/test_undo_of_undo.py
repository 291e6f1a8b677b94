"""Undo without a name takes back what is done now; and a home with odd links comes back whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helpers import crash_server, support

BOM = b"\xef\xbb\xbf"


def undo(home: Path, *args: str) -> str:
    """`undo`; which run it took back."""
    done = support.doctor("undo", *args, "--yes", "--json", "--home", home)
    assert done.code == 0, done.out
    return str(done.json["of"])


def last(home: Path) -> str:
    """The newest run."""
    return str(crash_server.journals(home)[-1]["id"])


def test_undo_takes_back_what_was_done_again(home: Path) -> None:
    """Fix, undo, undo of that: the fix is in force again, and a bare undo takes it back."""
    (home / ".env").write_bytes(BOM + support.ENV.encode())
    sick = crash_server.state(home)
    assert support.doctor("fix", "--apply", "--yes", "--home", home).code == 0
    undo(home)
    undo(home, last(home))
    again = last(home)

    assert undo(home) == again

    assert crash_server.state(home) == sick


def test_undo_of_what_was_done_again(home: Path) -> None:
    """An undo that was undone leaves the fix in force: the next undo takes that back again."""
    (home / ".env").write_bytes(BOM + support.ENV.encode())
    sick = crash_server.state(home)
    assert support.doctor("fix", "--apply", "--yes", "--home", home).code == 0
    healthy = crash_server.state(home)
    fixed = last(home)

    assert undo(home) == fixed
    assert crash_server.state(home) == sick
    for _ in range(2):
        undone = last(home)
        assert undo(home, undone) == undone
        assert crash_server.state(home) == healthy
        again = last(home)
        assert undo(home) == again
        assert crash_server.state(home) == sick

    done = support.doctor("undo", "--yes", "--home", home)
    assert done.code == 2
    assert "No run is left to undo" in done.err
    assert crash_server.state(home) == sick


def test_undo_goes_on_to_the_run_before(home: Path) -> None:
    """With two runs, each bare undo takes back the newest that is in force."""
    (home / ".env").write_bytes(BOM + support.ENV.encode())
    assert support.doctor("fix", "--apply", "--yes", "--home", home).code == 0
    first = last(home)
    (home / "auth.json").chmod(0o644)
    assert support.doctor("fix", "--apply", "--yes", "--home", home).code == 0
    second = last(home)

    assert undo(home) == second
    redone = undo(home, last(home))
    assert undo(home) not in (first, second, redone)
    assert undo(home) == first


LOOPS: dict[str, dict[str, str]] = {
    "to itself": {"loop": "loop"},
    "to each other": {"one": "two", "two": "one"},
    "to its own folder": {"skills/here": ".", "skills/up": ".."},
    "through a folder": {"skills/loop": "../skills/loop/x"},
    "to nowhere": {"lost": "nowhere", "far": "/nonexistent/file"},
    "in the place of a file": {"SOUL.md": "SOUL.md"},
    "in the place of a database": {"response_store.db": "response_store.db"},
}


@pytest.mark.sampled
@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("gone", [True, False], ids=["gone", "there"])
def test_a_home_with_a_loop_is_restored_whole(home: Path, kind: str, gone: bool) -> None:
    """Links are saved as they are and come back as they were, wherever they lead."""
    (home / "skills").mkdir()
    for name, target in LOOPS[kind].items():
        (home / name).symlink_to(target)
    saved = crash_server.state(home)
    assert support.doctor("backup", "create", "--home", home).code == 0
    [id] = os.listdir(home / "backups" / "doctor")
    support.put(home / "config.yaml", "changed: true\n")
    if gone:
        for name in LOOPS[kind]:
            (home / name).unlink()
    changed = crash_server.state(home)

    done = support.doctor("backup", "restore", id, "--yes", "--home", home)

    assert done.code == 0, done.out + done.err
    assert crash_server.state(home) == saved
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert crash_server.state(home) == changed
