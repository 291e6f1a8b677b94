"""Messages that Hermes kept in files: transcripts, and histories of agents."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.planning import database_repair
from tests.helpers import damage, fake_gateway, fix_cycle, support
from tests.helpers.fix_contract import Planted
from tests.helpers.retired_log_home import FOLDER

LINUX = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs /proc")
ALL = "SELECT * FROM messages ORDER BY id"
SAVED = "SELECT content FROM messages WHERE content LIKE 'saved %' ORDER BY id"
LAST = "SELECT role, content, tool_calls, tool_call_id, timestamp FROM messages ORDER BY id"
NOW = time.time()
CALL = [{"id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}]
TURN: list[dict[str, Any]] = [
    {"role": "user", "content": "what time is it?", "timestamp": NOW - 300, "message_id": "77"},
    {"role": "assistant", "content": None, "tool_calls": CALL, "timestamp": NOW - 299},
    {"role": "tool", "content": "05:00", "tool_call_id": "call_1", "timestamp": NOW - 298},
    {"role": "assistant", "content": "It is five.", "timestamp": NOW - 297},
]


@pytest.fixture
def path(home: Path) -> Path:
    """A sound history."""
    return fix_cycle.history(home / "state.db")


def divert(home: Path, session: str, *messages: dict[str, Any]) -> Path:
    """A transcript as Hermes writes it when it may not write to state.db."""
    (home / FOLDER).mkdir(exist_ok=True)
    os.utime(home / FOLDER, (NOW - 900,) * 2)
    lines = "".join(json.dumps(one) + "\n" for one in messages)
    return support.put(home / f"sessions/{session}.jsonl", lines)


def codes(home: Path) -> set[tuple[str, str]]:
    """The findings about unsaved messages, and the fix of each."""
    found = support.check(home).json["findings"]
    wanted = ("SESSION-UNSAVED", "DB-DELETED-WAL")
    return {
        (one["code"], (one["fix"] or {}).get("id", "")) for one in found if one["code"] in wanted
    }


class TestTranscripts:
    """sessions/ID.jsonl, and the history of an agent in pending_messages."""

    def test_a_turn_is_added(self, home: Path, path: Path) -> None:
        """At the end of its session, with its tool calls; what is there already is not repeated."""
        before = fix_cycle.rows(path, ALL)
        damage.execute(
            path,
            "INSERT INTO messages (session_id, role, content, timestamp) "
            f"VALUES ('s1', 'user', 'what time is it?', {NOW - 300})",
        )
        divert(home, "s1", *TURN)
        shutil.rmtree(home / FOLDER)
        support.put(home / f"{FOLDER}/manifest.json", "{}")
        os.utime(home / FOLDER, (NOW - 90 * 86400,) * 2)
        [(count,)] = fix_cycle.rows(path, "SELECT message_count FROM sessions WHERE id = 's1'")

        cured = fix_cycle.cure(home, "SESSION-UNSAVED", "add-unsaved-turns", "sessions")

        assert fix_cycle.rows(path, ALL)[: len(before)] == before
        added = fix_cycle.rows(path, LAST)[-3:]
        assert added[0][:2] == ("assistant", None) and json.loads(added[0][2]) == CALL
        assert added[1][:2] == ("tool", "05:00") and added[1][3] == "call_1"
        assert added[2] == ("assistant", "It is five.", None, None, NOW - 297)
        [(more,)] = fix_cycle.rows(path, "SELECT message_count FROM sessions WHERE id = 's1'")
        assert more == count + 3
        assert fix_cycle.found_by_search(path, '"It is five"') == 1
        assert "3 messages of 1 session were added." in " ".join(cured.notes)
        assert damage.sound(path)
        cured.undo()

    def test_all_are_in_the_database(self, home: Path, path: Path) -> None:
        """Hermes has added them itself, a little later."""
        divert(home, "s1", TURN[0])
        damage.execute(
            path,
            "INSERT INTO messages (session_id, role, content, timestamp) "
            f"VALUES ('s1', 'user', 'what time is it?', {NOW - 100})",
        )
        assert ("SESSION-UNSAVED", "add-unsaved-turns") not in codes(home)
        assert ("SESSION-UNSAVED", "") not in codes(home)

    def test_the_same_words_of_last_week_do_not_count(self, home: Path, path: Path) -> None:
        """Only a row of the same time is the same message."""
        damage.execute(
            path,
            "INSERT INTO messages (session_id, role, content, timestamp) "
            f"VALUES ('s1', 'user', 'what time is it?', {NOW - 7 * 86400})",
        )
        divert(home, "s1", TURN[0])
        assert ("SESSION-UNSAVED", "add-unsaved-turns") in codes(home)

    @pytest.mark.parametrize("why", ["continued", "no session", "pending", "lone result"])
    def test_cannot_be_added(self, home: Path, path: Path, why: str) -> None:
        """It is reported without a repair."""
        name, turn = "s1", list(TURN)
        if why == "continued":
            damage.execute(
                path,
                "INSERT INTO messages (session_id, role, content, timestamp) "
                f"VALUES ('s1', 'user', 'and now?', {NOW})",
            )
        elif why == "no session":
            name = "s-unknown"
        elif why == "pending":
            data = {"session_id": "s1", "message": TURN[0]}
            said = {"session_key": "s1", "reason": "transcript_cap_drop", "ts": 1, "data": data}
            support.put(home / "pending_messages/pending-1.json", json.dumps(said))
        else:
            turn = turn[2:3]
        divert(home, name, *turn)
        found = codes(home)
        assert ("SESSION-UNSAVED", "") in found
        assert ("SESSION-UNSAVED", "add-unsaved-turns") not in found

    def test_the_history_of_an_agent(self, home: Path, path: Path) -> None:
        """Only if it starts with exactly what the database has."""
        stored = fix_cycle.rows(
            path, "SELECT role, content FROM messages WHERE session_id = 's1' ORDER BY id"
        )
        known = [{"role": role, "content": content} for role, content in stored]
        said = {
            "reason": "shutdown-with-unpersisted-agent-history",
            "session_id": "s1",
            "messages": [{"role": "system", "content": "x"}, *known, TURN[0]],
        }
        file = support.put(home / "pending_messages/pending-1.json", json.dumps(said))
        assert codes(home) == {("SESSION-UNSAVED", "add-unsaved-turns")}
        said["messages"] = [{"role": "user", "content": "a summary"}, *known[5:], TURN[0]]
        file.write_text(json.dumps(said))
        assert codes(home) == {("SESSION-UNSAVED", "")}

    def test_an_unknown_release(self, home: Path, path: Path) -> None:
        """The triggers of the database itself fill its search index."""
        unknown_release(home, path)
        divert(home, "s1", TURN[0] | {"content": "quokka"})

        cured = fix_cycle.cure(home, "SESSION-UNSAVED", "add-unsaved-turns", "sessions")

        assert fix_cycle.rows(path, LAST)[-1][:2] == ("user", "quokka")
        assert fix_cycle.found_by_search(path, "quokka") == 1
        assert "1 message of 1 session was added." in " ".join(cured.notes)
        assert damage.sound(path)

    @pytest.mark.sampled
    @pytest.mark.parametrize(
        "does",
        [
            "UPDATE gateway_routing SET session_key = 'x'",
            "DELETE FROM schema_version",
            "INSERT INTO messages_fts (rowid, content) VALUES (1, load_extension('x'))",
        ],
    )
    def test_a_trigger_of_an_unknown_release_that_does_more(
        self, home: Path, path: Path, does: str
    ) -> None:
        """The schema is from the file, so its triggers may only fill the search index."""
        damage.execute(path, "CREATE TABLE IF NOT EXISTS gateway_routing (session_key TEXT)")
        damage.execute(path, f"CREATE TRIGGER more AFTER INSERT ON messages BEGIN {does}; END")
        unknown_release(home, path)
        divert(home, "s1", TURN[0])
        assert "SQLite refuses it" in fix_cycle.refused(home, "SESSION-UNSAVED")

    @pytest.mark.sampled
    @pytest.mark.parametrize("kind", ["calls", "times", "ids"])
    def test_the_same_words_again(self, home: Path, path: Path, kind: str) -> None:
        """A turn like the one before it: its calls, times or ids tell them apart."""
        add(path, *turn(1, NOW - 600))
        if kind == "times":
            later = without("message_id", turn(1, NOW - 300))
        elif kind == "calls":
            later = without("timestamp", turn(2, NOW - 300)[1:3])
        else:
            later = without("timestamp", turn(2, NOW - 300)[:1])
        before = len(fix_cycle.rows(path, ALL))
        divert(home, "s1", *later)

        fix_cycle.cure(home, "SESSION-UNSAVED", "add-unsaved-turns", "sessions")

        added = fix_cycle.rows(path, LAST)[before:]
        assert [row[:2] for row in added] == [(one["role"], one["content"]) for one in later]

    @pytest.mark.sampled
    @pytest.mark.parametrize("timed", [True, False])
    def test_twice_is_once(self, home: Path, path: Path, timed: bool) -> None:
        """Messages without times are found where they follow each other, the last place first."""
        add(path, *turn(1, NOW - 9000))
        first, second = turn(2, NOW - 500), turn(3, NOW - 400)
        add(path, *first)
        both = [*first, *second]
        divert(home, "s1", *(both if timed else without("timestamp", both)))

        cured = fix_cycle.cure(home, "SESSION-UNSAVED", "add-unsaved-turns", "sessions")

        assert "4 messages of 1 session were added." in " ".join(cured.notes)

    def test_some_cannot_be_added(self, home: Path, path: Path) -> None:
        """The others are added all the same, and those stay reported."""
        add(path, {"role": "user", "content": "and now?", "timestamp": NOW}, session="s2")
        divert(home, "s1", *TURN)
        divert(home, "s2", *TURN)
        support.put(home / "sessions/s3.jsonl", '{"role": "user", "cont')
        before = len(fix_cycle.rows(path, ALL))

        done = fix_cycle.apply(home, "SESSION-UNSAVED")

        [run] = done.json["repair"]["runs"]
        assert [one["outcome"] for one in run["items"]] == ["verified"], run
        assert len(fix_cycle.rows(path, ALL)) == before + 4
        found = [one for one in support.check(home).json["findings"] if one["subject"] != FOLDER]
        [left] = [one for one in found if one["code"] == "SESSION-UNSAVED"]
        assert (left["subject"], left["fix"]) == ("state.db", None)
        assert [one["where"] for one in left["evidence"]] == ["sessions/s2.jsonl"]

    @pytest.mark.sampled
    @pytest.mark.parametrize("grows", [True, False])
    def test_two_histories_of_one_session(self, home: Path, path: Path, grows: bool) -> None:
        """The second is compared with what the first adds."""
        sql = "SELECT role, content FROM messages WHERE session_id = 's1' ORDER BY id"
        known = [{"role": role, "content": text} for role, text in fix_cycle.rows(path, sql)]
        ones = [{"role": "user", "content": f"unsaved {n}"} for n in (1, 2)]
        for number, more in enumerate([ones[:1], ones if grows else ones[1:]]):
            said = {
                "reason": "shutdown-with-unpersisted-agent-history",
                "session_id": "s1",
                "messages": [*known, *more],
            }
            file = support.put(home / f"pending_messages/p{number}.json", json.dumps(said))
            os.utime(file, (NOW - 900 + number,) * 2)

        done = fix_cycle.apply(home, "SESSION-UNSAVED")

        [run] = done.json["repair"]["runs"]
        assert [one["outcome"] for one in run["items"]] == ["verified"], run
        added = fix_cycle.rows(path, f"{sql.replace('ORDER', 'AND id > 300 ORDER')}")
        assert added == [("user", "unsaved 1"), ("user", "unsaved 2")][: 2 if grows else 1]


def turn(number: int, at: float) -> list[dict[str, Any]]:
    """A turn with a tool call; only the time and the id of the call differ."""
    call = [{**CALL[0], "id": f"call_{number}"}]
    return [
        {"role": "user", "content": "do it", "timestamp": at, "message_id": str(number)},
        {"role": "assistant", "content": "", "tool_calls": call, "timestamp": at + 1},
        {"role": "tool", "content": "ok", "tool_call_id": f"call_{number}", "timestamp": at + 2},
        {"role": "assistant", "content": "done", "timestamp": at + 3},
    ]


def without(name: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages without one field."""
    return [{key: one[key] for key in one if key != name} for one in messages]


