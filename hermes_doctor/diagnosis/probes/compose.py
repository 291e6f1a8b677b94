"""Read how Docker Compose describes the service of a container, from the files in its labels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, Snapshot, read
from hermes_doctor.hermes.settings import config_yaml
from hermes_doctor.hermes.supervisors.units import Unit

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
            compose_file
            for compose_file in self.described
            if any(compose_file.values.get(key) is not None for key in names)
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
    compose_files: list[ComposeFile] = []
    obstacle = ""
    for file in files:
        values, data, snapshot = _read(file)
        if "include" in values:
            obstacle = f"{os.path.basename(file)}: it includes other files"
        services = values.get("services")
        service = services.get(name) if isinstance(services, dict) else None
        if isinstance(service, dict):
            compose_files.append(ComposeFile(Path(file), data, snapshot, service))
            if "extends" in service:
                obstacle = f"{os.path.basename(file)}: its service extends another one"
    if not compose_files:
        raise CouldNotLook("{file} no longer has the service {name}", file=files[0], name=name)
    merged: dict[str, Any] = {}
    for compose_file in compose_files:
        merged = _merged(merged, {key: _plain(compose_file, key) for key in compose_file.values})
    folder = unit.settings.get("ProjectFolder") or os.path.dirname(files[0])
    return ComposeService(name, folder, files, tuple(compose_files), merged, obstacle)


def _plain(file: ComposeFile, key: str) -> Any:
    """The value of a key; variables as a mapping. CouldNotLook if Compose rejects its type."""
    value = file.values[key]
    if key == "environment" and isinstance(value, list):
        if all(isinstance(one, str) for one in value):
            return dict(one.partition("=")[::2] for one in value)
    elif key not in _MAPPINGS or value is None or isinstance(value, dict):
        return value
    raise CouldNotLook(
        "the Compose file {file} has a value of {key} that Compose does not accept",
        file=file.path,
        key=key,
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
    if not os.path.isabs(file):
        raise CouldNotLook("the Compose file {file} has no full path", file=file)
    try:
        data, snapshot = read(Path(file), MEGABYTE)
    except FileNotFoundError:
        raise CouldNotLook("the Compose file {file} is missing", file=file) from None
    values, fault = config_yaml.parse(data)
    if fault is not None or values is None:
        raise CouldNotLook("the Compose file {file} does not parse", file=file)
    return values, data, snapshot
