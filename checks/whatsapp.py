"""Check the bridge that connects WhatsApp, and what it wrote last."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    snapshot,
    text,
)
from hermes_doctor.api.gateway import Packages
from hermes_doctor.api.settings import PlatformBlock
from hermes_doctor.api.stores import redact_log_text
from hermes_doctor.api.tools import NamedTuple, pattern, read_json

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
    resolved = probes.settings.resolved()
    block = PlatformBlock(resolved.world, "whatsapp")
    yield from _login(probes, block)
    yield from _script(probes, block)
    node = probes.settings.program("node")
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


def _login(probes: Probes, block: PlatformBlock) -> Iterator[Finding]:
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


def _session(probes: Probes, block: PlatformBlock) -> Path:
    """Return the folder of the login; like Hermes, prefer the old one if it exists."""
    named = block.value("session_path")
    if named:
        return Path(named).expanduser()
    old, new = (probes.home / session for session in _SESSIONS)
    return old if snapshot(old).kind != "absent" else new


def _fault(path: Path) -> str | None:
    taken = snapshot(path)
    if taken.kind == "absent":
        return "does not exist"
    if time.time() - taken.mtime_ns / 1e9 < _BUSY:
        return None  # the bridge may be writing it now
    try:
        json = read_json(path)
    except ValueError:
        return "is empty or cut off"
    if not isinstance(json, dict) or not json:
        return "contains no login"
    return "contains no account: pairing did not finish" if not json.get("me") else None


def _script(probes: Probes, block: PlatformBlock) -> Iterator[Finding]:
    named = block.value("bridge_script")
    packages = probes.hermes.packages()
    if named:
        places = [Path(named).expanduser()]
    elif packages is None or "gateway" not in packages.names:
        return  # a git checkout contains the bridge
    else:
        places = [root.joinpath(*_SCRIPT) for root in _roots(probes, packages)]
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
    newer = probes.settings.resolved().world.release.since(0, 18)
    return [packages.folder, *([probes.home.path] if newer else [])]


_FOLDERS = ("whatsapp", "platforms/whatsapp")
_WORKS = pattern(r"WhatsApp connected!")
_PACKAGE = pattern(r"Cannot find (?:package|module) '([\w@./-]{1,120})'")
_PORT = pattern(r"EADDRINUSE\b.{0,60}?:(\d{2,5})\b")
_LOGGED_OUT = pattern(r"Logged out\. Delete session and restart")
_CLOSED = pattern(r"Connection closed \(reason: (\w{1,20})\)")
_ERROR = pattern(r"^((?:\w{1,30})?Error(?: \[\w{1,40}\])?: [^\n]{1,160})\n {1,8}at ", re.MULTILINE)
"""Followed by the places in the code, as Node.js prints an error that ends it."""
_OLD = timedelta(days=3)
_OFTEN = 5
"""Lost connections in a row; one or two are normal."""


class _Reason(NamedTuple):
    """Why the bridge does not run."""

    title: str
    quote: str
    step: str
    code: str = "WA-BRIDGE"


@check(
    id="whatsapp-output",
    group="platforms",
    codes=["WA-BRIDGE", "WA-NOT-PAIRED"],
    needs="platform:whatsapp",
)
def whatsapp_output(probes: Probes) -> Iterator[Finding]:
    """Did the WhatsApp bridge end without an error?"""
    for gateway in probes.gateway.running():
        claim = (probes.gateway.claims(gateway) or {}).get("whatsapp")
        if claim is not None and claim.state == "connected":
            return
    written = [(at, path) for path in _logs(probes) if (at := probes.files.modified(path))]
    if not written:
        raise Skip("the WhatsApp bridge has not run yet")
    at, path = max(written)
    if datetime.now(UTC) - at > _OLD:
        raise Skip("the WhatsApp bridge has not run for days")
    output = _WORKS.split(probes.files.end_of(path))[-1]
    reason = _reason(output)
    if reason is None:
        return
    name = probes.home.name_of(path)
    yield Finding(
        code=reason.code,
        severity=Severity.ERROR,
        title=reason.title,
        subject="whatsapp",
        detail="Nobody on WhatsApp gets an answer: the bridge to WhatsApp does not run.",
        evidence=(Evidence(name, reason.quote),),
        since=at,
        next=reason.step,
        data={"platform": "whatsapp"},
    )


def _logs(probes: Probes) -> Iterator[Path]:
    for folder in _FOLDERS:
        yield probes.home / folder / "bridge.log"


def _reason(output: str) -> _Reason | None:
    if match := _last(_PACKAGE, output):
        return _Reason(
            "the WhatsApp bridge lacks an npm package",
            redact_log_text(match[0]),
            "Run `npm install` in the folder scripts/whatsapp-bridge of Hermes, then restart the "
            "gateway.",
        )
    if match := _last(_PORT, output):
        return _Reason(
            text("the WhatsApp bridge cannot use port {port}", port=match[1]),
            redact_log_text(match[0]),
            "Stop the other program on this port; it may be a bridge of another gateway.",
        )
    if match := _last(_LOGGED_OUT, output):
        return _Reason(
            "WhatsApp has logged the bot out",
            redact_log_text(match[0]),
            "Run `hermes whatsapp`, scan the code with the phone, then restart the gateway.",
            "WA-NOT-PAIRED",
        )
    closed = _CLOSED.findall(output)
    if len(closed) >= _OFTEN:
        return _Reason(
            "WhatsApp closes every connection of the bridge",
            f"Connection closed (reason: {closed[-1]}), {len(closed)} times",
            "Update Hermes, because WhatsApp refuses old bridges; then restart the gateway.",
        )
    if match := _last(_ERROR, output):
        return _Reason(
            "the WhatsApp bridge ended with an error",
            redact_log_text(match[1]),
            "Fix what the quoted line names, then restart the gateway.",
        )
    return None


def _last(what: re.Pattern[str], output: str) -> re.Match[str] | None:
    """Return the last place where the pattern matches."""
    found = None
    for match in what.finditer(output):
        found = match
    return found
