"""`backup verify --deep`: restored into a scratch folder, examined there, and nothing is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.backup.vault.trial_restore import try_restore
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from tests.helpers import support
from tests.helpers.crash_server import logged
from tests.helpers.database_writer import back_up


def deep(home: Path) -> support.Done:
    """`backup verify --deep`."""
    return support.doctor("backup", "verify", "--deep", "--home", home)


def test_whole(home: Path) -> None:
    """All of it can be had back; the vault is as before, and so is the home."""
    back_up(home)
    before = support.tree(home, vault=True)

    done = deep(home)

    assert done.code == 0, done.out
    assert "all of it can be restored" in done.out
    after = support.tree(home, vault=True)
    changed = {name for name in before if before[name] != after.get(name)}
    assert changed <= {"backups/doctor"}, "a folder was made in the vault, and removed again"
    assert before.keys() == after.keys()


def test_a_database_that_was_damaged_when_it_was_saved(home: Path) -> None:
    """It reads as it was saved, which a plain look finds in order; SQLite does not."""
    support.clobber(home / "state.db", b"\xff" * 200, 4096 * 3)
    back_up(home)
    assert support.doctor("backup", "verify", "--home", home).code == 0

    done = deep(home)

    assert done.code == 1
    assert "state.db: the copy is intact, but SQLite finds damage in it" in " ".join(
        done.out.split()
    )


def test_a_log_beside_it(home: Path) -> None:
    """What only a log holds is laid over it, in the scratch folder alone."""
    logged(home / "kanban.db", "UPDATE tasks SET title = 'only in the log'")
    made = back_up(home)
    copies = {f: f.read_bytes() for f in made.folder.rglob("kanban.db*")}
    assert len(copies) == 3

    assert try_restore(Vault(Home(home)), made) == []

    assert {file: file.read_bytes() for file in copies} == copies


def test_names_that_are_odd(home: Path) -> None:
    """A log without its database, names as long as names can be, and names of our own files."""
    support.put(home / "lost.db-wal", "no log of anything")
    for name in ("x" * 255, "y" * 252 + ".db", "home", "manifest.json"):
        support.put(home / "skills" / name, "")
    saved = support.contents(home)
    made = back_up(home)
    for file in (home / "skills").iterdir():
        file.unlink()

    assert deep(home).code == 0
    done = support.doctor("backup", "restore", made.id, "--yes", "--home", home)

    assert done.code == 0, done.err
    assert support.contents(home) == saved
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert list((home / "skills").iterdir()) == []


def test_a_store_that_explodes(home: Path) -> None:
    """Its merges would unfold to more than any memory holds."""
    more = [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], y{n}: 1}}" for n in range(1, 40)]
    support.put(home / "config.yaml", "\n".join(["a0: &a0 {x: 1}", *more]))
    made = back_up(home)

    [wrong] = try_restore(Vault(Home(home)), made)

    assert wrong == "config.yaml: the copy is intact, but it could not be parsed"


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["auth.json", "cron/jobs.json", "config.yaml"])
def test_a_store_that_hermes_could_not_read(home: Path, name: str) -> None:
    """A store that is no JSON or YAML is named; what it says is not."""
    support.put(home / name, "{zQcanary: [")
    back_up(home)

    done = deep(home)

    assert done.code == 1
    assert f"{name}: the copy is intact, but it could not be parsed" in " ".join(done.out.split())
    assert "zQcanary" not in done.out + done.err


def test_a_damaged_copy(home: Path) -> None:
    """What a plain look finds, this finds too; and goes on with the rest."""
    made = back_up(home)
    support.clobber(made.folder / "files" / ".env", b"X", 1)
    (made.folder / "files" / "auth.json").unlink()

    said = deep(home).out

    assert ".env: the copy is damaged" in said
    assert "auth.json: the copy is missing" in said


def test_nothing_of_the_living_home_is_opened(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the vault: whoever has the home open is not disturbed."""
    made = back_up(home)
    store = Vault(Home(home))
    opened: list[str] = []
    real = os.open

    def open_(path: str | Path, flags: int, *more: int, **named: int) -> int:
        opened.append(str(path))
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", open_)
    assert try_restore(store, made) == []

    inside = [path for path in opened if path.startswith(str(home))]
    assert inside
    assert [path for path in inside if not path.startswith(str(store.root))] == []


def test_what_stands_in_the_way(home: Path) -> None:
    """A folder where a file was, and the reverse: one line says so, and nothing is changed."""
    file, inside = support.put(home / "skills/a", "a"), support.put(home / "skills/b/c", "c")
    id = back_up(home).id
    file.unlink()
    support.put(file / "new", "x")
    inside.unlink()
    inside.parent.rmdir()
    support.put(inside.parent, "x")
    before = support.contents(home)

    for name, said in (("skills/a", "is now a folder"), ("skills/b", "is not a folder")):
        done = support.doctor("backup", "restore", id, name, "--yes", "--home", home)
        assert done.code == 2
        assert said in done.err
    assert support.contents(home) == before
