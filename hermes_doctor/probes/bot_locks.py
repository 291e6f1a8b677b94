"""Read Hermes' lock files, which show which process uses a bot's token on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.processes import process_stat
from hermes_doctor.settings.variables import Settings
from hermes_doctor.system.files import list_folder, read

_LIMIT = 64 * 1024
IDENTITIES = {
    "telegram-bot-token": "TELEGRAM_BOT_TOKEN",
    "discord-bot-token": "DISCORD_BOT_TOKEN",
    "slack-app-token": "SLACK_APP_TOKEN",
    "weixin-bot-token": "WEIXIN_TOKEN",
    "qqbot-appid": "QQ_APP_ID",
    "signal-phone": "SIGNAL_ACCOUNT",
    "feishu-app-id": "FEISHU_APP_ID",
}
"""The variable whose value each kind of lock is named after."""


class Holder(NamedTuple):
    """A running process that holds the lock of a bot."""

    scope: str
    pid: int
    path: Path


def holders(settings: Settings, uid: int) -> list[Holder]:
    """Find the holders of the bots in these settings; `uid` is the gateway's user."""
    folder = _folder(settings, uid)
    there = set(list_folder(folder))
    found = []
    for scope, variable in IDENTITIES.items():
        value = settings.value(variable)
        name = f"{scope}-{_digest(value)}.lock" if value else ""
        if name in there and (pid := _holder(folder / name)) is not None:
            found.append(Holder(scope, pid, folder / name))
    return found


def _folder(settings: Settings, uid: int) -> Path:
    named = settings.value("HERMES_GATEWAY_LOCK_DIR")
    if named:
        return Path(named)
    state = settings.value("XDG_STATE_HOME")
    home = settings.value("HOME") or _home(uid)
    return Path(state or f"{home}/.local/state") / "hermes" / "gateway-locks"


def _home(uid: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(uid).pw_dir
    except (ImportError, KeyError):
        return os.path.expanduser("~")


def _digest(value: str) -> str:
    import hashlib

    return hashlib.sha256(value.encode()).hexdigest()[:16]


def _holder(path: Path) -> int | None:
    """Return the process that a lock names, if it is still the same process."""
    import json

    try:
        said = json.loads(read(path, _LIMIT)[0])
        pid, began = said["pid"], said.get("start_time")
    except (FileNotFoundError, CouldNotLook, ValueError, TypeError, KeyError, AttributeError):
        return None
    if not isinstance(pid, int) or pid <= 0:
        return None
    seen = process_stat.stat(pid)
    if seen is None or (began is not None and seen.start_time != began):
        return None  # it has ended, and another process may have its pid by now
    return pid
