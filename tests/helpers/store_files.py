"""Create the JSON files of Hermes, with a secret wherever one may be, and with flaws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.hermes.installation.find import Installation
from tests.helpers import support
from tests.helpers.fix_cycle import SECRET as SECRET

LATER = "2099-01-01T00:00:00+00:00"


def job(name: str, **more: Any) -> dict[str, Any]:
    """Return one job."""
    schedule = {"kind": "interval", "minutes": 60, "display": "every 60m"}
    return {
        "id": f"id{name}",
        "name": name,
        "prompt": f"say {SECRET}",
        "schedule": schedule,
        "enabled": True,
        "next_run_at": LATER,
        "deliver": "local",
        **more,
    }


def session(key: str, id: str = "s1") -> dict[str, Any]:
    """Return one entry of the list of chats."""
    made = "2026-11-15T00:12:48"
    return {
        "session_key": key,
        "session_id": id,
        "created_at": made,
        "updated_at": made,
        "platform": "telegram",
        "chat_type": "dm",
        "display_name": SECRET,
    }


CHATS = ("agent:main:telegram:dm:1", "agent:main:telegram:dm:2")
WHOLE: dict[str, Any] = {
    "cron/jobs.json": {"jobs": [job("alpha"), job("beta")], "updated_at": LATER},
    "auth.json": {
        "version": 1,
        "providers": {"nous": {"access_token": SECRET}},
        "credential_pool": {"deepseek": [{"id": "a1", "access_token": SECRET}]},
    },
    "sessions/sessions.json": {key: session(key) for key in CHATS},
    "platforms/pairing/telegram-approved.json": {
        "1001": {"user_name": "Ann", "approved_at": 1.0},
        "1002": {"user_name": SECRET, "approved_at": 1.0},
    },
    "webhook_subscriptions.json": {
        "deploy": {"secret": SECRET, "prompt": "x"},
        "alert": {"secret": SECRET, "prompt": "y"},
    },
    "weixin/accounts/acc.json": {"token": SECRET, "base_url": "https://a.example"},
    "weixin/accounts/acc.context-tokens.json": {"u1": SECRET, "u2": SECRET},
    "weixin/accounts/acc.sync.json": {"get_updates_buf": SECRET},
    "kanban/boards/b1/board.json": {"slug": "b1", "name": "my board"},
    "gateway_state.json": {"pid": 1, "kind": "hermes-gateway"},
    "channel_directory.json": {"updated_at": LATER, "platforms": {"telegram": []}},
    "processes.json": [{"pid": 1, "session_id": "p1", "command": SECRET}],
    "platforms/pairing/telegram-pending.json": {"AB12": {"user_id": "7", "created_at": 1.0}},
    "platforms/pairing/_rate_limits.json": {"_lockout:telegram": 1.0},
}


def text(name: str) -> bytes:
    """Return a store in the format of Hermes."""
    return json.dumps(WHOLE[name], indent=2).encode()


def write(home: Path, name: str, data: bytes | None = None) -> Path:
    """Write a store into a home, intact by default."""
    return support.put(home / name, text(name) if data is None else data)


def everything(home: Path) -> Path:
    """Create a home with every store, all intact."""
    for name in WHOLE:
        write(home, name)
    return home


def installed(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Fake the installed release."""
    found = Installation(version, Path("/nowhere"), running=False)
    monkeypatch.setattr(HermesView, "installation", lambda _: found)
