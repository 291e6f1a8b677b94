"""Backups beside a real gateway, and those that a real Hermes makes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.real.controlled_gateways import VERSION, Ward, ward
from tests.helpers.real.gateways import answers, until
from tests.helpers.real.release_homes import MakeHome
from tools import real_home

pytestmark = pytest.mark.real
LOSS = "that the restored copy lacks will be removed from state.db and kept in a backup"
ZIP = """
import argparse
from hermes_cli.backup import create_quick_snapshot, run_backup
create_quick_snapshot(label="pre-update")
run_backup(argparse.Namespace(output="OUT", quick=False, label=None))
"""


@pytest.mark.wide
def test_restored_with_the_gateway_down_meanwhile(hermes_home: MakeHome) -> None:
    """A store that it has in memory, then all of the home: it is down for both, and up again.

    The undo of the whole restore is not refused because of what the gateway has written since. Both
    say how many messages they remove.
    """
    home = hermes_home(VERSION)
    jobs = support.put(home / "cron" / "jobs.json", json.dumps({"jobs": [], "updated_at": "then"}))
    saved = jobs.read_bytes()
    with ward(home) as one:
        made = one.doctor("backup", "create", "--json")
        assert made.code == 0, made.out + made.err
        first = one.pid
        jobs.write_text('{"jobs": [')

        done = one.doctor("backup", "restore", made.json["id"], "cron", "--yes", "--json")

        assert done.code == 0, done.out + done.err
        assert done.json["gateway"] == "started"
        second = one.pid
        assert second != first
        assert jobs.read_bytes() == saved
        write_messages(one)
        whole = one.doctor("backup", "restore", made.json["id"], "--yes")
        assert whole.code == 0, whole.out + whole.err
        assert LOSS in whole.out
        assert not re.search(r"heartbeat|gateway\.pid|\.lock", whole.out), "about a process"
        third = one.pid
        assert third not in (first, second)
        assert answers(one.port)
        beat = (home / "state" / "gateway.heartbeat").read_bytes
        last = beat()
        write_messages(one)
        until(lambda: beat() != last, "the next heartbeat")
        undone = one.doctor("undo", "--yes")
        assert undone.code == 0, undone.out + undone.err
        assert LOSS in undone.out
        assert one.pid != third, "it was running before, and does again"
        assert answers(one.port)


def write_messages(one: Ward) -> None:
    """Let the gateway write messages into its history."""
    folder = one.home.parent
    (folder / "written").unlink(missing_ok=True)
    (folder / "write").touch()
    until((folder / "written").exists, "a message")
    (folder / "write").unlink()


def test_what_hermes_makes(hermes_home: MakeHome, tmp_path: Path) -> None:
    """Its zip and its snapshot are whole, are said to be, and can be restored from."""
    home = hermes_home(VERSION)
    support.put(home / "auth.json", '{"providers": {}}\n')
    script = ZIP.replace("OUT", str(tmp_path / "hermes-backup-1.zip"))
    real_home.run(VERSION, home, script)
    rows = (home / "state.db").read_bytes()

    found = support.doctor("backup", "verify", "--hermes", "--json", "--home", home)
    assert found.code == 0, found.out
    [snapshot] = (home / "state-snapshots").iterdir()
    assert snapshot.name in {one["id"] for one in found.json["backups"]}
    zipped = tmp_path / "hermes-backup-1.zip"
    looked = support.doctor("backup", "verify", zipped, "--home", home)
    assert looked.code == 0, looked.out
    support.clobber(home / "state.db", b"\xff" * 4096, 0)
    for source in (zipped, snapshot):
        done = support.doctor("backup", "restore", source, "history", "--yes", "--home", home)
        assert done.code == 0, done.out + done.err
        assert (home / "state.db").read_bytes()[:16] == rows[:16]
