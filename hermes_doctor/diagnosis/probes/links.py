"""Decide whether platforms of a running gateway are connected: by its connections and its log.

The state file keeps the states of all platforms across restarts, so only those count that this
process has written since it started. The gateway calls some platforms connected before their
server has accepted the login, so the lines of the platform's adapter count, too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.message import shorten
from hermes_doctor.core.model import CouldNotLook, Gateway
from hermes_doctor.core.redaction import redact_log_text
from hermes_doctor.core.system import limits
from hermes_doctor.core.system.files import read
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from hermes_doctor.hermes.processes.runtime_files import PlatformState, Runtime
from hermes_doctor.hermes.processes.sockets import Connection, unmap_ipv4
from hermes_doctor.hermes.settings.platforms import ALWAYS_CONNECTED, Platform
from hermes_doctor.hermes.settings.urls import Endpoint

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.probes.log_tails import GatewayLogLine
    from hermes_doctor.hermes.processes.runtime_files import PlatformState

SURE = ("address", "network", "proxy", "tunnel")
LIKELY = ("likely", "elsewhere")
"""`likely`: a platform's port, its network is unknown. `elsewhere`: outside its known network."""
PATIENCE = 3.0
"""Seconds that a platform may be without a connection."""
_TRIES = 3
STUCK = 15.0
"""Retransmissions and seconds without acknowledgement after which a connection is dead."""


class PlatformConnections(NamedTuple):
    """The connections of one platform."""

    platform: Platform
    how: str | None
    """A word of SURE or LIKELY; None if no connection could belong to it."""
    connections: tuple[Connection, ...]
    """The established connections with the highest certainty."""
    trying: int
    """The number of connections that were not answered yet."""

    @property
    def sure(self) -> bool:
        """Whether these connections certainly belong to the platform."""
        return self.how in SURE

    def dead_for(self) -> tuple[float, str] | None:
        """Return for how many seconds its connections have been dead, and what shows it.

        A connection with unacknowledged bytes is dead unless another one received data since. If
        nothing was sent, all connections must be quiet for longer than this platform ever is,
        because idle connections in a pool prove nothing.
        """
        stuck = [one for one in self.connections if one.unsent and one.tries >= _TRIES]
        longest = max((one.silent or 0.0 for one in stuck), default=0.0)
        if longest >= STUCK:
            if any(one.quiet is not None and one.quiet < longest - 1 for one in self.connections):
                return None
            bytes = sum(one.unsent for one in stuck)
            return longest, f"{bytes} bytes have not been acknowledged"
        after = self.platform.quiet_after
        quiet = [one.quiet for one in self.connections]
        if after is None or not quiet or any(one is None or one <= after for one in quiet):
            return None
        return min(one for one in quiet if one is not None), "nothing has come in"


def assign(
    platforms: Sequence[Platform],
    connections: Iterable[Connection],
    *,
    providers: Iterable[Endpoint] = (),
    addresses: Mapping[str, frozenset[str]] | None = None,
) -> list[PlatformConnections]:
    """Return each platform with a held connection, with the connections that belong to it.

    `providers` are the addresses of model providers, whose connections belong to no platform;
    `addresses` are the resolved host names, where they were resolved.
    """
    found = list(connections)
    listening = {one.local[1] for one in found if one.state == "LISTEN"}
    outgoing = [one for one in found if one.remote and one.local[1] not in listening]
    known = {**_hosts(), **(addresses or {})}
    foreign = {
        (ip, endpoint.port) for endpoint in providers for ip in _addresses(endpoint.host, known)
    }
    links = []
    for platform in platforms:
        if platform.link != ALWAYS_CONNECTED:
            continue
        rest = [one for one in platforms if one is not platform and one.link == ALWAYS_CONNECTED]
        groups: dict[str, list[Connection]] = {}
        for connection in outgoing:
            how = _how(connection, platform, rest, known, foreign)
            if how:
                groups.setdefault(how, []).append(connection)
        links.append(_link(platform, groups))
    return links


