"""Messages that Hermes kept in files because it could not save them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from hermes_doctor.model import Status
from tests.helpers import fake_gateway, support
from tests.helpers.one_check import ask

ID = "unsaved-turns"
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


@pytest.mark.parametrize(
    ("reason", "subject"), [("shutdown", "pending_messages"), (HISTORY, "sessions")]
)
def test_pending(home: Path, reason: str, subject: str) -> None:
    """Some kinds are added by the next start, others are not."""
    pending(home, reason)

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
