"""AUTHJSON, CRON-JOBS-CORRUPT, SESSION-ROUTE-STALE, PAIRING-CORRUPT and STORE-CORRUPT."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.model import Gateway
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from tests.helpers import damage, store_files, support
from tests.helpers.fix_cycle import SECRET
from tests.helpers.one_check import ask

BOM = b"\xef\xbb\xbf"
CHATS = "sessions/sessions.json"
NOTED = json.dumps({"_README": "x", "k": store_files.session("k")}).encode()
PAIRED = "platforms/pairing/telegram-approved.json"


def test_healthy(home: Path) -> None:
    """No stores, empty ones, and all of them whole."""
    assert ask("store-files", home)[1] == []
    support.put(home / "cron/jobs.json", '{"jobs": [], "updated_at": null}')
    support.put(home / "sessions/sessions.json", "{}")
    support.put(home / PAIRED, "{}")
    assert ask("store-files", home)[1] == []
    result, found = ask("store-files", store_files.everything(home))
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
    store_files.everything(home)
    store_files.write(home, name, store_files.text(name)[:-9])

    [found] = ask("store-files", home)[1]

    assert (found.code, found.severity, found.subject) == (code, severity, name)
    assert ("Do not restart the gateway" in found.next) is spare
    assert found.since is not None
    assert SECRET not in repr(found._replace(data={}))


@pytest.mark.parametrize(
    ("version", "name", "data", "found"),
    [
        ("0.18.2", "cron/jobs.json", BOM + store_files.text("cron/jobs.json"), True),
        ("0.19.0", "cron/jobs.json", BOM + store_files.text("cron/jobs.json"), False),
        ("0.15.2", "cron/jobs.json", json.dumps([store_files.job("a")]).encode(), True),
        ("0.16.0", "cron/jobs.json", json.dumps([store_files.job("a")]).encode(), False),
        ("0.13.0", "cron/jobs.json", b'{"jobs": [{"id": "a", "name": "x\x07"}]}', False),
        ("0.17.0", "sessions/sessions.json", NOTED, True),
        ("0.18.0", "sessions/sessions.json", NOTED, False),
        ("0.15.2", "gateway_state.json", b"\x80\x81" * 9, True),
    ],
)
def test_by_release(
    home: Path, monkeypatch: pytest.MonkeyPatch, version: str, name: str, data: bytes, found: bool
) -> None:
    """What one release reads another one fails on."""
    store_files.installed(monkeypatch, version)
    store_files.write(home, name, data)

    assert [one.subject for one in ask("store-files", home)[1]] == ([name] if found else [])


@pytest.mark.parametrize(
    ("data", "severity"),
    [(b"null", "critical"), (b"\x80\xfe" * 9, "critical"), (b"[]", "critical"), (b"", "info")],
)
def test_pairing(home: Path, data: bytes, severity: str) -> None:
    """What locks users out, or makes every message an error."""
    store_files.write(home, PAIRED, data)

    [found] = ask("store-files", home)[1]

    assert (found.code, found.severity) == ("PAIRING-CORRUPT", severity)
    assert found.data["platform"] == "telegram"
    assert found.fix is None, "there is no copy"


@pytest.mark.parametrize("name", ["telegram-pending.json", "_rate_limits.json"])
def test_pairing_of_new_users(home: Path, name: str) -> None:
    """A file that only new users need does not silence the bot."""
    store_files.write(home, f"platforms/pairing/{name}", b"[]")

    [found] = ask("store-files", home)[1]

    assert (found.code, found.severity) == ("PAIRING-CORRUPT", "warning")
    assert "Approved users are not affected" in found.detail


def test_empty(home: Path) -> None:
    """An empty file has nothing to lose, unless a copy has what was in it."""
    store_files.write(home, "auth.json", b"")
    [found] = ask("store-files", home)[1]
    assert (found.severity, found.fix) == ("info", None)
    support.put(home / "state-snapshots/1/auth.json", store_files.text("auth.json"))
    [found] = ask("store-files", home)[1]
    assert (found.severity, found.fix) == ("critical", "restore-store")


def test_jobs_without_jobs(home: Path) -> None:
    """A file that Hermes takes for empty is overwritten by the next job."""
    store_files.write(home, "cron/jobs.json", b'{"tasks": []}')

    [found] = ask("store-files", home)[1]

    assert found.severity == "critical"
    assert "Do not restart the gateway" in found.next


def test_weixin_token_is_set(home: Path) -> None:
    """A login that nobody needs is no trouble."""
    store_files.write(home, "weixin/accounts/acc.json", b"{")
    support.put(home / ".env", "WEIXIN_TOKEN=x\n")

    [found] = ask("store-files", home)[1]

    assert found.severity == "info"


def test_mirror(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 0.18.1 on state.db has the chats; before, the file is all there is."""
    store_files.write(home, "sessions/sessions.json", b"{")
    key = store_files.CHATS[0]
    damage.execute(
        home / "state.db",
        "INSERT INTO gateway_routing (scope, session_key, entry_json, updated_at) "
        f"VALUES ('x', '{key}', '{{}}', 1)",
    )
    for version, severity in (("0.18.0", "critical"), ("0.18.1", "info")):
        store_files.installed(monkeypatch, version)
        [found] = ask("store-files", home)[1]
        assert found.severity == severity


