"""Record the log of a real gateway whose network and model have short hiccups that pass.

    python -m tests.helpers.real.hiccups

writes tests/data/logs/hiccups-0.19.0.tar.xz: a folder for each hiccup, with the lines that each
log file got from a message before it until an answer after it. Nothing leaves this machine.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.helpers import support
from tests.helpers.real import chat_partner, qq
from tests.helpers.real.gateways import gateway, until
from tools import real_home

VERSION = "0.19.0"
KEPT = Path(__file__).parents[2] / "data" / "logs" / f"hiccups-{VERSION}.tar.xz"
FILES = ("agent.log", "errors.log", "gateway.log")
NO_NAMES = """
import os, socket
known = socket.getaddrinfo
HERE = ("localhost", b"localhost", "127.0.0.1", b"127.0.0.1", None)

def asked(*place, **options):
    if os.path.exists({flag!r}) or place[0] not in HERE:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    return known(*place, **options)

socket.getaddrinfo = asked
"""
"""Added to a hook: no name of another machine is resolved, and while a file is there, none."""
PATIENCE = 180.0
IMPATIENT = {
    "NO_PROXY": "*", "HERMES_API_TIMEOUT": "5", "HERMES_STREAM_READ_TIMEOUT": "5",
    "HERMES_STREAM_STALE_TIMEOUT": "5", "HERMES_API_CALL_STALE_TIMEOUT": "5",
}  # fmt: skip
"""Nothing goes through a proxy, and calls of the model time out soon."""


class Bot:
    """A gateway, a friend who writes to it, and a platform and a model that can fail."""

    def __init__(self, chat: chat_partner.Chat, home: Path, flag: Path) -> None:
        self.chat, self.home, self.flag = chat, home, flag

    def ask(self) -> None:
        """Say something and wait for the answer."""
        before = self.logged("agent.log", "response ready")
        self.chat.say("Are you there?")
        until(lambda: self.logged("agent.log", "response ready") > before, "the answer", PATIENCE)
        time.sleep(2)  # the gateway forgets the question after it has logged the answer

    def logged(self, name: str, words: str) -> int:
        """Count the lines of a log file with these words."""
        lines = (self.home / "logs" / name).read_text().splitlines()
        return sum(words in line for line in lines)

    def model_for_a_while(self, mode: str) -> None:
        """Let the first calls of a message fail."""
        asked = self.chat.platform.said.read_text().count("asked")
        before = self.logged("agent.log", "response ready")
        self.chat.platform.tell(f"model {mode}")
        self.chat.say("What is the answer?")
        said = self.chat.platform.said
        until(lambda: said.read_text().count("asked") > asked + 1, "a second call", PATIENCE)
        self.chat.platform.tell("model answer")
        until(lambda: self.logged("agent.log", "response ready") > before, "the answer", PATIENCE)
        time.sleep(2)

    def closed(self, code: int) -> None:
        """Let QQ close the connection, and wait until the bot is back."""
        sessions = self.chat.platform.sessions()
        self.chat.platform.tell(f"close {code}")
        until(lambda: self.chat.platform.sessions() > sessions, "the session", PATIENCE)

    def without_names(self) -> None:
        """Let QQ close the connection while no name can be resolved."""
        sessions = self.chat.platform.sessions()
        failed = self.logged("errors.log", "Reconnect failed")
        self.flag.touch()
        self.chat.platform.tell("close 4009")
        until(lambda: self.logged("errors.log", "Reconnect failed") > failed, "it", PATIENCE)
        self.flag.unlink()
        until(lambda: self.chat.platform.sessions() > sessions, "the session", PATIENCE)


HICCUPS: Mapping[str, Callable[[Bot], None]] = {
    "none": Bot.ask,
    "model-500": lambda bot: bot.model_for_a_while("fail"),
    "model-hangs-up": lambda bot: bot.model_for_a_while("drop"),
    "model-timeout": lambda bot: bot.model_for_a_while("wait"),
    "qq-4009": lambda bot: bot.closed(4009),
    "qq-1006": lambda bot: bot.closed(1001),
    "no-dns": Bot.without_names,
}


def record(folder: Path) -> dict[str, dict[str, bytes]]:
    """Return what each hiccup wrote into each log file."""
    home = folder / "home"
    real_home.make(VERSION, home)
    flag = folder / "no-names"
    with qq.platform(folder) as platform:
        chat_partner.set_up(home, platform)
        handler = home / "hooks" / "loopback" / "handler.py"
        named = handler.read_text().replace(platform.place, f"localhost:{platform.port}")
        support.put(handler, named + NO_NAMES.format(flag=str(flag)))
        bot = Bot(chat_partner.Chat(platform), home, flag)
        platform.tell("model answer")
        before = platform.sessions()
        with gateway(VERSION, home, extra=qq.through(None) | IMPATIENT):
            until(lambda: platform.sessions() > before, "the session")
            time.sleep(1)
            found = {"start": _written(home, {})}
            seen = _sizes(home)
            for name, happens in HICCUPS.items():
                happens(bot)
                bot.ask()
                time.sleep(2)
                found[name] = _written(home, seen)
                seen = _sizes(home)
    return found


def _sizes(home: Path) -> dict[str, int]:
    return {name: (home / "logs" / name).stat().st_size for name in FILES}


def _written(home: Path, before: Mapping[str, int]) -> dict[str, bytes]:
    return {name: (home / "logs" / name).read_bytes()[before.get(name, 0) :] for name in FILES}


def main() -> None:
    """Record and pack."""
    with tempfile.TemporaryDirectory() as place:
        found = record(Path(place))
    KEPT.parent.mkdir(exist_ok=True)
    with tarfile.open(KEPT, "w:xz") as archive:
        for name, files in found.items():
            for file, content in files.items():
                info = tarfile.TarInfo(f"{name}/{file}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))


if __name__ == "__main__":
    main()
