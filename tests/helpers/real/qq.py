"""A real gateway with its real QQ adapter, and a QQ platform on this machine for it to talk to."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import support
from tests.helpers.real.gateways import Running, end, gateway, until
from tools import releases

SCRIPT = Path(__file__).parent / "loopback_qq.py"
HOOK = """
import gateway.platforms.qqbot.adapter as adapter
adapter.API_BASE = "http://{place}"
adapter.TOKEN_URL = "http://{place}/app/getAppAccessToken"
made = adapter.QQAdapter.__init__

def hasty(self, *args, **options):
    made(self, *args, **options)
    self._heartbeat_interval = 1.0  # else half a minute passes before the first one

adapter.QQAdapter.__init__ = hasty

async def handle(event, context):
    pass
"""
APP = f"102{os.getpid() % 1_000_000:06d}"
"""Not that of another test that runs at the same time."""
MANIFEST = "name: loopback\ndescription: QQ on this machine\nevents: [gateway:startup]\n"


@dataclass
class Qq:
    """The platform, and what it said."""

    process: subprocess.Popen[str]
    address: str
    port: int
    said: Path

    @property
    def place(self) -> str:
        """Its address and port."""
        return f"{self.address}:{self.port}"

    def sessions(self) -> int:
        """How often it has given a session."""
        return self.said.read_text().count("session")

    def tell(self, command: str) -> None:
        """Have it do something, and wait until it is done."""
        before = self.said.read_text().count("done")
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        until(lambda: self.said.read_text().count("done") > before, command)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Hold it still: its kernel answers, it does not."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextmanager
def platform(
    folder: Path, address: str = "127.0.0.1", port: int = 0, *, inside: int | None = None
) -> Iterator[Qq]:
    """The platform, up; `inside` the network of a process if named."""
    port = port or _free_port()
    said = folder / f"qq-{address}"
    python = str(releases.python_of("0.19.0"))
    command = [*within(inside), python, "-I", str(SCRIPT), address, str(port)]
    with said.open("w") as output:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, text=True)
    try:
        until(lambda: "ready" in said.read_text() or process.poll() is not None, "the QQ platform")
        assert process.poll() is None
        yield Qq(process, address, port, said)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        end(process)  # type: ignore[arg-type]


@contextmanager
def bot(
    version: str, home: Path, qq: Qq, *, app: str = APP, inside: int | None = None
) -> Iterator[Running]:
    """A gateway whose QQ adapter has a session with the platform."""
    set_up(home, qq, app)
    before = qq.sessions()
    with gateway(
        version, home, extra=through(qq) if inside is None else through(None), inside=inside
    ) as running:
        until(lambda: qq.sessions() > before, "the session")
        yield running


def set_up(home: Path, qq: Qq, app: str = APP) -> None:
    """Settings and a hook that lead the QQ adapter of a home to the platform."""
    support.put(home / "hooks" / "loopback" / "handler.py", HOOK.format(place=qq.place))
    support.put(home / "hooks" / "loopback" / "HOOK.yaml", MANIFEST)
    env = home / ".env"
    support.put(env, env.read_text() + f"QQ_APP_ID={app}\nQQ_CLIENT_SECRET=not-a-secret\n")
    os.utime(env, (1_700_000_000, 1_700_000_000))


def through(qq: Qq | None) -> dict[str, str]:
    """Variables that make the platform the proxy for everything, so that nothing gets out."""
    proxy = f"http://{qq.place}" if qq else ""
    return dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), proxy)


def within(pid: int | None) -> list[str]:
    """What goes before a command that is to run in the network of a process."""
    return [shutil.which("nsenter") or "nsenter", "-t", str(pid), "-n"] if pid else []


@dataclass(frozen=True)
class Network:
    """Two networks with a wire between them: one for gateways, one for what they connect to."""

    near: int
    far: int

    def cut(self, address: str) -> None:
        """Let what is sent to an address vanish without a word, as a dead router does."""
        _run(self.far, f"ip addr del {address}/32 dev wire")


@contextmanager
def network(*addresses: str) -> Iterator[Network]:
    """Networks of their own, with nothing in them but these addresses at the far end."""
    with _empty_network() as near, _empty_network() as far:
        _run(near, f"ip link add wire type veth peer name wire netns {far}")
        for pid, own in ((near, "10.9.0.1"), (far, "10.9.0.2")):
            _run(pid, f"ip addr add {own}/24 dev wire", "ip link set wire up")
        # A machine with containers forwards, also in new networks: the far end would not be silent.
        forward = [*within(far), "tee", "/proc/sys/net/ipv4/ip_forward"]
        subprocess.run(forward, input=b"0", stdout=subprocess.DEVNULL, check=True)
        for address in addresses:
            _run(far, f"ip addr add {address}/32 dev wire")
            _run(near, f"ip route add {address}/32 via 10.9.0.2")
        yield Network(near, far)


@contextmanager
def _empty_network() -> Iterator[int]:
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "ip link set lo up && echo ready && exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        yield holder.pid
    finally:
        holder.communicate()  # ends it: its input is closed


def _run(pid: int, *commands: str) -> None:
    for command in commands:
        subprocess.run([*within(pid), *command.split()], check=True)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
