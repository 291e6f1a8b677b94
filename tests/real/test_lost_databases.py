"""A real gateway whose database was deleted, renamed or destroyed gets it back, or a new one."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from tests.helpers import support
from tests.helpers.real import chat_partner, qq
from tests.helpers.real.controlled_gateways import VERSION, Ward, ward
from tests.helpers.real.gateways import until
from tests.helpers.real.release_homes import MakeHome

pytestmark = [pytest.mark.real, pytest.mark.wide]


HTML = b"<!DOCTYPE html><html>404 Not Found</html>\n" * 300


class Talk:
    """A friend who asks the bot things and counts its answers."""

    def __init__(self, platform: qq.Qq, home: Path) -> None:
        self.chat = chat_partner.Chat(platform)
        self.home = home
        self.asked: list[str] = []

    def ask(self, text: str) -> None:
        """Send a message, and wait until the bot has answered it and has noted that."""
        before = self._answers()
        self.chat.say(text)
        self.asked.append(text)
        until(lambda: self._answers() > before, f"the answer to {text}", chat_partner.PATIENCE)
        until(self._deliveries_are_noted, "the note in state.db that the answer was delivered")

    def _deliveries_are_noted(self) -> bool:
        """Whether Hermes has noted that its answers were delivered.

        It opens state.db again for each note, so a note after a loss makes a new database.
        """
        try:
            states = rows(self.home / "state.db", "SELECT state FROM delivery_obligations")
        except sqlite3.OperationalError:
            return False  # a new database, in which Hermes creates the table first
        return bool(states) and set(states) == {"delivered"}

    def _answers(self) -> int:
        return sum("Yes." in text for text in self.chat.heard())


@contextmanager
def bot(home: Path) -> Iterator[tuple[Ward, Talk]]:
    """A gateway that answers a friend on QQ."""
    with qq.platform(home.parent) as platform:
        platform.tell("model answer")
        chat_partner.set_up(home, platform)
        with ward(home, qq.through(platform)) as one:
            until(lambda: platform.sessions() > 0, "the session")
            yield one, Talk(platform, home)


def rows(path: Path, sql: str) -> list[str]:
    """The first column of a query."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return [row[0] for row in db.execute(sql)]


def lose(home: Path, name: str) -> None:
    """Delete a database with its logs."""
    for suffix in ("", "-wal", "-shm"):
        (home / f"{name}{suffix}").unlink(missing_ok=True)


def is_back(one: Ward, talk: Talk, code: str) -> None:
    """Repair a lost history; every message is there, and the bot goes on with it."""
    pid = one.pid
    [finding] = [f for f in one.check().json["findings"] if f["code"] == code]
    assert finding["fix"]["id"] == "restart-after-saving"
    assert "PID" not in str(finding)

    done = one.fix(code)

    assert done.code == 0, done.out + done.err
    [run] = done.json["repair"]["runs"]
    assert run["gateway"] == "started" and one.pid != pid
    for saved in run["saved"]:
        vault = Vault(Home(one.home))
        assert vault.verify(vault.load(saved)) == []
    path = one.home / "state.db"
    asked = "SELECT content FROM messages WHERE role = 'user' AND content LIKE 'question %'"
    assert rows(path, f"{asked} ORDER BY id") == talk.asked
    assert rows(path, "PRAGMA integrity_check") == ["ok"]
    assert len(rows(path, "SELECT id FROM messages WHERE content LIKE 'message number%'")) == 40
    talk.ask(f"question {len(talk.asked)}")
    until(lambda: rows(path, f"{asked} ORDER BY id") == talk.asked, "the message in state.db")
    left = {f["code"] for f in one.check("--only", "databases").json["findings"]}
    assert not left & {"DB-GONE", "DB-REPLACED", "DB-SAVED-ROWS", "DB-SCHEMA"}
    assert one.fix(code).json["repair"]["runs"] == []
    assert not list(one.home.glob("*.lost-*"))


def test_a_history_that_was_deleted_or_renamed(hermes_home: MakeHome) -> None:
    """Every message comes back: those before and after the loss, and those of a new state.db."""
    with bot(hermes_home(VERSION)) as (one, talk):
        path = one.home / "state.db"
        talk.ask("question 0")
        mode = path.stat().st_mode
        lose(one.home, "state.db")
        is_back(one, talk, "DB-GONE")
        assert path.stat().st_mode == mode
        path.rename(one.home / "state (copy).db")
        is_back(one, talk, "DB-GONE")
        lose(one.home, "state.db")
        talk.ask(f"question {len(talk.asked)}")  # Hermes notes the answer in a new state.db
        noted = rows(path, "SELECT obligation_id FROM delivery_obligations")
        is_back(one, talk, "DB-REPLACED")
        lose(one.home, "state.db")
        support.put(path, HTML)  # the gateway still has the real one open
        is_back(one, talk, "DB-REPLACED")
        assert set(noted) <= {*rows(path, "SELECT obligation_id FROM delivery_obligations")}


def test_a_history_of_which_nothing_is_left(hermes_home: MakeHome) -> None:
    """A new state.db: the bot remembers again, and the plan and the result say what is lost."""
    home = hermes_home(VERSION)
    path = home / "state.db"
    lose(home, "state.db")
    support.put(path, HTML)
    with bot(home) as (one, talk):
        assert one.doctor("fix", "--apply", "--yes").code == 1, "no code was named"
        assert path.read_bytes() == HTML
        plan = one.doctor("fix", "DB-NOTADB").out
        assert "All messages and sessions are lost" in " ".join(plan.split())

        done = one.fix("DB-NOTADB")

        assert done.code == 0, done.out + done.err
        [run] = done.json["repair"]["runs"]
        [item] = run["items"]
        assert item["fix"] == "start-empty" and run["gateway"] == "started"
        assert any("kept in the backup" in note for note in item["notes"])
        talk.ask("question 0")
        question = "SELECT content FROM messages WHERE role = 'user'"
        until(lambda: rows(path, question) == ["question 0"], "the message in state.db")
        found = one.check("--only", "databases").json["findings"]
        assert [f["code"] for f in found if f["severity"] != "info"] == []
        assert one.fix("DB-NOTADB").json["repair"]["runs"] == []
        undone = one.doctor("undo", "--yes")
        assert undone.code == 0, undone.out + undone.err
        assert re.search(r"\d messages? from after .* will be removed from state\.db", undone.out)
        assert path.read_bytes() == HTML
        assert os.stat(path).st_mode & 0o777 == 0o600
        sound = support.history(home.parent / "sound.db").read_bytes()
        path.write_bytes(sound)  # by hand: the gateway opens it only when it starts
        repaired = one.doctor("fix", "SESSION-UNSAVED", "--apply", "--yes")
        assert repaired.code == 0, repaired.out
        assert "SESSION-UNSAVED: repaired and checked" in repaired.out
        talk.ask("question 1")
        until(lambda: "question 1" in rows(path, question), "the message in state.db")
