"""Messages that are lost in the database and stand in transcripts which a real gateway wrote."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import need_release
from tests.helpers import damage, support
from tests.helpers.real.release_homes import Patient, undo
from tools import real_home

pytestmark = pytest.mark.real

TALKS = """
import os
from datetime import datetime
from pathlib import Path
home = Path(os.environ["HERMES_HOME"])
from gateway.config import GatewayConfig
from gateway.session import SessionStore
from run_agent import AIAgent
(home / "sessions").mkdir(exist_ok=True)
store = SessionStore(home / "sessions", GatewayConfig())
for talk in range(8):
    session = f"2026010{talk}_120000_abcd"
    store._db.create_session(session, "telegram", model="m")
    agent = object.__new__(AIAgent)
    agent._session_db, agent._session_db_created = store._db, True
    agent._last_flushed_db_idx, agent.session_id = 0, session
    history = []
    for turn in range(12):
        new = [{"role": "user", "content": f"question {talk} {turn} " * (1 + turn % 5)}]
        if turn % 4 == 1:
            new[0]["content"] = [
                {"type": "text", "text": f"look {talk} {turn}"},
                {"type": "image_url", "image_url": {"url": "data:x"}},
            ]
        if turn % 3 == 0:
            call = {"name": "terminal", "arguments": '{"command": "ls \\u00e4"}'}
            new.append({"role": "assistant", "content": None, "finish_reason": "tool_calls",
                        "tool_calls": [{"id": f"c{turn}", "type": "function", "function": call}],
                        "reasoning": "I look."})
            new.append({"role": "tool", "content": "a b c", "tool_call_id": f"c{turn}",
                        "tool_name": "terminal"})
        new.append({"role": "assistant", "content": "ok", "finish_reason": "stop",
                    "reasoning_details": [{"a": 1}]})
        agent._flush_messages_to_session_db(history + new, history)
        now = datetime.now().isoformat()
        if not history:
            about = {"role": "session_meta", "tools": [], "model": "m", "platform": "telegram"}
            store.append_to_transcript(session, {**about, "timestamp": now})
        for message in new:
            store.append_to_transcript(session, {**message, "timestamp": now}, skip_db=True)
        history += new
store._db.close()
"""
"""Eight talks as a gateway of 0.13 or 0.14 keeps them: the agent's part, then the gateway's."""

EVERY = "SELECT * FROM messages ORDER BY id"


def messages(path: Path) -> list[tuple[Any, ...]]:
    """Every message with every column."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as db:
        return db.execute(EVERY).fetchall()


@pytest.fixture(params=["0.13.0", "0.14.0"])
def patient(request: pytest.FixtureRequest, tmp_path: Path) -> Patient:
    """A home with talks in the database and in transcripts; later releases write none."""
    version: str = request.param
    need_release(version)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    real_home.run(version, home, TALKS)
    damage.settle(home / "state.db")
    return Patient(version, home)


@pytest.mark.parametrize("leaves", [slice(0, 1), slice(1, 4), slice(0, None), slice(-1, None)])
def test_lost_messages(patient: Patient, leaves: slice) -> None:
    """Pages of messages and every other copy of their text are gone: each is back, as it was."""
    path = patient.home / "state.db"
    whole = messages(path)
    copies = ("messages_fts_content", "messages_fts_trigram_content")
    pages = [page for table in copies for page in damage.owned(path, table)]
    damage.zero(path, *pages, *damage.leaves(path, "messages")[leaves])
    sick = support.contents(patient.home)

    done = patient.doctor("fix", "DB-MALFORMED", "--apply", "--yes", "--json")

    assert done.code == 0, done.out + done.err
    [item] = done.json["repair"]["runs"][-1]["items"]
    assert messages(path) == whole
    [told] = [note for note in item["notes"] if note.startswith("messages:")]
    assert "restored from the transcripts" in told
    assert "lost" not in told
    undo(patient, sick)


def test_what_only_one_of_the_two_has(patient: Patient) -> None:
    """A message that never came into the transcript, and one that was deleted, stay so."""
    path = patient.home / "state.db"
    damage.execute(
        path,
        "DELETE FROM messages WHERE content LIKE 'question 2 4%'",
        "INSERT INTO messages (session_id, role, content, timestamp) "
        "SELECT session_id, role, 'never written down', timestamp + 0.000001 FROM messages "
        "WHERE content LIKE 'question 3 4%'",
    )
    whole = messages(path)
    copies = ("messages_fts_content", "messages_fts_trigram_content")
    pages = [page for table in copies for page in damage.owned(path, table)]
    damage.zero(path, *pages, *damage.leaves(path, "messages")[1:3])

    done = patient.doctor("fix", "DB-MALFORMED", "--apply", "--yes", "--json")

    assert done.code == 0, done.out + done.err
    found = messages(path)
    assert set(found) <= set(whole), "none is made up, doubled or brought back"
    assert len(found) >= 0.7 * len(whole)
