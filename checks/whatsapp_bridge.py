"""Check that WhatsApp is paired with a phone and that Node.js and its bridge are installed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    Block,
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    check,
    read_json,
    snapshot,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Packages

_BUSY = 10.0
_SESSIONS = ("whatsapp/session", "platforms/whatsapp/session")
_SCRIPT = ("scripts", "whatsapp-bridge", "bridge.js")


@check(
    id="whatsapp-bridge",
    group="platforms",
    codes=["WA-NOT-PAIRED", "WA-NO-BRIDGE"],
    by_release=True,
    needs="platform:whatsapp",
)
def whatsapp_bridge(probes: Probes) -> Iterator[Finding]:
    """Is WhatsApp paired, and is its bridge installed?"""
    found = probes.resolved()
    block = Block(found.world, "whatsapp")
    yield from _login(probes, block)
    yield from _script(probes, block)
    node = probes.program("node")
    if node.path is None:
        yield Finding(
            code="WA-NO-BRIDGE",
            severity=Severity.ERROR if node.sure else Severity.WARNING,
            title="Node.js, which WhatsApp needs, was not found",
            subject="node",
            detail=(
                "Nobody on WhatsApp gets an answer: the bridge to WhatsApp does not run without "
                "Node.js."
                if node.sure
                else "Nobody on WhatsApp gets an answer, unless a service that hermes-doctor "
                "cannot "
                "read has a PATH with Node.js."
            ),
            evidence=(Evidence("PATH", "node is not found"),),
            data={"platform": "whatsapp"},
            next=(
                "Install Node.js, or add its folder to PATH of the gateway's service, then restart "
                "the gateway."
            ),
        )


def _login(probes: Probes, block: Block) -> Iterator[Finding]:
    path = _session(probes, block) / "creds.json"
    name = probes.home.name_of(path)
    try:
        fault = _fault(path)
    except CouldNotLook:
        return
    if fault:
        yield Finding(
            code="WA-NOT-PAIRED",
            severity=Severity.ERROR,
            title="WhatsApp is not paired with a phone",
            subject="whatsapp",
            detail="Nobody on WhatsApp gets an answer.",
            evidence=(Evidence(name, fault),),
            next="Run `hermes whatsapp`, scan the code with the phone, then restart the gateway.",
            data={"platform": "whatsapp"},
        )


def _session(probes: Probes, block: Block) -> Path:
    """Return the folder of the login; like Hermes, prefer the old one if it exists."""
    named = block.value("session_path")
    if named:
        return Path(named).expanduser()
    old, new = (probes.home / one for one in _SESSIONS)
    return old if snapshot(old).kind != "absent" else new


def _fault(path: Path) -> str | None:
    taken = snapshot(path)
    if taken.kind == "absent":
        return "does not exist"
    if time.time() - taken.mtime_ns / 1e9 < _BUSY:
        return None  # the bridge may be writing it now
    try:
        said = read_json(path)
    except ValueError:
        return "is empty or cut off"
    if not isinstance(said, dict) or not said:
        return "contains no login"
    return "contains no account: pairing did not finish" if not said.get("me") else None


def _script(probes: Probes, block: Block) -> Iterator[Finding]:
    named = block.value("bridge_script")
    packages = probes.packages()
    if named:
        places = [Path(named).expanduser()]
    elif packages is None or "gateway" not in packages.names:
        return  # a git checkout contains the bridge
    else:
        places = [one.joinpath(*_SCRIPT) for one in _roots(probes, packages)]
    if any(snapshot(place).kind in ("file", "symlink") for place in places):
        return
    yield Finding(
        code="WA-NO-BRIDGE",
        severity=Severity.ERROR,
        title="the WhatsApp bridge is not installed",
        subject="bridge.js",
        detail=(
            "Nobody on WhatsApp gets an answer."
            if named
            else "Nobody on WhatsApp gets an answer. Hermes packages from PyPI do not contain the "
            "bridge."
        ),
        evidence=tuple(Evidence(str(place), "does not exist") for place in places),
        data={"platform": "whatsapp"},
        next=(
            "Correct bridge_script in config.yaml, then restart the gateway."
            if named
            else "Install Hermes with git, or copy its scripts/whatsapp-bridge and set "
            "platforms.whatsapp.extra.bridge_script to bridge.js."
        ),
    )


def _roots(probes: Probes, packages: Packages) -> list[Path]:
    """Return the folders in which a release looks; from 0.18 on also the home."""
    newer = probes.resolved().world.release.since(0, 18)
    return [packages.folder, *([probes.home.path] if newer else [])]
