"""Plan a systemd drop-in: settings in a separate file, because Hermes rewrites the unit file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.gateway import control
from hermes_doctor.gateway.manager_commands import owner_of
from hermes_doctor.gateway.systemd import SystemdUnit
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.steps.base import Step
from hermes_doctor.steps.files import ReplaceFile
from hermes_doctor.steps.gateway import GatewayStep
from hermes_doctor.steps.machine import ReloadUnits
from hermes_doctor.system.files import ABSENT, read

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes

FILE = "hermes-doctor.conf"
HEADER = "# Made by hermes-doctor; `hermes-doctor undo` removes it.\n[Service]\n"
_LIMIT = 64 * 1024


def unit_of(probes: Probes) -> SystemdUnit:
    """The unit that runs the gateway of this home."""
    service = control.gateway_control(probes)
    if not isinstance(service, SystemdUnit):
        raise CannotFix(
            text(
                "The gateway runs {control}, not as a systemd service. Change its settings "
                "yourself.",
                control=service.describe(),
            )
        )
    return service


def drop_in(
    probes: Probes, lines: Mapping[str, str], why: str, *, variables: bool = False
) -> Iterator[Step]:
    """Make the steps that add settings (or variables) to the unit and put them into effect."""
    unit = unit_of(probes)
    system = unit.manager.user is None
    path = _folder(probes, unit) / f"{unit.name}.d" / FILE
    try:
        before, expect = read(path, _LIMIT)
    except FileNotFoundError:
        before, expect = b"", ABSENT
    except CouldNotLook as doubt:
        raise CannotFix(str(doubt)) from None
    after = _merged(before.decode("utf-8", "replace"), lines, variables=variables)
    if after.encode() == before:
        raise CannotFix(
            text("{file} contains this already. Run `systemctl daemon-reload`.", file=path)
        )
    yield ReplaceFile(path, after.encode(), why=why, expect=expect, before=before)
    yield ReloadUnits(probes.home, system)
    if unit.running() is not None:
        yield GatewayStep(unit, restart=True, why="new settings apply only at a start")


def service_limit(probes: Probes, name: str) -> tuple[int, int]:
    """The soft and the hard value of a resource limit of the unit."""
    unit = unit_of(probes)
    soft, hard = (unit.manager.property_of(unit.name, name + suffix) for suffix in ("Soft", ""))
    return _number(soft), _number(hard)


def _number(text: str) -> int:
    if text == "infinity":
        return 2**31
    if not text.isdigit():
        raise CannotFix("systemd does not report the limit. Set LimitNOFILE yourself.")
    return int(text)


def _folder(probes: Probes, unit: SystemdUnit) -> Path:
    """The folder for the operator's own settings of a unit."""
    user = unit.manager.user
    owner = owner_of(probes.home).uid
    if user is None:
        if owner != 0:  # an undo as root must not restore such a file from another user's vault
            raise CannotFix(
                text(
                    "{unit} is a system service. Change it yourself with `systemctl edit {unit}`.",
                    unit=unit.name,
                )
            )
        return Path("/etc/systemd/system")
    if user.uid != owner:
        raise CannotFix(
            text(
                "{unit} belongs to uid {uid}, but the home to uid {owner}. Change the service "
                "yourself.",
                unit=unit.name,
                uid=user.uid,
                owner=owner,
            )
        )
    if user.folder is None:
        raise CannotFix("The owner of the home has no home directory. Change the service yourself.")
    return Path(user.folder) / ".config" / "systemd" / "user"


def _merged(text: str, lines: Mapping[str, str], *, variables: bool) -> str:
    """Add or replace these settings in the file's text; everything else stays as it is."""
    kept = (text or HEADER).splitlines(keepends=True)
    for name, value in lines.items():
        new = f'Environment="{name}={_quoted(value)}"\n' if variables else f"{name}={value}\n"
        start = f'Environment="{name}=' if variables else f"{name}="
        kept = [line for line in kept if not line.startswith(start)]
        if kept and not kept[-1].endswith("\n"):
            kept[-1] += "\n"
        kept.append(new)
    return "".join(kept)


def _quoted(value: str) -> str:
    """Escape a value for systemd; refuse control characters, as a newline would start a setting."""
    if any(ord(sign) < 32 for sign in value):
        raise CannotFix(
            "A value contains characters that systemd does not allow. Correct it first."
        )
    for sign, written in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%")):
        value = value.replace(sign, written)
    return value
