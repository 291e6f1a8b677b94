"""Report from inside a release how its loaders handle damaged JSON files.

Every store is written intact, then with each flaw in turn, and read by the release's own code. The
output says for each store and flaw whether the loader returned all entries (`whole`), some
(`part`), none without an error (`none`), raised an error (`fails`), or whether rescheduled jobs
are still due (`again`).
"""

import contextlib
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

Value = dict[str, Any]
HOME = Path(os.environ.get("HERMES_HOME", ""))
LATER = "2099-01-01T00:00:00+00:00"


def _job(name: str) -> Value:
    return {
        "id": name,
        "name": f"job {name}",
        "prompt": "say hello",
        "schedule": {"kind": "interval", "minutes": 60, "display": "every 60m"},
        "enabled": True,
        "next_run_at": LATER,
        "deliver": "local",
    }


def _session(key: str) -> Value:
    return {
        "session_key": key,
        "session_id": f"20261115_001248_{key[-1]}f794ef7",
        "created_at": "2026-11-15T00:12:48",
        "updated_at": "2026-11-15T00:12:48",
        "platform": "telegram",
        "chat_type": "dm",
    }


class Again(Exception):
    """A job is still due after it was rescheduled."""


def jobs() -> list[str]:
    cron = import_module("cron.jobs")
    found = cron.load_jobs()
    for job in cron.get_due_jobs():
        cron.advance_next_run(job["id"])
    if cron.get_due_jobs():
        raise Again
    return [job["id"] for job in found]


def auth() -> list[str]:
    store = import_module("hermes_cli.auth")
    found = store._load_auth_store()
    return [*found["providers"], *found.get("credential_pool", {})]


def sessions() -> list[str]:
    GatewayConfig = import_module("gateway.config").GatewayConfig
    SessionStore = import_module("gateway.session").SessionStore
    store = SessionStore(HOME / "sessions", GatewayConfig())
    store._db = None
    store._ensure_loaded()
    return [key for key in store._entries if not key.startswith("_")]


def approved() -> list[str]:
    PairingStore = import_module("gateway.pairing").PairingStore
    store = PairingStore()
    return [name for name in ("u1", "u2") if store.is_approved("telegram", name)]


def pending() -> list[str]:
    PairingStore = import_module("gateway.pairing").PairingStore
    return [one["user_id"] for one in PairingStore().list_pending("telegram")]


def limits() -> list[str]:
    PairingStore = import_module("gateway.pairing").PairingStore
    store = PairingStore()
    return [name for name in ("telegram", "discord") if store._is_locked_out(name)]


def webhooks() -> list[str]:
    PlatformConfig = import_module("gateway.config").PlatformConfig
    WebhookAdapter = import_module("gateway.platforms.webhook").WebhookAdapter
    adapter = WebhookAdapter(PlatformConfig(enabled=True))
    adapter._reload_dynamic_routes()
    return list(adapter._dynamic_routes)


def processes() -> list[str]:
    process_registry = import_module("tools.process_registry")
    registry = process_registry.ProcessRegistry()
    registry._host_pid_is_ours = lambda *_: True
    registry.recover_from_checkpoint()
    return list(registry._running)


def gateway() -> list[str]:
    status = import_module("gateway.status")
    return [name for name in status.read_runtime_status() or () if name in ("pid", "kind")]


def channels() -> list[str]:
    channel_directory = import_module("gateway.channel_directory")
    return list(channel_directory.load_directory()["platforms"])


def board() -> list[str]:
    kanban_db = import_module("hermes_cli.kanban_db")
    board_metadata = kanban_db.read_board_metadata("b1")
    return [key for key in ("name", "description") if board_metadata[key].startswith("my own")]


def account() -> list[str]:
    weixin = import_module("gateway.platforms.weixin")
    weixin_account = weixin.load_weixin_account(str(HOME), "acc")
    return [key for key in ("token", "base_url") if (weixin_account or {}).get(key)]


def tokens() -> list[str]:
    weixin = import_module("gateway.platforms.weixin")
    store = weixin.ContextTokenStore(str(HOME))
    store.restore("acc")
    return [name for name in ("u1", "u2") if store.get("acc", name)]


def cursor() -> list[str]:
    weixin = import_module("gateway.platforms.weixin")
    return ["get_updates_buf"] if weixin._load_sync_buf(str(HOME), "acc") else []


