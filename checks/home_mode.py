"""Check that other users cannot enter the home and that the gateway runs as its owner."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    Snapshot,
    check,
    count,
    shorten,
    snapshot,
    spoken,
    text,
)

_INSIDE = ("state.db", "logs/gateway.log", "logs/agent.log", "kanban.db")
_MEANT = ("HERMES_HOME_MODE", "HERMES_SKIP_CHMOD", "HERMES_CONTAINER")


@check(id="home-mode", group="secrets", codes=["PERM-SECRETS", "PERM-OWNER"])
def home_mode(probes: Probes) -> Iterator[Finding]:
    """Can only the gateway's user enter the home?"""
    home = snapshot(probes.home.path)
    if home.kind != "directory":
        raise Skip("the home is not a real folder")
    yield from _mode(probes, home.mode)
    user = probes.gateway_user()
    if probes.is_home_closed():
        yield _closed(probes, home, user.uid)
    elif probes.gateways() and user.uid != home.uid:
        yield Finding(
            code="PERM-OWNER",
            severity=Severity.INFO,
            title="the gateway does not run as the owner of its home",
            subject="the home",
            detail=(
                "New files belong to the user of the gateway, so the owner of the home cannot "
                "read them."
            ),
            evidence=(
                Evidence(str(probes.home.path), f"owner {home.uid}"),
                Evidence(f"process {probes.gateways()[0].pid}", f"runs as {user.uid}"),
            ),
            next="Run the gateway as the owner of the home: set `User=` in its unit.",
        )


def _closed(probes: Probes, home: Snapshot, uid: int) -> Finding:
    """Report that the user of a container may not enter or change the home."""
    owner = probes.supervision().owner
    assert owner is not None
    state = owner.settings.get("Status", owner.state)
    output = probes.container_output()
    return Finding(
        code="PERM-OWNER",
        severity=Severity.ERROR,
        title="the user of the container may not write to the home",
        subject="the home",
        detail=text(
            "Nobody gets an answer. The gateway in the container {name} cannot start, because its "
            "volume belongs to another user.",
            name=owner.name,
        ),
        evidence=(
            Evidence(
                owner.name,
                text(
                    "runs as {uid}; {state}, restarted {times}",
                    uid=uid,
                    state=state,
                    times=count(owner.number("NRestarts"), "time"),
                ),
            ),
            Evidence(str(probes.home.path), f"owner {home.uid}, mode {home.mode:04o}"),
            *(
                (Evidence(f"docker logs {owner.name}", shorten(spoken(output), 160)),)
                if output
                else ()
            ),
        ),
        next=text(
            "Run `sudo chown -R {uid} {folder}`; the container then starts by itself.",
            uid=uid,
            folder=shlex.quote(str(probes.home.path)),
        ),
        data={"uid": uid},
    )


def _mode(probes: Probes, mode: int) -> Iterator[Finding]:
    others, group = probes.open_to()
    bit = 0o004 if others else 0o040
    if not others and not group:
        return
    files = [name for name in _INSIDE if snapshot(probes.home / name).mode & bit]
    if not files or any(probes.settings().value(name) for name in _MEANT):
        return
    yield Finding(
        code="PERM-SECRETS",
        severity=Severity.WARNING if others else Severity.INFO,
        title=(
            "every user of this machine can read conversations and logs"
            if others
            else "the group of the home can read conversations and logs"
        ),
        subject="the home",
        detail="Hermes relies on a home folder that only its owner can enter.",
        evidence=(
            Evidence(str(probes.home.path), f"mode {mode:04o}"),
            Evidence(files[0], "readable by every user" if others else "readable by the group"),
        ),
        next=text("Run `chmod 700 {folder}`.", folder=probes.home.path),
    )
