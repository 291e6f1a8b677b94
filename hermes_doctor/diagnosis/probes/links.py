"""Assign a gateway's network connections to its platforms, with how sure that is."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.system import time_limits
from hermes_doctor.hermes.knowledge.data import load_knowledge
from hermes_doctor.hermes.processes.sockets import Connection, unmap_ipv4
from hermes_doctor.hermes.settings.network_endpoints import Endpoint
from hermes_doctor.hermes.settings.platforms import ALWAYS_CONNECTED, Platform

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
        stuck = [
            connection
            for connection in self.connections
            if connection.unsent and connection.tries >= _TRIES
        ]
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
    trying = sum(
        connection.state == "SYN_SENT"
        for how, some in groups.items()
        if how in SURE
        for connection in some
    ) or sum(one.state == "SYN_SENT" for some in groups.values() for one in some)
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
    return "likely" if port in ports and not _is_local(ip) else None


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

    from hermes_doctor.core.model import CouldNotLook
    from hermes_doctor.core.system.files import read

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


def _is_local(ip: str) -> bool:
    return ip.startswith("127.") or ip == "::1"


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
    end = time.monotonic() + time_limits.stretch(PATIENCE)
    while True:
        findings = sort(get_connections())
        lost = any(
            platform_connections.how is None
            for platform_connections in findings
            if platform_connections.platform.name in expected
        )
        if not lost or time.monotonic() >= end:
            return findings
        time.sleep(0.25)