def _link(platform: Platform, groups: Mapping[str, list[Connection]]) -> PlatformConnections:
    waiting = {how: sum(one.state == "SYN_SENT" for one in some) for how, some in groups.items()}
    trying = sum(waiting.get(how, 0) for how in SURE) or sum(waiting.values())
    for how in (*SURE, *LIKELY):
        live = tuple(one for one in groups.get(how, ()) if one.state == "ESTABLISHED")
        if live:
            return PlatformConnections(platform, how, live, trying)
    return PlatformConnections(platform, None, (), trying)


def _how(
    connection: Connection,
    platform: Platform,
    rest: Sequence[Platform],
    known: Mapping[str, frozenset[str]],
    foreign: set[tuple[str, int]],
) -> str | None:
    assert connection.remote is not None
    ip, port = connection.remote
    if _at(connection, platform.endpoints, known):
        return "address"
    if not platform.moved and platform.network and network_of(ip) == platform.network:
        return "network"
    if any(
        port == proxy.port and ip in _addresses(proxy.host, known) for proxy in platform.proxies
    ):
        return "proxy"
    if (ip, port) in foreign or any(_at(connection, other.endpoints, known) for other in rest):
        return None
    if network_of(ip) in {other.network for other in rest if other.network}:
        return None
    if network_of(ip) == "tunnel":
        return "tunnel"
    if platform.network:
        return "elsewhere"
    ports = {end.port for end in platform.endpoints} or {443}
    return "likely" if port in ports and not (ip.startswith("127.") or ip == "::1") else None


def _at(
    connection: Connection, ends: Iterable[Endpoint], known: Mapping[str, frozenset[str]]
) -> bool:
    assert connection.remote is not None
    ip, port = connection.remote
    return any(port == end.port and ip in _addresses(end.host, known) for end in ends)


