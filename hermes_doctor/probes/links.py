"""Which connection of a gateway belongs to which platform, and how sure that is."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.processes.connection import Connection
from hermes_doctor.processes.sockets import plain
from hermes_doctor.settings.platforms import HELD, Endpoint, Platform
from hermes_doctor.system import time_limits

SURE = ("address", "network", "proxy", "tunnel")
LIKELY = ("likely", "elsewhere")
"""`likely`: at the port of a platform whose network is not known. `elsewhere`: outside a network
that is known."""
PATIENCE = 3.0
"""Seconds that a platform may be without a connection."""
_TRIES = 3
STUCK = 15.0
"""How often and for how many seconds the kernel sends the same bytes before a link is dead."""


class Link(NamedTuple):
    """What a platform has of the gateway's connections."""

    platform: Platform
    how: str | None
    """One word of SURE or LIKELY; None when there is nothing that could be its."""
    connections: tuple[Connection, ...]
    """The established ones that are most surely its."""
    trying: int
    """Connections to it that are not answered yet."""

    @property
    def sure(self) -> bool:
        """Whether these connections are its own beyond doubt."""
        return self.how in SURE

    def dead_for(self) -> tuple[float, str] | None:
        """For how many seconds its connections have been dead, and how that shows.

        One whose bytes nobody acknowledges is dead, unless another had data since; none that
        waits in a pool proves anything. Where nothing was sent, all of them must be quiet for
        longer than this platform ever is.
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
    others: Iterable[Endpoint] = (),
    addresses: Mapping[str, frozenset[str]] | None = None,
) -> list[Link]:
    """Each held platform with the connections that are its.

    `others` are the addresses of model providers, whose connections are no platform's;
    `addresses` are what host names lead to, where that was asked.
    """
    found = list(connections)
    listening = {one.local[1] for one in found if one.state == "LISTEN"}
    outgoing = [one for one in found if one.remote and one.local[1] not in listening]
    known = {**_hosts(), **(addresses or {})}
    foreign = {(ip, one.port) for one in others for ip in _addresses(one.host, known)}
    links = []
    for platform in platforms:
        if platform.link != HELD:
            continue
        rest = [one for one in platforms if one is not platform and one.link == HELD]
        groups: dict[str, list[Connection]] = {}
        for one in outgoing:
            how = _how(one, platform, rest, known, foreign)
            if how:
                groups.setdefault(how, []).append(one)
        links.append(_link(platform, groups))
    return links


def _link(platform: Platform, groups: Mapping[str, list[Connection]]) -> Link:
    trying = sum(
        one.state == "SYN_SENT" for how, some in groups.items() if how in SURE for one in some
    ) or sum(one.state == "SYN_SENT" for some in groups.values() for one in some)
    for how in (*SURE, *LIKELY):
        live = tuple(one for one in groups.get(how, ()) if one.state == "ESTABLISHED")
        if live:
            return Link(platform, how, live, trying)
    return Link(platform, None, (), trying)


def _how(
    one: Connection,
    platform: Platform,
    rest: Sequence[Platform],
    known: Mapping[str, frozenset[str]],
    foreign: set[tuple[str, int]],
) -> str | None:
    assert one.remote is not None
    ip, port = one.remote
    if _at(one, platform.endpoints, known):
        return "address"
    if not platform.moved and platform.network and network_of(ip) == platform.network:
        return "network"
    if any(
        port == proxy.port and ip in _addresses(proxy.host, known) for proxy in platform.proxies
    ):
        return "proxy"
    if (ip, port) in foreign or any(_at(one, other.endpoints, known) for other in rest):
        return None
    if network_of(ip) in {other.network for other in rest if other.network}:
        return None
    if network_of(ip) == "tunnel":
        return "tunnel"
    if platform.network:
        return "elsewhere"
    ports = {end.port for end in platform.endpoints} or {443}
    return "likely" if port in ports and not _is_local(ip) else None


def _at(one: Connection, ends: Iterable[Endpoint], known: Mapping[str, frozenset[str]]) -> bool:
    assert one.remote is not None
    ip, port = one.remote
    return any(port == end.port and ip in _addresses(end.host, known) for end in ends)


def _addresses(host: str, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """What a name leads to without asking anybody: itself, this machine, or /etc/hosts."""
    if host in known:
        return known[host]
    return frozenset({plain(host)}) if host[:1].isdigit() or ":" in host else frozenset()


@cache
def _hosts() -> Mapping[str, frozenset[str]]:
    """The names that this machine knows by itself."""
    from pathlib import Path

    from hermes_doctor.model import CouldNotLook
    from hermes_doctor.system.files import read

    found: dict[str, set[str]] = {"localhost": {"127.0.0.1", "::1"}}
    try:
        text = read(Path("/etc/hosts"), 1024 * 1024)[0].decode("utf-8", "replace")
    except (CouldNotLook, FileNotFoundError):
        text = ""
    for line in text.splitlines():
        ip, *names = line.partition("#")[0].split() or [""]
        for name in names:
            found.setdefault(name.lower(), set()).add(plain(ip))
    return {name: frozenset(ips) for name, ips in found.items()}


def _is_local(ip: str) -> bool:
    return ip.startswith("127.") or ip == "::1"


@cache
def network_of(ip: str) -> str | None:
    """The known network that an address lies in."""
    number, bits = _number(ip)
    for name, wide, start, end in _ranges():
        if wide == bits and start <= number <= end:
            return name
    return None


@cache
def _ranges() -> tuple[tuple[str, int, int, int], ...]:
    """Every known range as numbers, which is many times faster than objects for each."""
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


def watch(
    look: Callable[[], list[Connection]],
    sort: Callable[[list[Connection]], list[Link]],
    held: Collection[str],
) -> list[Link]:
    """Look again for a moment while a platform that should be connected is not.

    One that has just lost its connection and takes it up again is without it for some seconds,
    and that is no fault.
    """
    end = time.monotonic() + time_limits.stretched(PATIENCE)
    while True:
        found = sort(look())
        lost = any(one.how is None for one in found if one.platform.name in held)
        if not lost or time.monotonic() >= end:
            return found
        time.sleep(0.25)