def unknown_release(home: Path, path: Path) -> None:
    """Make it the database of a release that is newer than all known ones."""
    damage.execute(path, "UPDATE schema_version SET version = 999")
    with contextlib.closing(Probes(Home(home))) as probes:
        assert database_repair.known_blueprint(probes, path) is None


def add(path: Path, *messages: dict[str, Any], session: str = "s1") -> None:
    """Save messages as Hermes does."""
    columns = "session_id, role, content, timestamp, tool_calls, tool_call_id, platform_message_id"
    with damage.opened(path) as db:
        for one in messages:
            calls = json.dumps(one["tool_calls"]) if one.get("tool_calls") else None
            rest = one["timestamp"], calls, one.get("tool_call_id"), one.get("message_id")
            db.execute(
                f"INSERT INTO messages ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (session, one["role"], one["content"], *rest),
            )
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    damage.settle(path)


def test_a_running_gateway_is_stopped_or_the_fix_refused(home: Path, path: Path) -> None:
    """It never writes beside a running gateway."""
    divert(home, "s1", *TURN)
    before = fix_cycle.rows(path, ALL)
    with fake_gateway.gateway(home, open=1) as pid:
        done = fix_cycle.apply(home, "SESSION-UNSAVED")
        assert pid and done.code != 0
        assert fix_cycle.rows(path, ALL) == before


def planted(home: Path) -> None:
    """A turn that Hermes wrote only into a transcript."""
    fix_cycle.history(home / "state.db")
    divert(home, "s1", *TURN)


PLANTED = Planted("SESSION-UNSAVED", planted)
