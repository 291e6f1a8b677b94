"""Read how Docker Compose describes the service of a container, from the files in its labels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.supervisors.unit import Unit
from hermes_doctor.system.files import MEGABYTE, Snapshot, read

_MAPPINGS = ("environment", "ulimits", "deploy")
"""Settings whose value is a mapping, which is merged key by key."""


class ComposeFile(NamedTuple):
    """One file of a Compose project that describes the service."""

    path: Path
    data: bytes
    taken: Snapshot
    values: Mapping[str, Any]
    """What it says about the service."""


class ComposeService(NamedTuple):
    """A service of Docker Compose, and the files that describe it."""

    name: str
    folder: str
    files: tuple[str, ...]
    """All files of the project, in the order in which Compose merges them."""
    described: tuple[ComposeFile, ...]
    """The files that describe the service, at least one; each overrides those before it."""
    values: Mapping[str, Any]
    """The settings of the service from all files, merged as Compose does."""
    obstacle: str
    """Why the files must not be edited automatically; empty if they may be."""

    def file_with(self, keys: Iterable[str]) -> ComposeFile:
        """The last file that sets one of these keys; without one, the first file."""
        names = tuple(keys)
        setting = [
            one for one in self.described if any(one.values.get(key) is not None for key in names)
        ]
        return setting[-1] if setting else self.described[0]

    @property
    def update_command(self) -> str:
        """The command that recreates the container with the settings of the files."""
        import shlex

        usual = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
        plain = len(self.files) == 1 and self.files[0] in (
            os.path.join(self.folder, name) for name in usual
        )
        options = [] if plain else [word for file in self.files for word in ("-f", file)]
        words = shlex.join(["docker", "compose", *options, "up", "-d", self.name])
        return f"cd {shlex.quote(self.folder)} && {words}"


def read_service(unit: Unit) -> ComposeService | None:
    """Return the service of a container; None if Compose did not make it.

    Raises CouldNotLook if a file is missing, cannot be read or is not understood.
    """
    name, listed = unit.settings.get("Service", ""), unit.settings.get("ProjectFiles", "")
    if not name or not listed:
        return None
    files = tuple(listed.split(","))
    found: list[ComposeFile] = []
    obstacle = ""
    for file in files:
        values, data, taken = _read(file)
        if "include" in values:
            obstacle = f"{os.path.basename(file)}: it includes other files"
        services = values.get("services")
        service = services.get(name) if isinstance(services, dict) else None
        if isinstance(service, dict):
            found.append(ComposeFile(Path(file), data, taken, service))
            if "extends" in service:
                obstacle = f"{os.path.basename(file)}: its service extends another one"
    if not found:
        raise CouldNotLook(
            text("{file} no longer has the service {name}", file=files[0], name=name)
        )
    merged: dict[str, Any] = {}
    for one in found:
        merged = _merged(merged, {key: _plain(one, key) for key in one.values})
    folder = unit.settings.get("ProjectFolder") or os.path.dirname(files[0])
    return ComposeService(name, folder, files, tuple(found), merged, obstacle)


def _plain(file: ComposeFile, key: str) -> Any:
    """The value of a key; variables as a mapping. CouldNotLook if Compose rejects its type."""
    value = file.values[key]
    if key == "environment" and isinstance(value, list):
        if all(isinstance(one, str) for one in value):
            return dict(one.partition("=")[::2] for one in value)
    elif key not in _MAPPINGS or value is None or isinstance(value, dict):
        return value
    raise CouldNotLook(
        text(
            "the Compose file {file} has a value of {key} that Compose does not accept",
            file=file.path,
            key=key,
        )
    )


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two mappings, key by key: the second decides, unless its value is empty."""
    made = dict(below)
    for key, value in above.items():
        old = made.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            made[key] = _merged(old, value)
        elif value is not None or key not in made:
            made[key] = value
    return made


def _read(file: str) -> tuple[dict[str, Any], bytes, Snapshot]:
    from hermes_doctor.settings import config_file

    if not os.path.isabs(file):
        raise CouldNotLook(text("the Compose file {file} has no full path", file=file))
    try:
        data, taken = read(Path(file), MEGABYTE)
    except FileNotFoundError:
        raise CouldNotLook(text("the Compose file {file} is missing", file=file)) from None
    values, fault = config_file.parse(data)
    if fault is not None or values is None:
        raise CouldNotLook(text("the Compose file {file} does not parse", file=file))
    return values, data, taken
