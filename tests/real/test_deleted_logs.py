"""A real gateway whose write-ahead log was deleted: no message of its is lost by the repair."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from tests.helpers.real.controlled_gateways import VERSION, Ward, ward
from tests.helpers.real.gateways import until
from tests.helpers.real.release_homes import MakeHome

pytestmark = pytest.mark.real


def write(one: Ward, more: int) -> int:
    """Let the gateway write so many more messages; the number of the last."""
    written = one.home.parent / "written"
    first = int(written.read_text() or 40) if written.exists() else 40
    (one.home.parent / "write").touch()
    until(
        lambda: written.exists() and int(written.read_text() or 0) >= first + more,
        "the gateway to write",
    )
    return int(written.read_text())


def test_no_message_is_lost(hermes_home: MakeHome) -> None:
    """The gateway writes on until it is stopped; every message it wrote is in the file then."""
    with ward(hermes_home(VERSION)) as one:
        path = one.home / "state.db"
        write(one, 5)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink()
        last = write(one, 20)
        pid = one.pid

        done = one.fix("DB-DELETED-WAL")

        (one.home.parent / "write").unlink()
        assert done.code == 0, done.out + done.err
        [run] = done.json["repair"]["runs"]
        assert one.pid != pid and run["gateway"] == "started"
        [saved] = run["saved"]
        vault = Vault(Home(one.home))
        assert vault.verify(vault.load(saved)) == []
        steps = run["items"][0]["steps"]
        assert "before anything is stopped" in steps[0] and steps[-1].startswith("restart")
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        written = "SELECT content FROM messages WHERE content LIKE 'message number %' ORDER BY id"
        numbers = [int(text.rpartition(" ")[2]) for (text,) in db.execute(written)]
    first = numbers[numbers.index(40) :]
    again = first.index(40, 1) if first.count(40) > 1 else len(first)  # by the next gateway
    assert first[:again] == list(range(40, 40 + again)) and 40 + again >= last
