"""Manifests and receipts with impossible values: one line that says so, and never a traceback."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests import forging, support

ODD: list[Any] = [
    *(2**40, 2**32, 2**31, -2, -(2**40), 2**63, 10**400, 1.5, 1e308, float("nan"), float("inf")),
    *("1", "", None, True, [], {}, [[[]]], {"a": {}}, "\ud800", "a\0b"),
]
FIELDS = ("size", "mode", "uid", "gid", "mtime_ns", "read_at", "examined_at", "seen", "xattrs")
HEAD = ("id", "created_at", "home", "reason", "tool", "hermes", "shares", "left_out", "missing")


def commands(home: Path, id: str) -> list[tuple[str | Path, ...]]:
    """What reads a backup."""
    return [
        ("backup", "list", "--home", home),
        ("backup", "verify", id, "--home", home),
        ("backup", "restore", id, "--yes", "--home", home),
        ("backup", "create", "--home", home),
    ]


def insist(done: support.Done) -> None:
    """No traceback, no internal error, and an exit code of the contract."""
    said = done.out + done.err
    assert "Traceback" not in said
    assert "Please report it" not in said, said
    assert done.code in (0, 1, 2)


def test_a_uid_that_no_system_has(home: Path) -> None:
    """The manifest is damaged, in one line."""
    forging.manifest(home, forging.entry("notes.txt", uid=2**40))

    done = support.doctor("backup", "restore", forging.ID, "--yes", "--home", home)

    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "is damaged" in done.err


@pytest.mark.parametrize("field", FIELDS)
def test_odd_entries(home: Path, field: str) -> None:
    """Every field of an entry with every kind of value."""
    for value in ODD:
        forging.manifest(home, forging.entry("notes.txt", **{field: value}))
        for words in commands(home, forging.ID)[:3:2]:
            insist(support.doctor(*words))


@pytest.mark.parametrize("field", HEAD)
def test_odd_heads(home: Path, field: str) -> None:
    """The same of the head of a manifest, with the seal that fits."""
    for value in ODD:
        forging.manifest(home, forging.entry("notes.txt"), head={field: value})
        for words in commands(home, forging.ID)[:3:2]:
            insist(support.doctor(*words))


def test_odd_receipts(home: Path) -> None:
    """A receipt with a value that it cannot have is damaged; commands say so and go on."""
    support.put(home / ".env", support.ENV, 0o644)
    made = support.doctor("fix", "--apply", "--yes", "--json", "--home", home)
    (path,) = (home / "backups" / "doctor" / "runs").glob("*/run.json")
    good = json.loads(path.read_text())
    assert made.code in (0, 1)
    chance = random.Random(1)
    for value in ODD:
        spoilt = json.loads(json.dumps(good))
        holder = chance.choice([spoilt, *spoilt["paths"], *(p["after"] for p in spoilt["paths"])])
        for name in chance.sample(sorted(holder), min(3, len(holder))):
            kept = holder[name]
            holder[name] = value
            path.write_text(json.dumps(spoilt))
            insist(support.doctor("undo", "--yes", "--home", home))
            insist(support.doctor("undo", path.parent.name, "--yes", "--home", home))
            holder[name] = kept
        path.write_text(json.dumps(good))
