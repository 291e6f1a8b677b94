"""Plan settings of what runs the gateway: a systemd unit, or a container and its Compose file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_doctor.core.message import listed, text
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system.files import ABSENT, read
from hermes_doctor.diagnosis.probes.compose import ComposeFile, ComposeService
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import Step
from hermes_doctor.hermes.settings.edits import Put
from hermes_doctor.repair.gateway import control
from hermes_doctor.repair.gateway.manager_commands import owner_of
from hermes_doctor.repair.gateway.service_managers import SystemdUnit
from hermes_doctor.repair.steps.files import ReplaceFile, ReplaceSpan, changed_span
from hermes_doctor.repair.steps.gateway import GatewayStep
from hermes_doctor.repair.steps.machine import ReloadUnits

FILE = "hermes-doctor.conf"
HEADER = "# Made by hermes-doctor; `hermes-doctor undo` removes it.\n[Service]\n"
_LIMIT = 64 * 1024


def unit_of(probes: Probes) -> SystemdUnit:
    service = control.gateway_control(probes)
    if not isinstance(service, SystemdUnit):
        raise CannotFix(
            "The gateway runs {control}, not as a systemd service. Change its settings yourself.",
            control=service.describe(),
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
    content = before.decode("utf-8", "replace")
    kept = (content or HEADER).splitlines(keepends=True)
    for name, value in lines.items():
        new = f'Environment="{name}={_quoted(value)}"\n' if variables else f"{name}={value}\n"
        start = f'Environment="{name}=' if variables else f"{name}="
        kept = [line for line in kept if not line.startswith(start)]
        if kept and not kept[-1].endswith("\n"):
            kept[-1] += "\n"
        kept.append(new)
    after = "".join(kept)
    if after.encode() == before:
        raise CannotFix("{file} contains this already. Run `systemctl daemon-reload`.", file=path)
    yield ReplaceFile(path, after.encode(), why=why, expect=expect, before=before)
    yield ReloadUnits(probes.home, system=system)
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
                "{unit} is a system service. Change it yourself with `systemctl edit {unit}`.",
                unit=unit.name,
            )
        return Path("/etc/systemd/system")
    if user.uid != owner:
        raise CannotFix(
            "{unit} belongs to uid {uid}, but the home to uid {owner}. Change the service "
            "yourself.",
            unit=unit.name,
            uid=user.uid,
            owner=owner,
        )
    if user.folder is None:
        raise CannotFix("The owner of the home has no home directory. Change the service yourself.")
    return Path(user.folder) / ".config" / "systemd" / "user"


def _quoted(value: str) -> str:
    """Escape a value for systemd; refuse control characters, as a newline would start a setting."""
    if any(ord(sign) < 32 for sign in value):
        raise CannotFix(
            "A value contains characters that systemd does not allow. Correct it first."
        )
    for sign, written in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%")):
        value = value.replace(sign, written)
    return value


Wanted = Mapping[str, Any]
"""Settings of a Compose service; a mapping inside is merged with the one in the file."""
_RESTART = "restart"


@dataclass(frozen=True)
class EditCompose(ReplaceSpan):
    """Step that edits a Compose file, and says how the change takes effect."""

    command: str = ""
    """The command that recreates the container with the settings of the files."""
    setting: str = ""
    """What is added, as YAML on one line."""
    at_once: bool = False
    """The running container gets the setting too, by another step."""

    def lines(self) -> Sequence[str]:
        """The new lines; none if a line is changed, which may contain a secret.

        Then the changed line is shown with its values masked, as for any other file.
        """
        old, new = (
            one.decode("utf-8", "replace").splitlines() for one in (self.before, self.after)
        )
        start, end, new_end = changed_span(old, new)
        if end > start:
            return ()
        return [f"+{line}" for line in new[start:new_end]]

    def sentence(self) -> str:
        plain = super().sentence()
        if not self.lines():  # the diff masks the values of a changed line
            plain = text("{step} ({setting})", step=plain, setting=self.setting)
        if self.at_once:
            return plain
        return text("{step}; it takes effect when you recreate the container", step=plain)

    def notes(self) -> Sequence[str]:
        if self.at_once:
            note = text(
                "{file} has changed, so the next `docker compose up -d` recreates the container.",
                file=self.path.name,
            )
        else:
            note = text(
                "To apply it (this recreates the container and restarts the bot): {command}",
                command=self.command,
            )
        return [note]


def change_container(probes: Probes, wanted: Wanted, why: str) -> Iterator[Step]:
    """The steps that give the container of the gateway these settings.

    The container itself is not recreated: that restarts the bot, so it is left to the operator. A
    restart policy also applies to the running container.
    """
    try:
        service = probes.gateway.compose()
    except CouldNotLook as doubt:
        raise CannotFix(
            "{reason}. Add this to its service yourself: {lines}",
            reason=_capital(str(doubt)),
            lines=_shown(wanted),
        ) from None
    if service is None and set(wanted) != {_RESTART}:
        raise CannotFix(
            "The container was not made by Docker Compose. Recreate the container with the setting."
        )
    if service is not None:
        yield _edit(probes, service, wanted, why)
    if _RESTART in wanted:
        from hermes_doctor.repair.steps.restart_actions import SetRestartPolicy

        boxes = [unit for unit in probes.gateway.supervision().units if unit.kind == "docker"]
        act = SetRestartPolicy(probes.home, boxes[0].name if boxes else "")
        act.refuse()
        yield act


def _edit(probes: Probes, service: ComposeService, wanted: Wanted, why: str) -> Step:
    """The step that edits the file which decides about the settings."""
    from hermes_doctor.hermes.settings import edit_yaml

    file = service.file_with(wanted)
    if service.obstacle:
        raise CannotFix(_by_hand(service, file, wanted, service.obstacle))
    if file.path.is_symlink():
        raise CannotFix(_by_hand(service, file, wanted, f"{file.path.name} is a symbolic link"))
    owner = os.stat(probes.home.path).st_uid
    if file.taken.uid != owner:
        whose = text(
            "{file} belongs to uid {uid}, the home to uid {owner}",
            file=file.path.name,
            uid=file.taken.uid,
            owner=owner,
        )
        raise CannotFix(_by_hand(service, file, wanted, whose))
    if not os.access(file.path, os.W_OK):
        raise CannotFix(_by_hand(service, file, wanted, f"You may not write {file.path}"))
    edits = list(_puts(("services", service.name), wanted, file.values))
    try:
        after = edit_yaml.apply_edits(file.data, edits, file.path.name)
    except CannotFix as why_not:
        raise CannotFix(_by_hand(service, file, wanted, str(why_not).rstrip("."))) from None
    if after == file.data:
        raise CannotFix("{file} has this already. Run `{command}`.", **_named(service, file))
    start, end, new_end = changed_span(file.data, after)
    return EditCompose(
        *(file.path, file.data, start, end, after[start:new_end]),
        why=text("add {names}, {reason}", names=listed(list(wanted)), reason=why),
        expect=file.taken,
        command=service.update_command,
        setting=_shown(wanted),
        at_once=_RESTART in wanted,
    )


def _by_hand(service: ComposeService, file: ComposeFile, wanted: Wanted, why: str) -> str:
    return text(
        "{reason}. Add this to the service {service} in {file} yourself: {lines}. Then run "
        "`{command}`.",
        reason=_capital(why),
        service=service.name,
        lines=_shown(wanted),
        **_named(service, file),
    )


def _named(service: ComposeService, file: ComposeFile) -> dict[str, str]:
    return {"file": str(file.path), "command": service.update_command}


def _capital(words: str) -> str:
    return words if "." in words.split()[0] else words[:1].upper() + words[1:]


def _shown(wanted: Wanted) -> str:
    """The settings as YAML on one line, to copy."""
    from hermes_doctor.hermes.settings import yaml_nodes

    return " and ".join(f"`{key}: {yaml_nodes.flow(value)}`" for key, value in wanted.items())


def _puts(path: tuple[str | int, ...], wanted: Wanted, present: Mapping[str, Any]) -> Iterator[Put]:
    """The edits that add the settings to what is in the file."""
    for key, value in wanted.items():
        there = present.get(key)
        if isinstance(value, dict) and isinstance(there, list):  # variables as `NAME=value`
            for number, (name, one) in enumerate(value.items(), len(there)):
                yield Put((*path, key, number), f"{name}={one}")
        elif isinstance(value, dict) and isinstance(there, dict):
            yield from _puts((*path, key), value, there)
        else:
            yield Put((*path, key), value)
