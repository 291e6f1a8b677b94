"""Without `--network` nothing leaves the machine; with it, only what the settings name is asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import support

GUARD = """
import sys

SAID = sys.argv.pop(1)

def watch(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        place = args[1] if event in ("socket.connect", "socket.sendto") else args[0]
        with open(SAID, "a") as file:
            file.write(f"{event} {place!r}\\n")
        if event == "socket.getaddrinfo" and place not in ("127.0.0.1", "localhost"):
            raise OSError("a test does not ask name servers")

sys.addaudithook(watch)
from hermes_doctor.__main__ import main
main()
"""
ENV = """QQ_APP_ID=102000001
QQ_CLIENT_SECRET=not-a-secret
TELEGRAM_BOT_TOKEN=123456:not-a-token
DISCORD_BOT_TOKEN=not-a-token
SLACK_BOT_TOKEN=x
FEISHU_APP_ID=x
FEISHU_APP_SECRET=y
API_SERVER_KEY=not-a-key-but-long-enough
GATEWAY_HEALTH_URL=https://gateway.example/health
"""


def heard(home: Path, *args: str) -> list[str]:
    """What a command tried to reach."""
    said = home.parent / "said"
    said.write_text("")
    subprocess.run(
        [sys.executable, "-c", GUARD, str(said), *args, "--home", str(home)],
        capture_output=True,
        timeout=60,
        cwd=Path(support.__file__).parents[2],
    )
    return [line for line in said.read_text().splitlines() if not _stays(line)]


def _stays(line: str) -> bool:
    """Loopback, local sockets, and the kernel."""
    return any(
        word in line for word in ("'127.", "'::1'", "'localhost'", "(0, 0)", "b'\\x00", "'/")
    )


@pytest.fixture
def busy(home: Path) -> Path:
    """A home with many platforms and a provider."""
    support.put(home / ".env", ENV)
    return home


@pytest.mark.sampled
@pytest.mark.parametrize("command", [("check", "--json"), ("check", "--deep"), ("fix",)])
def test_nothing_leaves(busy: Path, command: tuple[str, ...]) -> None:
    """No name is asked for and nobody is called."""
    assert heard(busy, *command) == []


def test_network_asks(busy: Path) -> None:
    """With the option each host that the settings name is asked for, once."""
    names = [line.split("'")[1] for line in heard(busy, "check", "--network")]

    assert sorted(names) == sorted(
        {
            "api.sgroup.qq.com",
            "bots.qq.com",
            "api.telegram.org",
            "discord.com",
            "gateway.example",
            "gateway.discord.gg",
            "slack.com",
            "wss-primary.slack.com",
            "open.feishu.cn",
            "openrouter.ai",
        }
    )


def test_network_finds(busy: Path, tmp_path: Path) -> None:
    """What cannot be reached is a finding of `check --network` and of nothing else."""
    said = tmp_path / "said"
    words = ("check", "--json", "--network", "--only", "connections")
    done = subprocess.run(
        [sys.executable, "-c", GUARD, str(said), *words, "--home", str(busy)],
        capture_output=True,
        text=True,
        cwd=Path(support.__file__).parents[2],
    )

    [finding] = [one for one in json.loads(done.stdout)["findings"] if one["code"] == "NET-DNS"]
    assert finding["title"].startswith("no platform and no provider can be reached")
