"""Manifests and receipts with impossible values: one line that says so, and never a traceback."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from tests.helpers import forged_vault, support

ODD: list[Any] = [
    *(2**40, 2**32, 2**31, -2, -(2**40), 2**63, 10**400, 1.5, 1e308, float("nan"), float("inf")),
    *("1", "", None, True, [], {}, [[[]]], {"a": {}}, "\ud800", "a\0b"),
]
FIELDS = ("size", "mode", "uid", "gid", "mtime_ns", "read_at", "examined_at", "seen", "xattrs")
HEAD = ("id", "created_at", "home", "reason", "tool", "hermes", "shares", "left_out", "missing")


def use(home: Path, folder: Path) -> None:
    """Load a backup; what can be loaded must not crash a command either."""
    try:
        backup = Vault(Home(home)).load(folder.name)
    except Trouble as trouble:
        assert "is damaged" in str(trouble)
        return
    assert backup.size >= 0
    insist(support.doctor("backup", "list", "--home", home))
    insist(support.doctor("backup", "restore", folder.name, "--yes", "--home", home))


def insist(done: support.Done) -> None:
    """No traceback, no internal error, and an exit code of the contract."""
    said = done.out + done.err
    assert "Traceback" not in said
    assert "Please report it" not in said, said
    assert done.code in (0, 1, 2)


def test_a_uid_that_no_system_has(home: Path) -> None:
    """The manifest is damaged, in one line."""
    forged_vault.manifest(home, forged_vault.entry("notes.txt", uid=2**40))

    done = support.doctor("backup", "restore", forged_vault.ID, "--yes", "--home", home)

    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "is damaged" in done.err


@pytest.mark.sampled
@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:20])
def test_odd_manifests(home: Path, value: Any) -> None:
    """Every field of an entry and of the head with every kind of value, and the seal that fits."""
    for field in FIELDS:
        use(home, forged_vault.manifest(home, forged_vault.entry("notes.txt", **{field: value})))
    for field in HEAD:
        use(home, forged_vault.manifest(home, forged_vault.entry("notes.txt"), head={field: value}))


def test_odd_receipts(home: Path) -> None:
    """A receipt with a value that it cannot have is damaged; commands say so and go on."""
    support.put(home / ".env", support.ENV, 0o644)
    made = support.doctor("fix", "--apply", "--yes", "--json", "--home", home)
    (path,) = (home / "backups" / "doctor" / "runs").glob("*/run.json")
    good = json.loads(path.read_text())
    assert made.code in (0, 1)
    chance = random.Random(1)
    for value in ODD[::2]:
        spoilt = json.loads(json.dumps(good))
        holder = chance.choice([spoilt, *spoilt["paths"], *(p["after"] for p in spoilt["paths"])])
        holder[chance.choice(sorted(holder))] = value
        path.write_text(json.dumps(spoilt))
        insist(support.doctor("undo", path.parent.name, "--yes", "--home", home))
    wrong = [{"saved": "abc"}, {"ended_at": 5}, {"asked": "x"}, {"kept": None}, {"gateway": 1}]
    no_states: list[Any] = [None, {}, [], 0, good["paths"][0]["before"] | {"uid": 2**40}]
    states = [*({"before": value} for value in no_states), {"joined_before": {}}]
    for spoilt in [
        *(good | change for change in wrong),
        *(good | {"paths": [good["paths"][0] | change]} for change in states),
    ]:
        path.write_text(json.dumps(spoilt))
        done = support.doctor("undo", path.parent.name, "--yes", "--home", home)
        assert done.code == 2, spoilt
        assert done.err.count("\n") == 1
        assert "is damaged" in done.err