@pytest.mark.parametrize(("minutes", "memory"), [(-5, True), (5, False)])
def test_running_gateway(
    home: Path, monkeypatch: pytest.MonkeyPatch, minutes: int, memory: bool
) -> None:
    """A gateway that has read the chats before the damage still knows them."""
    store_files.write(
        home, "sessions/sessions.json", store_files.text("sessions/sessions.json")[:-9]
    )
    began = datetime.now(UTC) + timedelta(minutes=minutes)
    monkeypatch.setattr(GatewayView, "running", lambda _: [Gateway(os.getpid(), began)])

    [found] = ask("store-files", home)[1]

    assert ("only the running gateway" in found.title) is memory
    assert found.severity == ("warning" if memory else "critical")
    assert (found.fix is None) is memory


def test_put_aside(home: Path) -> None:
    """Hermes began anew; what it put aside has logins that the store has not."""
    store_files.write(home, "auth.json", b'{"version": 1, "providers": {"nous": {"x": 1}}}')
    support.put(home / "auth.json.corrupt", store_files.text("auth.json")[:-3])

    [found] = ask("store-files", home)[1]

    assert (found.code, found.severity, found.fix) == ("AUTHJSON", "warning", "mend-store")
    assert found.title == "1 login exists only in auth.json.corrupt"
    support.put(home / "auth.json.corrupt", b"")
    assert ask("store-files", home)[1] == []


def test_transcripts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 0.14 lines that are no JSON are told of; later nobody reads them."""
    support.put(home / "sessions/20261115_1.jsonl", f'{{"role": "user"}}\n{{"{SECRET}\n')
    for version, count in (("0.14.0", 1), ("0.15.0", 0)):
        store_files.installed(monkeypatch, version)
        assert len(ask("store-files", home)[1]) == count


def test_not_a_file(home: Path) -> None:
    """What cannot be looked at is said."""
    (home / "cron/jobs.json").mkdir(parents=True)

    result, found = ask("store-files", home)

    assert (result.status, found) == ("unknown", [])
    assert "jobs.json" in (result.reason or "")


def chats(home: Path, *odd: object, **more: object) -> None:
    """Two chats, with others between them (a text: an entry that is none)."""
    one, two = store_files.CHATS
    between = {f"odd{n}": entry for n, entry in enumerate(odd)}
    data = {one: store_files.session(one), **between, two: store_files.session(two), **more}
    store_files.write(home, CHATS, json.dumps(data).encode())


def lacking(*fields: str, **odd: object) -> dict[str, object]:
    """A chat without these fields, or with odd ones."""
    whole = store_files.session("odd0", "20261115_001248_af794ef7") | odd
    return {field: value for field, value in whole.items() if field not in fields}


@pytest.mark.parametrize("version", ["0.13.0", "0.16.0", "0.18.0", "0.19.0"])
@pytest.mark.parametrize(
    ("odd", "severity", "fix"),
    [
        (lacking("created_at"), "warning", "mend-store"),
        (lacking("created_at", "updated_at"), "warning", "mend-store"),
        (lacking("session_key"), "warning", "mend-store"),
        (lacking(updated_at="yesterday"), "warning", "mend-store"),
        (lacking(origin={"platform": "telegram"}), "warning", "mend-store"),
        (lacking("session_id"), "info", None),
        ({}, "info", None),
    ],
)
def test_chats_that_are_left_out(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    odd: object,
    severity: str,
    fix: str | None,
) -> None:
    """Entries without an id or a date: only these are dropped, with a save that says nothing."""
    store_files.installed(monkeypatch, version)
    chats(home, odd)

    [found] = ask("store-files", home)[1]

    assert (found.code, found.severity, found.fix) == ("SESSION-ROUTE-STALE", severity, fix)
    assert ("Do not restart the gateway" in found.next) is (fix is not None)
    assert "1 of its entries" in found.evidence[0].what


@pytest.mark.parametrize("odd", ["text", 7, None, [], lacking(created_at=7), lacking(origin="x")])
def test_up_to_an_odd_chat(home: Path, monkeypatch: pytest.MonkeyPatch, odd: object) -> None:
    """Up to 0.17 an odd entry costs those behind it; the last one costs only itself."""
    store_files.installed(monkeypatch, "0.17.0")
    chats(home, odd)
    [found] = ask("store-files", home)[1]
    assert found.severity == "critical"
    assert "all chats after the damaged entry" in found.detail

    chats(home, lacking(created_at=7), zz=odd)
    assert [one.severity for one in ask("store-files", home)[1]] == ["critical"]

    chats(home, zz=odd)
    [found] = ask("store-files", home)[1]

    mendable = isinstance(odd, dict)
    assert found.severity == ("warning" if mendable else "info")
    assert found.fix == ("mend-store" if mendable else None)
    assert "these entries" in found.detail


@pytest.mark.parametrize("version", ["0.13.0", "0.17.0", "0.18.0"])
@pytest.mark.parametrize(("before", "after"), [(BOM, b""), (b"", b"\0" * 9), (b"", b"}")])
def test_flaw_around_the_chats(
    home: Path, monkeypatch: pytest.MonkeyPatch, version: str, before: bytes, after: bytes
) -> None:
    """What is wrong with the file itself costs every chat, whatever they are."""
    store_files.installed(monkeypatch, version)
    store_files.write(home, CHATS, before + store_files.text(CHATS) + after)

    [found] = ask("store-files", home)[1]

    assert (found.severity, found.fix) == ("critical", "mend-store")
    assert "every chat begins a new conversation" in found.detail


def test_note_behind_the_chats(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note of newer releases that stands last costs 0.17 nothing."""
    store_files.installed(monkeypatch, "0.17.0")
    chats(home, _README="a note")
    assert ask("store-files", home)[1] == []
    chats(home, _note={"of": "some release"})
    assert ask("store-files", home)[1] == []


