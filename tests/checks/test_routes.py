"""SESSION-ROUTE-STALE: chats that lead to conversations which have ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers import damage, store_files, support
from tests.helpers.one_check import ask

ENDED = (
    "INSERT INTO sessions (id, source, started_at, ended_at, end_reason) "
    "VALUES ('s9', 'telegram', 1, 2, 'cli_close')"
)


def chats(home: Path, *ids: str) -> None:
    """A chat for each conversation."""
    found = {
        f"agent:main:telegram:dm:{n}": store_files.session(f"k{n}", id) for n, id in enumerate(ids)
    }
    support.put(home / "sessions/sessions.json", json.dumps(found))


@pytest.mark.parametrize("version", ["0.13.0", "0.17.0", "0.19.0"])
def test_healthy(home: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """No chats, chats of conversations that go on, and of ones that state.db does not know."""
    store_files.installed(monkeypatch, version)
    assert ask("routes", home)[1] == []
    damage.execute(home / "state.db", ENDED)
    chats(home, "s1", "unknown", "it's odd")
    result, found = ask("routes", home)
    assert (result.status, found) == ("ok", [])


def test_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 0.17 the file is all that Hermes goes by."""
    store_files.installed(monkeypatch, "0.17.0")
    damage.execute(home / "state.db", ENDED)
    chats(home, "s1", "s9")

    [found] = ask("routes", home)[1]

    assert (found.code, found.severity, found.fix) == (
        "SESSION-ROUTE-STALE",
        "warning",
        "drop-routes",
    )
    assert found.data["keys"] == ["agent:main:telegram:dm:1"]


def test_compressed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ended only because it became too long goes on in another, and the chat with it."""
    store_files.installed(monkeypatch, "0.16.0")
    add = (
        "INSERT INTO sessions (id, source, parent_session_id, started_at, ended_at, end_reason) "
        "VALUES ('{}', 'telegram', {}, {}, {}, {})"
    )
    damage.execute(
        home / "state.db",
        add.format("c1", "NULL", 1, 5, "'compression'"),
        add.format("helper", "'c1'", 2, "NULL", "NULL"),
        add.format("c2", "'c1'", 5, 7, "'compression'"),
        add.format("c3", "'c2'", 7, "NULL", "NULL"),
    )
    chats(home, "c1")

    [found] = ask("routes", home)[1]

    assert found.data == {"keys": [], "moved": {"agent:main:telegram:dm:0": "c3"}}


def test_table(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 0.18 on Hermes mends it; rows that are no JSON are passed over."""
    store_files.installed(monkeypatch, "0.19.0")
    insert = "INSERT INTO gateway_routing (scope, session_key, entry_json, updated_at) VALUES "
    damage.execute(
        home / "state.db",
        ENDED,
        insert + "('', 'a', '{\"session_id\": \"s9\"}', 1)",
        insert + "('', 'b', '{\"session_id\": \"s1\"}', 1)",
        insert + "('', 'c', '{', 1)",
    )

    [found] = ask("routes", home)[1]

    assert (found.severity, found.fix) == ("info", None)
    assert found.title == "1 chat uses a conversation that has ended"
