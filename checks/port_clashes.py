"""Check that no two platforms, or gateways of several profiles, listen on the same port."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Home,
    Probes,
    Severity,
    Skip,
    check,
    doors,
    snapshot,
    text,
    usual_ports,
    world_of,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Door, World

_MOST = 20
"""Number of other profiles that are examined."""


@check(id="port-clashes", group="platforms", codes=["PLATFORM-PORT-CLASH"], by_release=True)
def port_clashes(probes: Probes) -> Iterator[Finding]:
    """Does every platform listen on its own port?"""
    own = list(doors(probes.resolved().world))
    if not own:
        raise Skip("no platform that listens is set up")
    taken: dict[int, Door] = {}
    for door in own:
        other = taken.setdefault(door.port, door)
        if other is not door:
            yield _same_gateway(probes, other, door, {one.port for one in own})
    if probes.home.profile or not _is_shared(probes.resolved().world):
        yield from _profiles(probes, own)


def _is_shared(world: World) -> bool:
    """Return whether one gateway serves all profiles, which then open no ports themselves."""
    gateway = world.raw.get("gateway")
    setting = gateway.get("multiplex_profiles") if isinstance(gateway, dict) else None
    setting = (
        setting or world.raw.get("multiplex_profiles") or world.getenv("GATEWAY_MULTIPLEX_PROFILES")
    )
    return bool(setting) and str(setting).lower() not in ("false", "0", "no", "off")


def _same_gateway(probes: Probes, first: Door, second: Door, used: set[int]) -> Finding:
    movable = second if second.variable or second.key else first
    free = _free(probes, movable, used)
    return Finding(
        code="PLATFORM-PORT-CLASH",
        severity=Severity.ERROR,
        title=text(
            "{first} and {second} both use port {port}",
            first=first.label,
            second=second.label,
            port=first.port,
        ),
        subject=f"{first.platform} {second.platform}",
        detail=text(
            "Only the first to start gets the port; the other receives nothing. The fix sets "
            "{setting} to {port}.",
            setting=_setting(movable),
            port=free,
        ),
        evidence=tuple(_evidence(one) for one in (first, second)),
        fix="move-port",
        data={"variable": movable.variable, "path": _path(movable), "port": free},
        next="Give the new port to every program that connects to it.",
    )


def _free(probes: Probes, door: Door, used: set[int]) -> int:
    """Return the next port that is unused and is not the default port of a platform."""
    heard = {one.local[1] for one in probes.listeners(os.getpid())}
    busy = used | heard | usual_ports()
    return next(port for port in range(door.port + 1, 65536) if port not in busy)


def _profiles(probes: Probes, own: list[Door]) -> Iterator[Finding]:
    """Report other profiles whose gateways would listen on the same ports."""
    release = probes.resolved().world.release
    for home in _beside(probes.home)[:_MOST]:
        try:
            world = world_of(home, release)
        except CouldNotLook:
            continue
        if home.profile is None and _is_shared(world):
            return
        theirs = {door.port: door for door in doors(world)}
        for door in own:
            same = theirs.get(door.port)
            if same is None:
                continue
            used = snapshot(home / "gateway_state.json").kind == "file"
            who = f"profile {home.profile}" if home.profile else "the root home"
            yield Finding(
                code="PLATFORM-PORT-CLASH",
                severity=Severity.WARNING if used else Severity.INFO,
                title=text(
                    "{door} and {same} of {home} both use port {port}",
                    door=door.label,
                    same=same.label,
                    home=who,
                    port=door.port,
                ),
                subject=f"{door.platform} {home.profile or 'root'}",
                detail=(
                    "If both gateways run, only the first to start gets the port; the other "
                    "platform receives nothing."
                    if used
                    else "Their gateways cannot run at the same time with these settings."
                ),
                evidence=(_evidence(door), Evidence(who, f"{same.label}: port {same.port}")),
                fix="move-port",
                data={
                    "variable": door.variable,
                    "path": _path(door),
                    "port": _free(probes, door, {*theirs, *(one.port for one in own)}),
                },
            )


def _beside(home: Home) -> list[Home]:
    root = Home(home.path.parent.parent) if home.profile else home
    try:
        paths = [root.path, *root.profiles()]
    except CouldNotLook:
        return []
    return [Home(path) for path in paths if path != home.path]


def _setting(door: Door) -> str:
    return door.variable or ".".join(_path(door))


def _path(door: Door) -> tuple[str, ...]:
    return ("platforms", door.platform, "extra", door.key or "port")


def _evidence(door: Door) -> Evidence:
    return Evidence(door.place, f"{door.label}: port {door.port}")