def test_flaw_behind_a_harmless_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The note that 0.18 writes itself hides no entry that it drops."""
    store_files.installed(monkeypatch, "0.18.0")
    chats(home, lacking("created_at"), _README="a note")

    assert [one.severity for one in ask("store-files", home)[1]] == ["warning"]


@pytest.mark.parametrize(
    ("version", "platform", "severity"),
    [
        ("0.16.0", "photon", "warning"),
        ("0.17.0", "photon", None),
        ("0.13.0", "irc", None),
        ("0.13.0", "Telegram", None),
        ("0.18.0", "local", None),
        ("0.18.0", "pigeons", "info"),
    ],
)
def test_unknown_platform(
    home: Path, monkeypatch: pytest.MonkeyPatch, version: str, platform: str, severity: str | None
) -> None:
    """Chats of a platform that this release does not know; somebody's own plugin is none."""
    store_files.installed(monkeypatch, version)
    chats(home, lacking(origin={"platform": platform, "chat_id": "1"}))

    found = ask("store-files", home)[1]

    assert [one.severity for one in found] == ([severity] if severity else [])
    support.put(home / "plugins/pigeons/plugin.yaml", "name: pigeons\n")
    left = ask("store-files", home)[1]
    assert left == [one for one in found if one.severity == "warning"]


def test_one_id_twice(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two jobs with one id the second runs every minute; one that is switched off does not."""
    store_files.installed(monkeypatch, "0.19.0")
    first, second = store_files.job("a"), store_files.job("b", id="ida")
    for more, found in (({}, ["error"]), ({"enabled": False}, [])):
        support.put(home / "cron/jobs.json", json.dumps({"jobs": [first, second | more]}))
        assert [one.severity for one in ask("store-files", home)[1]] == found


@pytest.mark.parametrize(
    ("version", "planned", "found"),
    [
        ("0.18.2", "2020-01-01T00:00:00+00:00", True),
        ("0.18.2", None, True),
        ("0.18.2", store_files.LATER, False),
        ("0.19.0", None, False),
    ],
)
def test_schedule_that_stops_every_look(
    home: Path, monkeypatch: pytest.MonkeyPatch, version: str, planned: str | None, found: bool
) -> None:
    """Up to 0.18.2 a schedule that tells no time stops all jobs as soon as it is due."""
    store_files.installed(monkeypatch, version)
    garbage = {"kind": "cron", "expr": "every noon"}
    odd = store_files.job("a", schedule=garbage, next_run_at=planned)
    support.put(home / "cron/jobs.json", json.dumps({"jobs": [odd, store_files.job("b")]}))

    said = ask("store-files", home)[1]

    assert [one.fix for one in said] == (["mend-store"] if found else [])
    left = [] if found else [("CRON-JOB-FAILED", "warning")]
    assert [(one.code, one.severity) for one in ask("cron-jobs", home)[1]] == left
