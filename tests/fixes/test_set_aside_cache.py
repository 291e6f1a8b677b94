"""set-aside-cache: a cache that stops the gateway goes into the vault."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import damage, fix_cycle, support
from tests.helpers.fix_contract import Planted
from tests.helpers.fix_cycle import SECRET


def cache(home: Path, name: str) -> Path:
    """A cache with enough rows for several pages."""
    path = home / name
    support.made(name, path).close()
    table, column = ("responses", "data") if name.startswith("resp") else ("filler", "text")
    with damage.opened(path) as db:
        if table == "filler":
            db.execute("CREATE TABLE filler (id INTEGER PRIMARY KEY, text TEXT)")
        for n in range(60):
            text = f'{{"n": {n}, "text": "{SECRET * 20}"}}'
            if table == "filler":
                db.execute(f"INSERT INTO {table} ({column}) VALUES (?)", (text,))
            else:
                db.execute("INSERT INTO responses VALUES (?, ?, 1)", (f"r{n}", text))
    path.chmod(0o600)
    return path


def _lost(path: Path) -> None:
    support.put(path, b"not a database at all\n" * 400)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 2 * damage.PAGE)


def _pages(path: Path) -> None:
    table = "responses" if path.name.startswith("resp") else "filler"
    damage.zero(path, damage.leaves(path, table)[1])


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["response_store.db", "cron/executions.db"])
@pytest.mark.parametrize(
    ("spoil", "code"), [(_lost, "DB-NOTADB"), (_cut, "DB-TRUNCATED"), (_pages, "DB-MALFORMED")]
)
def test_cures_and_undoes(home: Path, name: str, spoil: Callable[[Path], None], code: str) -> None:
    """It is gone with all that lay beside it; undo brings all of it back."""
    path = cache(home, name)
    spoil(path)
    support.put(Path(f"{path}-shm"), bytes(32768))
    if code == "DB-MALFORMED" and name == "response_store.db":
        code = "RESPSTORE"

    cured = fix_cycle.cure(home, code, "set-aside-cache", name)

    assert not list(path.parent.glob(f"{path.name}*"))
    cured.undo()


def test_readable_by_others(home: Path) -> None:
    """Its second problem is gone with it, so nothing is left and the exit code is 0."""
    path = cache(home, "response_store.db")
    _lost(path)
    path.chmod(0o644)

    done = support.doctor("fix", "databases", "PERM-SECRETS", "--apply", "--yes", "--home", home)

    assert done.code == 0, done.out + done.err
    assert not path.exists()


PLANTED = Planted("DB-NOTADB", lambda home: _lost(cache(home, "response_store.db")))
