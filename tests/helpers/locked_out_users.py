"""Create homes with refused users, and with users who wait to be paired."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.helpers import support

TOKEN = "TELEGRAM_BOT_TOKEN=123456:AAcanaryzQKx9pLm2TwAAcanaryzQKx9pLm\n"
SECRET = "AAcanaryzQKx9pLm2Tw"


def line(text: str, ago: float = 30, logger: str = "gateway.run") -> str:
    """Return a warning as Hermes writes it, this many minutes ago."""
    at = datetime.now() - timedelta(minutes=ago)
    return f"{at:%Y-%m-%d %H:%M:%S},004 WARNING {logger}: {text}\n"


def turned_away(
    home: Path, user: str = "42", platform: str = "telegram", *, times: int = 1, name: str = "Kelly"
) -> None:
    """Log that a user wrote to the bot and was refused."""
    path = home / "logs" / "errors.log"
    before = path.read_text() if path.exists() else ""
    said = (
        line(f"Unauthorized user: {user} ({name}) on {platform}", 30 + times - number)
        for number in range(times)
    )
    support.put(path, before + "".join(said))


def waiting(
    home: Path,
    user: str = "42",
    platform: str = "telegram",
    *,
    minutes: float = 5,
    name: Any = "Kelly",
    folder: str = "platforms/pairing",
    old: bool = False,
    entry: str = "0011223344556677",
) -> Path:
    """Add a user who was shown a code; `old` uses the format of releases up to 0.14."""
    path = home / folder / f"{platform}-pending.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    made = {"user_id": user, "user_name": name, "created_at": time.time() - minutes * 60}
    hidden = {"hash": "ab" * 32, "salt": "cd" * 16}
    known["CANARY2Z" if old else entry] = made if old else hidden | made
    return support.put(path, json.dumps(known, indent=2, ensure_ascii=False))


def approved(
    home: Path, *users: str, platform: str = "telegram", folder: str = "platforms/pairing"
) -> Path:
    """Add users who were paired."""
    told = {user: {"user_name": "Sam", "approved_at": 1763000000.5} for user in users}
    return support.put(home / folder / f"{platform}-approved.json", json.dumps(told, indent=2))


def locked(home: Path, platform: str = "telegram", *, minutes: float = 20) -> Path:
    """Lock pairing as after five wrong codes."""
    said = {
        f"{platform}:42": time.time() - 60,
        f"_failures:{platform}": 0,
        f"_lockout:{platform}": time.time() + minutes * 60,
        "_failures:discord": 2,
    }
    return support.put(home / "platforms/pairing/_rate_limits.json", json.dumps(said, indent=2))
