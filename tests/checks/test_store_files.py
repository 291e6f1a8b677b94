"""AUTHJSON, CRON-JOBS-CORRUPT, SESSION-ROUTE-STALE, PAIRING-CORRUPT and STORE-CORRUPT."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.model import Gateway
from hermes_doctor.probes import Probes
from tests import damage, stored, support
from tests.curing import SECRET
from tests.looking import ask

BOM = b"\xef\xbb\xbf"
PAIRED = "platforms/pairing/telegram-approved.json"


def test_healthy(home: Path) -> None:
    """No stores, empty ones, and all of them whole."""
    assert ask("store-files", home)[1] == []
    support.put(home / "cron/jobs.json", '{"jobs": [], "updated_at": null}')
    support.put(home / "sessions/sessions.json", "{}")
    support.put(home / PAIRED, "{}")
    assert ask("store-files", home)[1] == []
    result, found = ask("store-files", stored.everything(home))
    assert (result.status, found) == ("ok", [])


@pytest.mark.parametrize(
    ("name", "code", "severity", "spare"),
    [
        ("auth.json", "AUTHJSON", "critical", True),
        ("cron/jobs.json", "CRON-JOBS-CORRUPT", "error", False),
        ("sessions/sessions.json", "SESSION-ROUTE-STALE", "critical", True),
        (PAIRED, "PAIRING-CORRUPT", "critical", True),
        ("webhook_subscriptions.json", "STORE-CORRUPT", "critical", True),
        ("weixin/accounts/acc.json", "STORE-CORRUPT", "error", False),
        ("weixin/accounts/acc.context-tokens.json", "STORE-CORRUPT", "critical", True),
        ("weixin/accounts/acc.sync.json", "STORE-CORRUPT", "info", False),
        ("kanban/boards/b1/board.json", "STORE-CORRUPT", "critical", True),
        ("gateway_state.json", "STORE-CORRUPT", "info", False),
        ("channel_directory.json", "STORE-CORRUPT", "info", False),
        ("processes.json", "STORE-CORRUPT", "info", False),
        ("platforms/pairing/telegram-pending.json", "PAIRING-CORRUPT", "info", False),
        ("platforms/pairing/_rate_limits.json", "PAIRING-CORRUPT", "info", False),
    ],
)
def test_damaged(home: Path, name: str, code: str, severity: str, spare: bool) -> None:
    """Each store that is cut off, with how bad that is; no word of it comes out."""
    stored.everything(home)
    stored.write(home, name, stored.text(name)[:-9])

    [found] = ask("store-files", home)[1]

    assert (found.code, found.severity, found.subject) == (code, severity, name)
    assert ("Do not restart the gateway yet" in found.detail) is spare
    assert found.since is not None
    assert SECRET not in repr(found._replace(data={}))


@pytest.mark.parametrize(
    ("version", "name", "data", "found"),
    [
        ("0.18.2", "cron/jobs.json", BOM + stored.text("cron/jobs.json"), True),
        ("0.19.0", "cron/jobs.json", BOM + stored.text("cron/jobs.json"), False),
        ("0.15.2", "cron/jobs.json", json.dumps([stored.job("a")]).encode(), True),
        ("0.16.0", "cron/jobs.json", json.dumps([stored.job("a")]).encode(), False),
        ("0.13.0", "cron/jobs.json", b'{"jobs": [{"id": "a", "name": "x\x07"}]}', False),
        ("0.17.0", "sessions/sessions.json", b'{"_README": "x", "k": {}}', True),
        ("0.18.0", "sessions/sessions.json", b'{"_README": "x", "k": {}}', False),
        ("0.15.2", "gateway_state.json", b"\x80\x81" * 9, True),
    ],
)
def test_by_release(
    home: Path, monkeypatch: pytest.MonkeyPatch, version: str, name: str, data: bytes, found: bool
) -> None:
    """What one release reads another one fails on."""
    stored.installed(monkeypatch, version)
    stored.write(home, name, data)

    assert [one.subject for one in ask("store-files", home)[1]] == ([name] if found else [])


@pytest.mark.parametrize(
    ("data", "severity"),
    [(b"null", "critical"), (b"\x80\xfe" * 9, "critical"), (b"[]", "critical"), (b"", "info")],
)
def test_pairing(home: Path, data: bytes, severity: str) -> None:
    """What locks users out, or makes every message an error."""
    stored.write(home, PAIRED, data)

    [found] = ask("store-files", home)[1]

    assert (found.code, found.severity) == ("PAIRING-CORRUPT", severity)
    assert found.fix is None, "there is no copy"


def test_empty(home: Path) -> None:
    """An empty file has nothing to lose, unless a copy has what was in it."""
    stored.write(home, "auth.json", b"")
    [found] = ask("store-files", home)[1]
    assert (found.severity, found.fix) == ("info", None)
    support.put(home / "state-snapshots/1/auth.json", stored.text("auth.json"))
    [found] = ask("store-files", home)[1]
    assert (found.severity, found.fix) == ("critical", "restore-store")


def test_jobs_without_jobs(home: Path) -> None:
    """A file that Hermes takes for empty is overwritten by the next job."""
    stored.write(home, "cron/jobs.json", b'{"tasks": []}')

    [found] = ask("store-files", home)[1]

    assert found.severity == "critical"
    assert "Do not restart the gateway yet" in found.detail


def test_weixin_token_is_set(home: Path) -> None:
    """A login that nobody needs is no trouble."""
    stored.write(home, "weixin/accounts/acc.json", b"{")
    support.put(home / ".env", "WEIXIN_TOKEN=x\n")

    [found] = ask("store-files", home)[1]

    assert found.severity == "info"


def test_mirror(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 0.18.1 on state.db has the chats; before, the file is all there is."""
    stored.write(home, "sessions/sessions.json", b"{")
    key = stored.CHATS[0]
    damage.execute(
        home / "state.db",
        "INSERT INTO gateway_routing (scope, session_key, entry_json, updated_at) "
        f"VALUES ('x', '{key}', '{{}}', 1)",
    )
    for version, severity in (("0.18.0", "critical"), ("0.18.1", "info")):
        stored.installed(monkeypatch, version)
        [found] = ask("store-files", home)[1]
        assert found.severity == severity


