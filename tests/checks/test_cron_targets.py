"""CRON-DELIVERY before a job has run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers import store_files, support
from tests.helpers.check_home import TELEGRAM as CONFIGURED, look
from tests.helpers.cron_homes import findings, jobs, running
from tests.helpers.store_files import job

TELEGRAM = "TELEGRAM_BOT_TOKEN=123456:abcdefgh\n"
HOME = "TELEGRAM_HOME_CHANNEL=7\n"
ORIGIN = {"platform": "telegram", "chat_id": "7"}


@pytest.mark.parametrize(
    ("env", "more", "why"),
    [
        ("", {"deliver": "local"}, None),
        ("", {"deliver": None}, None),
        (TELEGRAM, {"deliver": "origin", "origin": ORIGIN}, None),
        ("", {"deliver": "origin", "origin": ORIGIN}, "not set up"),
        (TELEGRAM, {"deliver": "origin"}, "no platform has a home channel"),
        (TELEGRAM + HOME, {"deliver": "origin"}, None),
        (TELEGRAM, {"deliver": "telegram"}, "no TELEGRAM_HOME_CHANNEL"),
        (TELEGRAM + HOME, {"deliver": "telegram"}, None),
        (TELEGRAM, {"deliver": "telegram", "origin": ORIGIN}, None),
        (TELEGRAM, {"deliver": "origin", "origin": {**ORIGIN, "platform": "Telegram"}}, None),
        (TELEGRAM, {"deliver": "Telegram", "origin": ORIGIN}, "no TELEGRAM_HOME_CHANNEL"),
        (TELEGRAM, {"deliver": "telegram:-100:7"}, None),
        (TELEGRAM, {"deliver": "discord:5"}, "not set up"),
        (TELEGRAM, {"deliver": "discord:5,telegram:7"}, "not set up"),
        (TELEGRAM, {"deliver": "local,telegram"}, "no TELEGRAM_HOME_CHANNEL"),
        (TELEGRAM, {"deliver": ["telegram"]}, "TELEGRAM_HOME_CHANNEL"),
        (TELEGRAM, {"deliver": "all"}, "no platform has a home channel"),
        (TELEGRAM + HOME, {"deliver": "all"}, None),
        (TELEGRAM, {"deliver": "some-plugin"}, None),
        (TELEGRAM, {"deliver": 3}, None),
        (TELEGRAM, {"deliver": "telegram", "enabled": False}, None),
        (TELEGRAM, {"deliver": "telegram", "state": "completed"}, None),
        ("QQ_APP_ID=1\nQQ_CLIENT_SECRET=x\nQQ_HOME_CHANNEL=7\n", {"deliver": "qqbot"}, None),
    ],
)
def test_targets(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    env: str,
    more: dict[str, object],
    why: str | None,
) -> None:
    """Every way to say where a result goes, with and without a chat at its end."""
    store_files.installed(monkeypatch, "0.19.0")
    running(monkeypatch, None)
    support.put(home / ".env", env)
    jobs(home, job("alpha", **more))

    found = findings("cron-targets", home)

    assert [one.code for one in found] == (["CRON-DELIVERY"] if why else [])
    assert all((why or "") in one.evidence[1].what for one in found)


@pytest.mark.parametrize(
    ("config", "reached"),
    [
        ("platforms: {telegram: {home_channel: {chat_id: 7}}}", False),
        ("telegram: {home_channel: 7}", False),
        ("TELEGRAM_HOME_CHANNEL: 7", True),
        ("TELEGRAM_HOME_CHANNEL: ''", False),
    ],
)
def test_home_in_config(
    home: Path, monkeypatch: pytest.MonkeyPatch, config: str, reached: bool
) -> None:
    """Jobs go by the variable; config.yaml counts where it says that very name at its top."""
    store_files.installed(monkeypatch, "0.19.0")
    running(monkeypatch, None)
    support.put(home / ".env", TELEGRAM)
    support.put(home / "config.yaml", config + "\n")
    jobs(home, job("alpha", deliver="telegram"))

    assert bool(findings("cron-targets", home)) is not reached


def test_last_one_failed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be delivered last is told without its words."""
    store_files.installed(monkeypatch, "0.19.0")
    running(monkeypatch, None)
    support.put(home / ".env", TELEGRAM)
    jobs(home, job("alpha", deliver="telegram:7", last_delivery_error=store_files.SECRET))

    [found] = findings("cron-targets", home)

    assert "were not delivered" in found.title


@pytest.mark.parametrize(
    ("users", "fix"), [("42", "set-home-channel"), ("42,43", None), ("@ann", None), ("*", None)]
)
def test_the_only_user(home: Path, users: str, fix: str | None) -> None:
    """With one user there is no doubt about the chat."""
    support.put(home / "cron/jobs.json", json.dumps({"jobs": [job("alpha", deliver="telegram")]}))

    _, [found] = look(home, "cron-targets", f"{CONFIGURED}TELEGRAM_ALLOWED_USERS={users}\n")

    assert (found.subject, found.fix) == ("telegram", fix)
    assert ("TELEGRAM_HOME_CHANNEL" in found.next) is (fix is None)


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, "null", "[]", "3", '{"jobs": 3}', '[{"deliver": 3}, 4]']
)
def test_odd(home: Path, text: str) -> None:
    """A list that cannot be read is another check's business."""
    support.put(home / "cron/jobs.json", text)

    assert findings("cron-targets", home) == []
