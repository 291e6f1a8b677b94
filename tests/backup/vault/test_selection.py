"""What a backup is made of, and what of it comes back: files, folders, globs, stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.backup.vault import selection
from hermes_doctor.backup.vault.selection import Choice
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from tests.helpers import support


@pytest.fixture
def home(home: Path) -> Path:
    """A home with something of every store."""
    for name in (
        "cron/jobs.json",
        "pairing/telegram-approved.json",
        "platforms/pairing/qq-approved.json",
        "platforms/whatsapp/session/creds.json",
        "weixin/accounts/one.json",
        "platforms/matrix/store/keys.bin",
        "sessions/sessions.json",
        "sessions/a.jsonl",
        "memories/MEMORY.md",
        "skills/one/SKILL.md",
        "logs/gateway.log",
        "cache/x",
        "profiles/coder/cron/jobs.json",
        "profiles/coder/logs/x.log",
    ):
        support.put(home / name, "{}")
    support.put(home / "state.db-wal", "a log")
    return home


def create(home: Path, *args: str) -> dict[str, Any]:
    """`backup create --json`, and the paths that it saved."""
    done = support.doctor("backup", "create", "--json", "--home", home, *args)
    assert done.code == 0, done.err
    manifest = json.loads(Path(done.json["folder"], "manifest.json").read_text())
    return dict(done.json) | {"saved": {entry["path"] for entry in manifest["entries"]}}


def test_every_store_is_covered(home: Path) -> None:
    """Whatever cannot be made anew: each store has something in a plain backup."""
    saved = create(home)["saved"]

    for store in ("config", "env", "auth", "history", "sessions", "kanban", "cron", "pairing",
                  "memories", "skills", "whatsapp", "weixin", "matrix"):  # fmt: skip
        assert selection.of_store(store, saved), store
    assert {"state.db", "state.db-wal", "profiles/coder/cron/jobs.json"} <= saved
    assert not [name for name in saved if "logs/" in name or "cache/" in name]


def test_exclude(home: Path) -> None:
    """A folder, a glob, a database with its log; what matters is said; it is not whole."""
    args = ("--exclude", "sessions", "--exclude", "*.md", "--exclude", "state.db")
    made = create(home, *args, "--exclude", "auth.json")

    assert not [n for n in made["saved"] if n.startswith(("sessions", "state.db"))]
    assert not [n for n in made["saved"] if n.endswith(".md") or n == "auth.json"]
    assert {"cron/jobs.json", "kanban.db"} <= made["saved"]
    assert not made["whole"]
    assert {"state.db", "state.db-wal", "sessions/a.jsonl"} <= set(made["excluded"])
    text = support.doctor("backup", "create", *args, "--exclude", ".env", "--home", home).out
    assert "Left out by --exclude: 7 files, among them state.db (a database), env (secrets)" in text


def test_a_log_goes_with_its_database(home: Path) -> None:
    """Nobody can leave out the log alone: what it holds would be lost."""
    assert "state.db-wal" in create(home, "--exclude", "*-wal")["saved"]


def test_include(home: Path) -> None:
    """What is left out anyway comes in when it is asked for; never the vault itself."""
    made = create(home, "--include", "logs", "--include", "backups", "--include", "profiles/*/logs")

    assert {"logs/gateway.log", "profiles/coder/logs/x.log"} <= made["saved"]
    assert "cache/x" not in made["saved"]
    assert made["whole"]
    assert not [name for name in made["saved"] if name.startswith("backups/doctor")]
    again = create(home, "--include", "*.log", "--exclude", "logs")
    assert "logs/gateway.log" in again["saved"], "what is asked for counts more"
    assert "logs" not in again["left_out"]


def test_chosen_backups_share_too(home: Path) -> None:
    """A schedule that leaves something out shares with the one before it."""
    first = create(home, "--exclude", "sessions")
    second = create(home, "--exclude", "sessions")

    assert second["shares"] == first["id"]


@pytest.mark.parametrize(
    ("name", "glob", "fits"),
    [
        ("sessions/a/b.jsonl", "sessions", True),
        ("sessions/a/b.jsonl", "sessions/", True),
        ("sessions/a/b.jsonl", "./sessions/**", True),
        ("sessions/a/b.jsonl", "*.jsonl", True),
        ("sessions/a/b.jsonl", "sessions/?/b.*", True),
        ("sessions2/a", "sessions", False),
        ("state.db-wal", "state.db", True),
        ("state.db-wal", "*-wal", False),
        ("state.database", "state.db", False),
        ("a[1].txt", "a[[]1].txt", True),
    ],
)
def test_globs(name: str, glob: str, fits: bool) -> None:
    """What fits what."""
    assert selection.matches(name, glob) is fits
    assert Choice(exclude=(glob,)).wants(name, anyway=True) is not fits
    assert Choice(include=(glob,)).wants(name, anyway=False) is fits


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("words", "back"),
    [
        (["cron"], {"cron/jobs.json"}),
        (["pairing"], {"pairing/telegram-approved.json", "platforms/pairing/qq-approved.json"}),
        (["auth", "whatsapp"], {"auth.json", "platforms/whatsapp/session/creds.json"}),
        (["history"], {"state.db", "state.db-wal"}),
        (["state.db"], {"state.db", "state.db-wal"}),
        (["profiles/coder"], {"profiles/coder/cron/jobs.json"}),
        (["*.jsonl"], {"sessions/a.jsonl"}),
        (["config.yaml"], {"config.yaml"}),
    ],
)
def test_restore_of_a_store(home: Path, words: list[str], back: set[str]) -> None:
    """A store, a folder or a glob: all of it comes back, and nothing else."""
    id = create(home)["id"]
    saved = support.contents(home)
    entries = Vault(Home(home)).load(id).entries
    for entry in entries:
        (home / entry.path).write_text("spoilt")
    worse = support.contents(home)

    done = support.doctor("backup", "restore", id, *words, "--yes", "--home", home)

    assert done.code == 0, done.err
    now = support.contents(home)
    names = {name for name in now if now[name] != worse[name]}
    assert names == back
    assert all(now[name] == saved[name] for name in back)
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == worse
