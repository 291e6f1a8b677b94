"""tighten-modes: 0600 and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.fix_contract import Planted


@pytest.mark.sampled
@pytest.mark.parametrize("mode", [0o644, 0o666, 0o640, 0o604, 0o755, 0o620])
def test_cures_and_undoes(home: Path, mode: int) -> None:
    """The mode is 0600, content and time stay, twice equals once, undo sets the old mode."""
    (home / ".env").chmod(mode)
    (home / "auth.json").chmod(mode)
    sick = support.contents(home)
    time = (home / ".env").stat().st_mtime_ns

    done = support.doctor("fix", "PERM-SECRETS", "--apply", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    assert {(home / name).stat().st_mode & 0o777 for name in (".env", "auth.json")} == {0o600}
    assert (home / ".env").stat().st_mtime_ns == time
    cured = support.contents(home)
    again = support.doctor("fix", "--apply", "--json", "--home", home)
    assert (again.code, again.json["repair"]["runs"]) == (0, [])
    assert support.contents(home) == cured
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def test_no_second_copy_of_the_secret(home: Path) -> None:
    """Only mode and owner change, so the vault keeps no copy of the content."""
    support.put(home / ".env", "K=canary\n", 0o644)

    assert support.doctor("fix", "--apply", "--home", home).code == 0

    files = [path for path in (home / "backups").rglob("*") if path.is_file()]
    assert files
    assert not any(b"canary" in path.read_bytes() for path in files)


def test_symlink(home: Path, tmp_path: Path) -> None:
    """The file that a symlink leads to is closed, if asked for by name; the link stays."""
    real = support.put(tmp_path / "env", "A=1\n", 0o644)
    (home / ".env").unlink()
    (home / ".env").symlink_to(real)

    assert support.doctor("fix", "PERM-SECRETS", "--apply", "--home", home).code == 0

    assert (home / ".env").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert real.stat().st_mode & 0o777 == 0o644


def test_zips_and_snapshots(home: Path) -> None:
    """Hermes' own backups are closed too."""
    names = ["backups/a.zip", "state-snapshots/s/.env", "response_store.db-wal"]
    for name in names:
        support.put(home / name, b"x", 0o644)

    done = support.doctor("fix", "--apply", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    assert {(home / name).stat().st_mode & 0o777 for name in names} == {0o600}


def test_a_database_in_use_is_closed_too(home: Path) -> None:
    """A mode can be set under a process that has the database open."""
    import contextlib
    import sqlite3

    support.database(home / "response_store.db", "CREATE TABLE t (a)")
    (home / "response_store.db").chmod(0o644)
    with contextlib.closing(sqlite3.connect(home / "response_store.db")) as db:
        db.execute("SELECT * FROM t").fetchall()

        assert support.doctor("fix", "--apply", "--home", home).code == 0

    assert (home / "response_store.db").stat().st_mode & 0o777 == 0o600


def test_managed_home(home: Path) -> None:
    """A home that a package manager writes is changed there."""
    (home / ".env").chmod(0o644)
    support.put(home / ".managed", "")
    sick = support.contents(home)

    done = support.doctor("fix", "PERM-SECRETS", "--apply", "--json", "--home", home)

    assert "managed" in str([one["refusal"] for one in done.json["repair"]["plan"]])
    assert done.json["repair"]["runs"] == []
    assert support.contents(home) == sick


PLANTED = Planted("PERM-SECRETS", lambda home: (home / ".env").chmod(0o644))