@pytest.mark.parametrize(("minutes", "memory"), [(-5, True), (5, False)])
def test_running_gateway(
    home: Path, monkeypatch: pytest.MonkeyPatch, minutes: int, memory: bool
) -> None:
    """A gateway that has read the chats before the damage still knows them."""
    stored.write(home, "sessions/sessions.json", stored.text("sessions/sessions.json")[:-9])
    began = datetime.now(UTC) + timedelta(minutes=minutes)
    monkeypatch.setattr(Probes, "gateways", lambda _: [Gateway(os.getpid(), began)])

    [found] = ask("store-files", home)[1]

    assert ("only the running gateway" in found.title) is memory
    assert found.severity == ("warning" if memory else "critical")
    assert (found.fix is None) is memory


def test_put_aside(home: Path) -> None:
    """Hermes began anew; what it put aside has logins that the store has not."""
    stored.write(home, "auth.json", b'{"version": 1, "providers": {"nous": {"x": 1}}}')
    support.put(home / "auth.json.corrupt", stored.text("auth.json")[:-3])

    [found] = ask("store-files", home)[1]

    assert (found.code, found.severity, found.fix) == ("AUTHJSON", "warning", "mend-store")
    assert "1 of its logins" in found.title
    support.put(home / "auth.json.corrupt", b"")
    assert ask("store-files", home)[1] == []


def test_transcripts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 0.14 lines that are no JSON are told of; later nobody reads them."""
    support.put(home / "sessions/20261115_1.jsonl", f'{{"role": "user"}}\n{{"{SECRET}\n')
    for version, count in (("0.14.0", 1), ("0.15.0", 0)):
        stored.installed(monkeypatch, version)
        assert len(ask("store-files", home)[1]) == count


def test_not_a_file(home: Path) -> None:
    """What cannot be looked at is said."""
    (home / "cron/jobs.json").mkdir(parents=True)

    result, found = ask("store-files", home)

    assert (result.status, found) == ("unknown", [])
    assert "jobs.json" in (result.reason or "")