USER = {"user_name": "Ann", "approved_at": 1794700000.0}
ROUTE = {"secret": "not-a-secret", "prompt": "hello", "events": []}
PROCESS = {"pid": os.getpid(), "command": "sleep 1"}
STORES: dict[str, tuple[Callable[[], list[str]], str, Any]] = {
    "jobs": (jobs, "cron/jobs.json", {"jobs": [_job("a"), _job("b")], "updated_at": LATER}),
    "auth": (
        auth,
        "auth.json",
        {"version": 1, "providers": {"nous": {}}, "credential_pool": {"deepseek": [{}]}},
    ),
    "sessions": (
        sessions,
        "sessions/sessions.json",
        {key: _session(key) for key in ("agent:main:telegram:dm:1", "agent:main:telegram:dm:2")},
    ),
    "approved": (
        approved,
        "platforms/pairing/telegram-approved.json",
        {"u1": USER, "u2": USER},
    ),
    "pending": (
        pending,
        "platforms/pairing/telegram-pending.json",
        {
            name: {"user_id": name, "created_at": 4e9, "salt": "00", "hash": "0"}
            for name in ("AAAA1111", "BBBB2222")
        },
    ),
    "limits": (
        limits,
        "platforms/pairing/_rate_limits.json",
        {"_lockout:telegram": 4e9, "_lockout:discord": 4e9},
    ),
    "webhooks": (webhooks, "webhook_subscriptions.json", {"one": ROUTE, "two": ROUTE}),
    "processes": (
        processes,
        "processes.json",
        [{**PROCESS, "session_id": "p1"}, {**PROCESS, "session_id": "p2"}],
    ),
    "gateway": (gateway, "gateway_state.json", {"pid": 1, "kind": "hermes-gateway"}),
    "channels": (
        channels,
        "channel_directory.json",
        {"updated_at": LATER, "platforms": {"telegram": [], "discord": []}},
    ),
    "board": (
        board,
        "kanban/boards/b1/board.json",
        {"slug": "b1", "name": "my own", "description": "my own words"},
    ),
    "account": (
        account,
        "weixin/accounts/acc.json",
        {"token": "not-a-token", "base_url": "https://example.org", "user_id": "u"},
    ),
    "tokens": (
        tokens,
        "weixin/accounts/acc.context-tokens.json",
        {"u1": "not-a-token", "u2": "not-a-token"},
    ),
    "cursor": (cursor, "weixin/accounts/acc.sync.json", {"get_updates_buf": "x"}),
}


FIELDS: dict[str, list[tuple[str, str, Any]]] = {
    "jobs": [("field", "next_run_at", 7)],
    "sessions": [
        ("field", "created_at", 7),
        ("origin", "origin", "some text"),
        ("left", "created_at", "some text"),
    ],
}


def inner(kind: str, value: Any) -> tuple[Any, Any]:
    """Return a copy of the value, and the container of its entries."""
    value = json.loads(json.dumps(value))
    where = {"jobs": "jobs", "auth": "providers", "channels": "platforms"}.get(kind)
    return value, value[where] if where else value


def noted(kind: str, value: Any) -> bytes:
    """Return the file's bytes with one more harmless text in them."""
    value = json.loads(json.dumps(value))
    entries = kind in ("sessions", "approved", "pending", "webhooks", "processes")
    first = (value if isinstance(value, list) else [*value.values()])[0] if entries else value
    first["note"] = "x"
    return json.dumps(value, indent=2).encode()


def flawed(kind: str, value: Any) -> Iterator[tuple[str, bytes]]:
    """Yield the file's bytes with each flaw."""
    text = json.dumps(value, indent=2)
    plain = text.encode()
    yield "plain", plain
    yield "bom", b"\xef\xbb\xbf" + plain
    yield "padding", plain + b"\0" * 64
    yield "torn", plain[: len(plain) * 2 // 3]
    yield "tail", plain + b"\n}\n"
    yield "control", noted(kind, value).replace(b'"note": "', b'"note": "\x07')
    yield "empty", b""
    yield "binary", b"\x80\x81\xfe\xff" * 16
    yield "null", b"null"
    yield "text", b'"some text"'
    yield "number", b"7"
    yield "deep", b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    whole, holder = inner(kind, value)
    if kind == "jobs":
        yield "list", json.dumps(holder).encode()
    else:
        yield "list", json.dumps({} if isinstance(value, list) else []).encode()
    yield "without", b'{"something": "else"}'
    if isinstance(holder, list):
        holder.append("odd")
    else:
        holder["_odd"] = 7 if kind == "tokens" else "odd"
        holder.update({name: holder.pop(name) for name in [*holder] if name != "_odd"})
    yield "entry", json.dumps(whole).encode()
    where = {"jobs": "jobs", "auth": "providers", "channels": "platforms"}.get(kind)
    if where:
        other = {"jobs": {"a": 1}, "auth": [1], "channels": None}[kind]
        yield "holder", json.dumps({**value, where: other}).encode()
    for flaw, field, odd in FIELDS.get(kind, ()):
        whole, holder = inner(kind, value)
        first = holder[0] if kind == "jobs" else next(iter(holder.values()))
        first[field] = odd
        yield flaw, json.dumps(whole).encode()
    if kind == "jobs":
        whole, holder = inner(kind, value)
        just = (datetime.now(UTC) - timedelta(seconds=30)).isoformat()
        holder[1] |= {"id": holder[0]["id"], "next_run_at": just}
        yield "twice", json.dumps(whole).encode()


def outcome(load: Callable[[], list[str]], wanted: list[str]) -> str:
    """Return what the loader made of the file."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            found = load()
    except Again:
        return "again"
    except Exception:  # noqa: BLE001 (any failure is an outcome)
        return "fails"
    if not wanted or set(found) >= set(wanted):
        return "whole"
    return "part" if found else "none"


def main() -> None:
    logging.disable(logging.CRITICAL)
    said: dict[str, Any] = {}
    for kind, (load, name, value) in STORES.items():
        path = HOME / name
        wanted: list[str] = []
        said[kind] = {}
        for flaw, data in flawed(kind, value):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            if flaw == "plain":
                try:
                    wanted = load()
                except ImportError as why:
                    said[kind] = f"this release has none: {why}"
                    break
                if not wanted:
                    raise SystemExit(f"{kind}: nothing is loaded of a sound file")
                continue
            said[kind][flaw] = outcome(load, wanted)
        path.unlink()
    sys.stdout.write("\n" + json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