def _addresses(host: str, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Resolve a name without DNS: an address, this machine, or /etc/hosts."""
    if host in known:
        return known[host]
    return frozenset({unmap_ipv4(host)}) if host[:1].isdigit() or ":" in host else frozenset()


@cache
def _hosts() -> Mapping[str, frozenset[str]]:
    """Read the names that this machine resolves by itself."""
    from pathlib import Path

    found: dict[str, set[str]] = {"localhost": {"127.0.0.1", "::1"}}
    try:
        text = read(Path("/etc/hosts"), 1024 * 1024)[0].decode("utf-8", "replace")
    except (CouldNotLook, FileNotFoundError):
        text = ""
    for line in text.splitlines():
        ip, *names = line.partition("#")[0].split() or [""]
        for name in names:
            found.setdefault(name.lower(), set()).add(unmap_ipv4(ip))
    return {name: frozenset(ips) for name, ips in found.items()}


@cache
def network_of(ip: str) -> str | None:
    """Return the known network that an address is in."""
    number, bits = _number(ip)
    for name, wide, start, end in _ranges():
        if wide == bits and start <= number <= end:
            return name
    return None


@cache
def _ranges() -> tuple[tuple[str, int, int, int], ...]:
    """Return every known range as integers, many times faster than `ipaddress` objects."""
    found = []
    for name, facts in load_knowledge("networks").items():
        for part in facts["lists"]:
            for text in part["ranges"]:
                base, _, length = text.partition("/")
                start, bits = _number(base)
                found.append((name, bits, start, start | ((1 << (bits - int(length))) - 1)))
    return tuple(found)


def _number(ip: str) -> tuple[int, int]:
    import socket

    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    try:
        data = socket.inet_pton(family, ip.partition("%")[0])
    except OSError:
        return -1, 0
    return int.from_bytes(data, "big"), len(data) * 8


def wait_for_links(
    get_connections: Callable[[], list[Connection]],
    sort: Callable[[list[Connection]], list[PlatformConnections]],
    expected: Collection[str],
) -> list[PlatformConnections]:
    """Repeat the check for a few seconds while an expected connection is missing.

    A platform that reconnects is without a connection for some seconds, which is not a fault.
    """
    end = time.monotonic() + limits.stretch(PATIENCE)
    while True:
        links = sort(get_connections())
        lost = any(link.how is None for link in links if link.platform.name in expected)
        if not lost or time.monotonic() >= end:
            return links
        time.sleep(0.25)


_SLACK = timedelta(seconds=2)
"""The clocks of the kernel and of the file may differ by this much."""


def own_states(runtime: Runtime, gateway: Gateway) -> Mapping[str, PlatformState] | None:
    """Return this process's states by platform; None if another process wrote the file."""
    if runtime.state_owner is None or runtime.state_owner.pid != gateway.pid:
        return None
    since = gateway.started_at - _SLACK
    return {
        name: said
        for name, said in runtime.platforms.items()
        if said.updated_at is not None and said.updated_at >= since
    }


READY = {"qqbot": pattern(r"\[QQBot:[^\]]*\] (Ready, session_id=|Session resumed)")}
"""Platforms that log a line when their server has accepted the login."""
BROKEN = {
    "qqbot": pattern(r"\[QQBot:[^\]]*\] (WebSocket (closed|error)|Max reconnect|Bot is )"),
    "weixin": pattern(r"\[Weixin\] .{0,40}?(poll error|getUpdates failed|Session expired)"),
}
"""What their adapters log when the connection is lost, while the gateway calls them connected."""
RECONNECTING = timedelta(minutes=1)
"""A connection that was lost is usually back by then."""
_HEAD = pattern(r"\[[^\]]{1,60}\] ")
_LEVELS = ("WARNING", "ERROR", "CRITICAL")
_LONG = 120
"""Characters of a reason."""


class PlatformProof(NamedTuple):
    """Whether a platform is connected and, if not, why not."""

    connected: bool
    reason: str = ""
    since: datetime | None = None
    """When a connection that the gateway still reports was lost."""
    final: bool = False
    """Whether waiting cannot change it."""

    @property
    def is_reconnecting(self) -> bool:
        """Whether the connection was lost so recently that it is probably back soon."""
        if self.connected or self.since is None:
            return False
        return datetime.now(UTC) - self.since < RECONNECTING


def prove(
    name: str, claim: PlatformState | None, words: Sequence[GatewayLogLine], *, running: bool
) -> PlatformProof:
    """Judge a platform by what this gateway process reported and logged since it started.

    `running`: the gateway says that its start is complete.
    """
    own = [word for word in words if name in word.logger]
    if claim is None:
        return PlatformProof(False, "the gateway has not started it", final=running)
    if claim.state != "connected":
        ended = claim.state in ("fatal", "paused", "disabled")
        return PlatformProof(False, _reason(own, claim), final=ended)
    ready, broken = READY.get(name), BROKEN.get(name)
    lost: GatewayLogLine | None = None
    accepted = ready is None
    for word in words:
        if word.text.startswith(f"inbound message: platform={name} ") or (
            ready is not None and name in word.logger and ready.match(word.text)
        ):
            accepted, lost = True, None
        elif broken is not None and name in word.logger and broken.match(word.text):
            lost = lost or word
    if lost is not None:
        return PlatformProof(False, _reason(own, claim), lost.at)
    if not accepted:
        return PlatformProof(False, "its server has not accepted the login yet", claim.updated_at)
    return PlatformProof(True)


def _reason(own: Sequence[GatewayLogLine], claim: PlatformState) -> str:
    """The platform's own reason: the last warning of its adapter, else what the gateway reports."""
    for word in reversed(own):
        if word.level in _LEVELS:
            return _shown(_HEAD.sub("", word.text, count=1))
    return _shown(claim.error_message or "") or claim.state


def _shown(text: str) -> str:
    return shorten(redact_log_text(re.sub(r"\s+", " ", text[:2000])), _LONG).strip()
