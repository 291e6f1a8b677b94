"""Plan changes of the container's settings: in its Compose file, and in the engine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermes_doctor.message import listed, text
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.settings.edit.edits import Put
from hermes_doctor.steps.base import Step
from hermes_doctor.steps.files import ReplaceSpan

if TYPE_CHECKING:
    from hermes_doctor.probes.compose import ComposeFile, ComposeService
    from hermes_doctor.probes.probes import Probes

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
        start, end, new_end = _changed(old, new)
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
        service = probes.compose()
    except CouldNotLook as doubt:
        raise CannotFix(
            text(
                "{reason}. Add this to its service yourself: {lines}",
                reason=_capital(str(doubt)),
                lines=_shown(wanted),
            )
        ) from None
    if service is None and set(wanted) != {_RESTART}:
        raise CannotFix(
            "The container was not made by Docker Compose. Recreate the container with the setting."
        )
    if service is not None:
        yield _edit(probes, service, wanted, why)
    if _RESTART in wanted:
        from hermes_doctor.steps.restart_policy import SetRestartPolicy

        boxes = [unit for unit in probes.supervision().units if unit.kind == "docker"]
        act = SetRestartPolicy(probes.home, boxes[0].name if boxes else "")
        act.refuse()
        yield act


def _edit(probes: Probes, service: ComposeService, wanted: Wanted, why: str) -> Step:
    """The step that edits the file which decides about the settings."""
    from hermes_doctor.settings.edit import yaml_text

    file = service.file_with(wanted)
    _refuse(probes, service, file, wanted)
    edits = list(_puts(("services", service.name), wanted, file.values))
    try:
        after = yaml_text.apply_edits(file.data, edits, file.path.name)
    except CannotFix as why_not:
        raise CannotFix(_by_hand(service, file, wanted, str(why_not).rstrip("."))) from None
    if after == file.data:
        raise CannotFix(text("{file} has this already. Run `{command}`.", **_named(service, file)))
    start, end, new_end = _changed(file.data, after)
    return EditCompose(
        *(file.path, file.data, start, end, after[start:new_end]),
        why=text("add {names}, {reason}", names=listed(list(wanted)), reason=why),
        expect=file.taken,
        command=service.update_command,
        setting=_shown(wanted),
        at_once=_RESTART in wanted,
    )


def _refuse(probes: Probes, service: ComposeService, file: ComposeFile, wanted: Wanted) -> None:
    """Refuse a file that we do not understand, may not write, or must not write as root."""
    if service.obstacle:
        raise CannotFix(_by_hand(service, file, wanted, service.obstacle))
    if file.path.is_symlink():
        raise CannotFix(_by_hand(service, file, wanted, f"{file.path.name} is a symbolic link"))
    owner = os.stat(probes.home.path).st_uid
    if file.taken.uid != owner:
        why = text(
            "{file} belongs to uid {uid}, the home to uid {owner}",
            file=file.path.name,
            uid=file.taken.uid,
            owner=owner,
        )
        raise CannotFix(_by_hand(service, file, wanted, why))
    if not os.access(file.path, os.W_OK):
        raise CannotFix(_by_hand(service, file, wanted, f"You may not write {file.path}"))


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
    from hermes_doctor.settings.edit import yaml_values

    return " and ".join(f"`{key}: {yaml_values.flow(value)}`" for key, value in wanted.items())


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


def _changed(old: Sequence[object], new: Sequence[object]) -> tuple[int, int, int]:
    """Where two texts (or lists of lines) differ: the start, the end in the old and in the new."""
    start = _shared(old, new)
    tail = _shared(old[start:][::-1], new[start:][::-1])
    return start, len(old) - tail, len(new) - tail


def _shared(one: Sequence[object], two: Sequence[object]) -> int:
    """The length of the common prefix of two texts, or of two lists of lines."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(two)))
