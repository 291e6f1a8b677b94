"""job-delivery: results of jobs need a chat to go to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.model import CheckResult, Finding
from tests import support
from tests.configured import TELEGRAM, look

ID = "job-delivery"
HERE = {"platform": "telegram", "chat_id": "42"}


def jobs(
    home: Path, env: str, deliver: object, origin: object = None, **more: Any
) -> tuple[CheckResult, list[Finding]]:
    """What is said of one job."""
    job = {"id": "a1b2c3", "enabled": True, "deliver": deliver, "origin": origin, **more}
    support.put(home / "cron" / "jobs.json", json.dumps({"jobs": [job]}))
    return look(home, ID, env)


@pytest.mark.parametrize("deliver", ["telegram", "local,telegram", ["telegram"]])
def test_no_home_channel(home: Path, deliver: object) -> None:
    """The platform is named, and nobody said which chat."""
    _, [finding] = jobs(home, TELEGRAM, deliver)

    assert (finding.code, finding.severity) == ("CRON-DELIVERY", "warning")
    assert (finding.subject, finding.evidence[0].where) == ("telegram", "cron/jobs.json")
    assert "TELEGRAM_HOME_CHANNEL" in finding.detail
    assert finding.fix is None


@pytest.mark.parametrize(
    ("users", "fix"), [("42", "set-home-channel"), ("42,43", None), ("@ann", None), ("*", None)]
)
def test_the_only_user(home: Path, users: str, fix: str | None) -> None:
    """With one user there is no doubt about the chat."""
    _, [finding] = jobs(home, f"{TELEGRAM}TELEGRAM_ALLOWED_USERS={users}\n", "telegram")

    assert finding.fix == fix


def test_made_nowhere(home: Path) -> None:
    """A job that answers where it was made, and does not know where that was."""
    _, [finding] = jobs(home, TELEGRAM, "origin")

    assert finding.subject == "origin"


@pytest.mark.parametrize(
    ("env", "deliver", "origin"),
    [
        ("TELEGRAM_HOME_CHANNEL=42\n", "telegram", None),
        ("QQ_HOME_CHANNEL=42\n", "qqbot", None),
        ("QQBOT_HOME_CHANNEL=42\n", "origin", None),
        ("", "origin", HERE),
        ("", "telegram", HERE),
        ("", "telegram:-100:17", None),
        ("", "local", None),
        ("", None, None),
        ("", "all", None),
        ("", "some-plugin", None),
    ],
)
def test_in_order(home: Path, env: str, deliver: object, origin: object) -> None:
    """Every way in which a result gets somewhere, or is not meant to."""
    assert jobs(home, TELEGRAM + env, deliver, origin)[1] == []


def test_not_going_to_run(home: Path) -> None:
    """A job that is switched off loses nothing."""
    assert jobs(home, TELEGRAM, "telegram", enabled=False)[1] == []


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_no_json(home: Path, text: str) -> None:
    """What cannot be read is no answer."""
    support.put(home / "cron" / "jobs.json", text)

    assert look(home, ID)[0].status == "unknown"


@pytest.mark.parametrize("text", ["null", "[]", "3", '{"jobs": 3}', '[{"deliver": 3}, 4]'])
def test_odd(home: Path, text: str) -> None:
    """Odd files hold no jobs, or jobs that go nowhere we know."""
    support.put(home / "cron" / "jobs.json", text)

    assert look(home, ID)[1] == []
