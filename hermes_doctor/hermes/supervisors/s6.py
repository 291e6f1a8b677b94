"""Find the gateways that s6 runs in Hermes' official container."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.core.home import CONTAINER_HOME
from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import commands
from hermes_doctor.core.system.files import list_folder, read
from hermes_doctor.hermes.supervisors.units import S6, Unit

SCANNED = Path("/run/service")
_VARIABLES = Path("/run/s6/container_environment")
_STAT = "/command/s6-svstat"
_PREFIX = "gateway-"
_STATUS = pattern(
    r"(?P<state>up|down) "
    r"\((?:pid (?P<pid>\d+)|exitcode (?P<code>\d+)|signal (?P<signal>\w+))[^)]*\)"
    r" (?P<seconds>\d+) seconds(?P<more>.*)"
)


def slots() -> list[Unit]:
    """Return every gateway that s6 supervises, each in a service folder (slot) of its own."""
    root = _root()
    units = []
    for name in list_folder(SCANNED):
        if not name.startswith(_PREFIX):
            continue
        profile = name.removeprefix(_PREFIX)
        home = root if profile == "default" else root / "profiles" / profile
        slot = SCANNED / name
        unit = Unit(
            kind=S6,
            name=name,
            path=slot / "run",
            home=home,
            settings={"NormallyDown": "yes" if os.path.lexists(slot / "down") else "no"},
            user="hermes",
            files=(slot / "run",),
        )
        units.append(_asked(unit, slot))
    return units


def _root() -> Path:
    try:
        data, _ = read(_VARIABLES / "HERMES_HOME", 4096)
    except (FileNotFoundError, CouldNotLook):
        data = b""
    named = os.fsdecode(data.strip()) or os.environ.get("HERMES_HOME") or str(CONTAINER_HOME)
    path = Path(named)
    return Path(os.path.realpath(path.parent.parent if path.parent.name == "profiles" else path))


def _asked(unit: Unit, slot: Path) -> Unit:
    try:
        answer = commands.ask(_STAT, str(slot))
    except CouldNotLook as why:
        return unit._replace(silence=str(why))
    if answer.code:
        return unit._replace(silence="s6 does not show the state of this slot")
    return with_status(unit, answer.out)


def with_status(unit: Unit, status: str) -> Unit:
    """Add to a slot what `s6-svstat` prints: `down (exitcode 78) 9 seconds, normally up`."""
    match = _STATUS.match(status.strip())
    if not match:
        return unit._replace(silence="s6 shows the state of this slot in an unknown form")
    more = match["more"]
    wanted = "want up" in more or (match["state"] == "up" and "want down" not in more)
    settings = {
        "ExecMainStatus": match["code"] or "",
        "Signal": match["signal"] or "",
        "Seconds": match["seconds"],
        "Wanted": "up" if wanted else "down",
        "Restart": "always",
    }
    if match["state"] == "up":
        state = "active"
    elif wanted:
        state = "activating"
    else:
        state = "failed" if match["code"] not in ("0", None) or match["signal"] else "inactive"
    return unit._replace(
        state=state,
        pid=int(match["pid"]) if match["pid"] else None,
        settings={**unit.settings, **settings},
    )
