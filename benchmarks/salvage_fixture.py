"""Write databases like those of a busy gateway with a real release's own code.

Run by the Python of that release: `python salvage_fixture.py FOLDER MESSAGES`. Leaves
`state.db`, `live.db` with the write-ahead log of a gateway that was killed, `stale.journal` (the
rollback journal of an earlier version of `state.db`), `kanban.db` and `response_store.db`.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

SYLLABLES = [a + b for a in "bcdfghjklmnprstvw" for b in "aeiou"]
WIDE = "数据库损坏修复工具网关会话消息任务看板日本語のテキスト한국어"
MARKS = "😀🚀🔧✅❌🩺📦"
SOURCES = ("telegram", "discord", "cli", "slack", "cron", "api_server", "whatsapp")
MODELS = ("anthropic/claude-opus-4", "openai/gpt-5", "nous/hermes-4-405b", "google/gemini-3")
START = 1_760_000_000.0


class Talk:
    """Generate texts like those of people and tools; the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.words = [
            "".join(self.chance.choices(SYLLABLES, k=self.chance.randint(1, 4)))
            for _ in range(6000)
        ]
        self.weights = [1 / (rank + 3) for rank in range(len(self.words))]

    def plain(self, length: int) -> str:
        """Return words with a natural frequency distribution."""
        words = self.chance.choices(self.words, self.weights, k=max(1, length // 5 + 1))
        return " ".join(words)[:length]

    def human(self, least: int, most: int) -> str:
        """Return a message, sometimes with other scripts and marks in it."""
        text = self.plain(self.chance.randint(least, most))
        kind = self.chance.random()
        if kind < 0.15:
            return f"{text} {''.join(self.chance.choices(WIDE, k=self.chance.randint(5, 60)))}"
        return f"{text} {self.chance.choice(MARKS)} Привет мир ñandú" if kind < 0.25 else text

    def output(self) -> str:
        """Return the output of a tool: a listing, JSON, or up to 25 KB of lines."""
        kind = self.chance.random()
        if kind < 0.4:
            return json.dumps({"output": self.plain(self.chance.randint(100, 1200)), "code": 0})
        lines = self.chance.randint(3, 12) if kind < 0.9 else self.chance.randint(60, 450)
        return "\n".join(f"{n:5d}\t{self.plain(self.chance.randint(10, 70))}" for n in range(lines))

    def name(self, length: int = 8) -> str:
        """Return a random hexadecimal name."""
        return f"{self.chance.getrandbits(length * 4):0{length}x}"


class Gateway:
    """Write sessions and turns as a gateway does."""

    def __init__(self, database: Any, talk: Talk, sessions: int) -> None:
        self.database = database
        self.talk = talk
        self.sessions = sessions
        self.made = 0
        self.open: list[str] = []
        self.now = START

    def begin(self) -> None:
        """Start a session with its peer, and often a title and a route."""
        talk, number = self.talk, self.made
        stamp = time.strftime("%Y%m%d_%H%M%S", time.gmtime(START + number * 900))
        session, source = f"{stamp}_{talk.name()}", talk.chance.choice(SOURCES)
        self.database.create_session(
            session,
            source,
            model=talk.chance.choice(MODELS),
            model_config={"max_iterations": 90, "reasoning": "high"},
            system_prompt="You are Hermes. " + talk.plain(talk.chance.randint(2500, 6000)),
            user_id=str(talk.chance.randint(10**8, 10**9)),
        )
        key = f"agent:main:{source}:dm:{talk.chance.randint(10**8, 10**9)}"
        if hasattr(self.database, "record_gateway_session_peer"):
            self.database.record_gateway_session_peer(
                session,
                source=source,
                user_id=f"u{number % 50}",
                session_key=key,
                chat_id=str(number % 80),
                chat_type="dm",
                display_name="User " + talk.plain(8),
                origin_json=json.dumps({"platform": source, "chat_id": number % 80}),
            )
        if number % 4 == 0 and hasattr(self.database, "save_gateway_routing_entry"):
            self.database.save_gateway_routing_entry(key, json.dumps({"session_id": session}))
        if talk.chance.random() < 0.6:
            self.database.set_session_title(session, f"{talk.plain(30)} {number}")
        self.made += 1
        self.open.append(session)

    def turn(self) -> int:
        """Write a question, some tool calls and an answer; return the number of messages."""
        talk, say = self.talk, self.database.append_message
        session = talk.chance.choice(self.open)
        self.now += talk.chance.random() * 30
        say(session, "user", talk.human(20, 300))
        count = 2
        for _ in range(talk.chance.randint(0, 3)):
            call = "call_" + talk.name(20)
            function = {"name": "terminal", "arguments": json.dumps({"command": talk.plain(40)})}
            say(
                session,
                "assistant",
                talk.human(0, 120) if talk.chance.random() < 0.5 else "",
                tool_calls=[{"id": call, "type": "function", "function": function}],
                finish_reason="tool_calls",
                reasoning=talk.plain(200) if talk.chance.random() < 0.4 else None,
            )
            say(session, "tool", talk.output(), tool_name="terminal", tool_call_id=call)
            count += 2
        answer: Any = talk.human(50, 900)
        if talk.chance.random() < 0.02:
            image = {"url": "data:image/png;base64," + talk.name(32) * 20}
            answer = [
                {"type": "text", "text": answer},
                {"type": "image_url", "image_url": image},
            ]
        say(session, "assistant", answer, finish_reason="stop", token_count=len(answer))
        self.database.update_token_counts(
            session, input_tokens=900, output_tokens=90, model=talk.chance.choice(MODELS)
        )
        return count

    def talk_on(self, messages: int, each: int) -> None:
        """Write turns until there are this many messages, about `each` per session."""
        done = 0
        while done < messages:
            while len(self.open) < 8 and self.made < self.sessions:
                self.begin()
            done += self.turn()
            if self.talk.chance.random() < 5 / each and self.made < self.sessions:
                gone = self.open.pop(self.talk.chance.randrange(len(self.open)))
                self.database.end_session(gone, "session_reset")


def state(folder: Path, messages: int) -> None:
    """Write `state.db` with deleted rows, its live twin, and an earlier rollback journal."""
    from hermes_state import SessionDB  # type: ignore[import-not-found]

    sessions = max(20, messages // 30)
    database = SessionDB(folder / "state.db")
    database._conn.execute("PRAGMA synchronous=OFF")
    gateway = Gateway(database, Talk(1234), sessions)
    gateway.talk_on(messages * 19 // 20, messages // sessions)
    earlier = folder / "earlier.db"
    with sqlite3.connect(earlier) as copy:
        database._conn.backup(copy)
    copy.close()
    gateway.talk_on(messages // 20, messages // sessions)
    while gateway.made < sessions:
        gateway.begin()
    oldest = database._conn.execute("SELECT id FROM sessions ORDER BY started_at LIMIT 20")
    for (session,) in oldest.fetchall()[::2]:
        database.delete_session(session)
    database.set_meta("last_auto_prune", "1760000000")
    database.close()
    _journal(earlier, folder / "stale.journal")
    _live(folder, gateway, messages // 75)


def _journal(earlier: Path, target: Path) -> None:
    """Save the rollback journal of a killed writer on an earlier version of the file."""
    writer = sqlite3.connect(earlier, isolation_level=None)
    writer.execute("PRAGMA journal_mode=DELETE")
    writer.execute("PRAGMA cache_size=10")
    for row in writer.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
        writer.execute(f"DROP TRIGGER {row[0]}")
    writer.execute("BEGIN")
    writer.execute("UPDATE messages SET finish_reason = 'killed' WHERE id % 97 = 0")
    shutil.copyfile(f"{earlier}-journal", target)
    writer.execute("ROLLBACK")
    writer.close()
    earlier.unlink()


def _live(folder: Path, gateway: Gateway, messages: int) -> None:
    """Save the same database with a write-ahead log of commits that were never checkpointed."""
    from hermes_state import SessionDB

    working = folder / "working.db"
    shutil.copyfile(folder / "state.db", working)
    reader = sqlite3.connect(working, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM sessions").fetchone()
    gateway.database = SessionDB(working)
    gateway.sessions += max(2, messages // 50)
    gateway.open = [
        row[0]
        for row in reader.execute("SELECT id FROM sessions ORDER BY started_at DESC LIMIT 20")
    ]
    while gateway.made < gateway.sessions:
        gateway.begin()
    gateway.talk_on(messages, 30)
    shutil.copyfile(working, folder / "live.db")
    shutil.copyfile(f"{working}-wal", folder / "live.db-wal")
    gateway.database.close()
    reader.close()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{working}{suffix}").unlink(missing_ok=True)


def kanban(folder: Path, tasks: int) -> None:
    """Write a board with comments, links, runs and events."""
    from hermes_cli import kanban_db  # type: ignore[import-not-found]

    talk = Talk(99)
    board = kanban_db.connect(folder / "kanban.db")
    board.execute("PRAGMA synchronous=OFF")
    known: list[str] = []
    for number in range(tasks):
        parents = [talk.chance.choice(known)] if known and talk.chance.random() < 0.3 else []
        task = kanban_db.create_task(
            board,
            title=f"Task {number} {talk.plain(40)}",
            body=talk.human(100, 3000),
            assignee=talk.chance.choice(["coder", "writer", None]),
            created_by="user",
            priority=talk.chance.randint(0, 3),
            parents=parents,
            tenant=f"t{number % 4}",
        )
        known.append(task)
        for _ in range(talk.chance.randint(0, 4)):
            kanban_db.add_comment(board, task, "user", talk.human(30, 900))
    for task in known[: tasks // 2]:
        if kanban_db.claim_task(board, task):
            kanban_db.complete_task(board, task, result=talk.plain(400))
    board.close()


def responses(folder: Path, count: int) -> None:
    """Write the store of the Responses API."""
    from gateway.platforms.api_server import (  # type: ignore[import-not-found]
        ResponseStore,
    )

    talk = Talk(77)
    store = ResponseStore(db_path=str(folder / "response_store.db"))
    for number in range(count):
        name = "resp_" + talk.name(32)
        history = [
            {"role": talk.chance.choice(["user", "assistant"]), "content": talk.human(50, 3000)}
            for _ in range(talk.chance.randint(2, 30))
        ]
        store.put(name, {"response": {"id": name}, "conversation_history": history})
        if number % 3 == 0:
            store.set_conversation(f"conversation {number}", name)
    store.close()


def main() -> None:
    """Write all databases."""
    folder, messages = Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["HERMES_HOME"] = str(folder / "home")
    (folder / "home").mkdir(exist_ok=True)
    state(folder, messages)
    kanban(folder, max(40, min(400, messages // 15)))
    responses(folder, 100 if messages > 5000 else 40)


if __name__ == "__main__":
    main()
