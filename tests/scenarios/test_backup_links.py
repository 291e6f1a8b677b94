"""Symlinks of a home that lead to the home, around it, or nowhere are saved as links only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from tests.helpers import support

TARGETS = {
    "root": "/",
    "self": ".",
    "parent": "..",
    "kernel": "/proc",
    "device": "/dev/zero",
    "loop": "loop",
    "nowhere": "/nowhere/at/all",
    "in/root": "/",
    "in/home": "..",
}


def link(home: Path) -> None:
    """Put every kind of link into the home."""
    (home / "in").mkdir()
    for name, target in TARGETS.items():
        (home / name).symlink_to(target)


@pytest.fixture
def linked(home: Path) -> Path:
    """A home with every kind of link."""
    link(home)
    support.put(home.parent / "beside", "not the home's")
    return home


def test_links_are_saved_and_restored_as_links(linked: Path) -> None:
    """Nothing behind them is copied, and they come back with the same targets."""
    done = support.doctor("backup", "create", "--json", "--home", linked)

    assert done.code == 0, done.err
    backup = Vault(Home(linked)).load(done.json["id"])
    saved = {one.path: one.target for one in backup.entries if one.kind == "symlink"}
    assert saved == TARGETS
    assert [one.path for one in backup.entries if one.path.startswith("/")] == []
    assert set(done.json["not_followed"]) == {"root", "in/root", "parent", "kernel"}
    for name in TARGETS:
        (linked / name).unlink()
    restored = support.doctor("backup", "restore", backup.id, "--yes", "--home", linked)
    assert restored.code == 0, restored.err
    assert {name: os.readlink(linked / name) for name in TARGETS} == TARGETS


def test_other_commands_with_such_links(linked: Path, tmp_path: Path) -> None:
    """A second backup, its verification, and the preparation of an update work as well."""
    for args in (
        ("backup", "create"),
        ("backup", "create"),
        ("backup", "verify", "--deep"),
        ("backup", "list"),
        ("hook", "run", "pre-update"),
        ("check",),
    ):
        done = support.doctor(*args, "--home", linked)

        assert "Traceback" not in done.err, done.err
        assert done.code == 0 or args == ("check",), (args, done.out, done.err)


def test_update_guard_with_such_links(linked: Path) -> None:
    """The update is guarded, and its command runs."""
    done = support.doctor("update-guard", "--home", linked, "--", "true")

    assert "Traceback" not in done.err
    assert "created and verified" in done.err
