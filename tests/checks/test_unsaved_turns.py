"""Messages that Hermes kept in files because it could not save them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from hermes_doctor.core.model import CouldNotLook, Status
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.probes.stores_view import StoresView
from hermes_doctor.sqlite.saved_rows import MissingMessages, RetiredRows, SavedMessages
from tests.helpers import fake_gateway, recorded_homes, support
from tests.helpers.one_check import ask

ID = "unsaved-turns"
MESSAGE = {"role": "user", "content": "hello?", "timestamp": time.time() - 60}
HISTORY = "shutdown-with-unpersisted-agent-history"


def pending(home: Path, reason: str = "shutdown") -> Path:
    """A file as Hermes writes it when it stops."""
    said = {"session_key": "agent:main:telegram:dm:1", "reason": reason, "ts": 1, "data": {}}
    return support.put(home / "pending_messages/pending-0a1b.json", json.dumps(said))


def test_healthy(home: Path) -> None:
    """An empty folder is normal, and so are transcripts of releases before 0.15."""
    (home / "pending_messages").mkdir()
    support.put(home / "sessions/20250101_000000_aaaa.jsonl", "{}\n")

    assert ask(ID, home)[0].status is Status.SKIPPED


def history(home: Path, size: int = 1) -> Path:
    """What an agent had in memory when Hermes stopped and could not save it."""
    messages = [{"role": "user", "content": "x" * size}]
    said = {"reason": HISTORY, "session_id": "s-gone", "count": 1, "messages": messages}
    return support.put(home / "pending_messages/pending-0a1b.json", json.dumps(said))


@pytest.mark.parametrize(
    ("kind", "subject"),
    [("shutdown", "pending_messages"), (HISTORY, "state.db"), ("large", "state.db")],
)
def test_pending(home: Path, kind: str, subject: str) -> None:
    """Some kinds are added by the next start, others are not, whatever their size."""
    if kind == "shutdown":
        pending(home)
    else:
        history(home, 1_200_000 if kind == "large" else 1)

    _, [found] = ask(ID, home)

    assert (found.code, found.severity, found.subject) == ("SESSION-UNSAVED", "warning", subject)


def test_just_written(home: Path) -> None:
    """A running gateway gets a few minutes to add them."""
    path = pending(home)
    with fake_gateway.gateway(home):
        assert ask(ID, home)[1] == []
        os.utime(path, (time.time() - 900,) * 2)
        assert [one.code for one in ask(ID, home)[1]] == ["SESSION-UNSAVED"]


def test_retired_log(home: Path) -> None:
    """The log that was set aside, and the transcripts since then; older ones do not count."""
    old = support.put(home / "sessions/20250101_000000_aaaa.jsonl", "{}\n")
    os.utime(old, (1_700_000_000,) * 2)
    name = "state.db.retired-wal-20261115T070812Z-4242"
    support.put(home / name / "manifest.json", "{}")
    support.put(home / "sessions/20261115_001248_df79.jsonl", '{"role": "user"}\n')

    retired, diverted = ask(ID, home)[1]

    assert (diverted.code, len(diverted.evidence)) == ("SESSION-UNSAVED", 1)
    assert (retired.code, retired.severity) == ("DB-DELETED-WAL", "warning")
    assert name in retired.next
    os.utime(home / name, (1_700_000_000,) * 2)
    assert [one.severity for one in ask(ID, home)[1] if one.code == "DB-DELETED-WAL"] == ["info"]


@pytest.mark.parametrize("status", ["ok", "unavailable", "retrying", 3])
def test_store_status(home: Path, status: object) -> None:
    """The gateway itself says whether it can use its history."""
    with fake_gateway.gateway(home) as pid:
        path = home / "gateway_state.json"
        said = json.loads(path.read_text()) | {"session_store": {"status": status}}
        path.write_text(json.dumps(said))

        findings = ask(ID, home)[1]

    bad = status in ("unavailable", "retrying")
    assert [(one.code, one.severity) for one in findings] == (
        [("SESSION-UNSAVED", "error")] if bad else []
    )
    assert pid


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"{", "the JSON in it is damaged"), (b"[]", "does not contain"), (b" " * 9_000_000, "large")],
)
def test_unknown_kind(home: Path, data: bytes, reason: str) -> None:
    """Nothing is claimed about a file that could not be read."""
    path = support.put(home / "pending_messages/pending-1.json", data)

    result, findings = ask(ID, home)

    assert (result.status, findings) == (Status.UNKNOWN, [])
    assert (result.reason or "").startswith("pending-1.json: ") and reason in (result.reason or "")
    os.utime(path, (1_700_000_000,) * 2)
    assert ask(ID, home)[0].status is Status.OK


def test_a_damaged_transcript_hides_no_other(home: Path) -> None:
    """It is named, and the others are compared."""
    pending(home)
    support.put(home / "sessions/20261115_000000_aaaa.jsonl", '{"role": "user", "con')
    support.put(home / "sessions/20261115_000000_bbbb.jsonl", '{"role": "user", "content": "x"}\n')

    result, findings = ask(ID, home)

    [found] = [one for one in findings if one.subject == "state.db"]
    assert [one.where for one in found.evidence] == ["sessions/20261115_000000_bbbb.jsonl"]
    assert result.reason == "20261115_000000_aaaa.jsonl: the JSON in it is damaged"


def test_an_unreadable_history(home: Path) -> None:
    """Then nobody knows what it lacks."""
    history(home)
    (home / "state.db").unlink()

    result, findings = ask(ID, home)

    assert (result.status, result.reason) == (Status.UNKNOWN, "state.db is missing")
    assert findings == []


@pytest.mark.parametrize("version", ["0.20.5", "0.14.0", None])
def test_only_a_transcript(home: Path, version: str | None) -> None:
    """Hermes has deleted its pending files since; releases before 0.15 write one always."""
    if version:
        recorded_homes.installed(home, version)
    path = support.put(home / "sessions/20261115_001248_df79.jsonl", json.dumps(MESSAGE) + "\n")

    findings = ask(ID, home)[1]

    assert [one.code for one in findings] == ([] if version == "0.14.0" else ["SESSION-UNSAVED"])
    about = {"role": "session_meta", "tools": []}
    path.write_text(f"{json.dumps(about)}\n{json.dumps(MESSAGE)}\n")
    assert ask(ID, home)[1] == []
    path.write_text(json.dumps(MESSAGE) + "\n")
    os.utime(path, (time.time() - 30 * 86400,) * 2)
    assert ask(ID, home)[1] == []


def test_many_logs(home: Path) -> None:
    """A quick check compares the newest, and says that there are others."""
    for number in range(7):
        place = home / f"state.db.retired-wal-2026111{number}T070812Z-4242"
        support.put(place / "manifest.json", "{}")
        if number == 5:
            support.put(place / "state.db", "not a database")
        os.utime(place, (time.time() - 9 * 86400 + number,) * 2)

    result, [found] = ask(ID, home)

    assert result.reason == "2 older folders state.db.retired-wal-* not compared; use --deep"
    assert found.evidence[-1].where.endswith("6T070812Z-4242")
    assert found.evidence[-1].what == "not added: it has no copy of the database"
    assert ask(ID, home, deep=True)[0].reason is None


def test_the_reason_names_its_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the newest one, whose log has no message."""
    old, new = (home / f"state.db.retired-wal-2026111{n}T070812Z-4242" for n in (0, 1))
    for place, age in ((old, 3600), (new, 60)):
        support.put(place / "manifest.json", "{}")
        os.utime(place, (time.time() - age,) * 2)

    def rows(_: Probes, folder: Path) -> RetiredRows:
        if folder == old:
            raise CouldNotLook("it has no copy of the database")
        return RetiredRows(SavedMessages((), 0, frozenset()), MissingMessages())

    monkeypatch.setattr(StoresView, "retired_rows", rows)

    [found] = ask(ID, home)[1]

    [reason] = [one for one in found.evidence if one.what.startswith("not added")]
    assert reason.where == old.name
