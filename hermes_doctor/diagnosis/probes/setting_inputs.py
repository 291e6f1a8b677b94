"""Read all files and variables from which a gateway of this home takes its settings."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, read, snapshot
from hermes_doctor.hermes.knowledge.releases import Release
from hermes_doctor.hermes.settings import credential_pool, env_file
from hermes_doctor.hermes.settings.document import Document
from hermes_doctor.hermes.settings.inputs import SettingInputs, Settings, parse_variables, section

if TYPE_CHECKING:
    from hermes_doctor.core.home import Home
    from hermes_doctor.hermes.installation.find import Installation
    from hermes_doctor.hermes.settings.config_yaml import ConfigFile
    from hermes_doctor.hermes.settings.env_file import EnvFile

_LIMIT = 4 * MEGABYTE
_MANAGED = Path("/etc/hermes")
_VAULTS = ("bitwarden", "onepassword")
T = TypeVar("T")


def read_inputs(
    home: Home,
    start_environment: Callable[[], Mapping[str, str]],
    installation: Installation | None,
    config: ConfigFile | None,
    env: EnvFile | None,
) -> tuple[SettingInputs, tuple[str, ...]]:
    """Return the inputs of this home, and what else may change the result without being read.

    Raises CouldNotLook when one of the deciding files cannot be read.
    """
    doubts: list[str] = []
    started_with: Mapping[str, str] = {}
    try:
        started_with = start_environment()
    except CouldNotLook as doubt:
        doubts.append(str(doubt))
    if installation is None:
        doubts.append("Hermes was not found, so the rules of the newest known release are used")
    release = Release(installation.release if installation else None)
    world = SettingInputs(
        release=release,
        document=Document(config.data if config else b"", parsed=config),
        readings=env_file.parse_env(env, release, started_with) if env else env_file.NO_VARIABLES,
        started_with=started_with,
        store=store(home.path / credential_pool.NAME),
        root_store=store(home.path.parent.parent / credential_pool.NAME) if home.profile else {},
        now=time.time(),
    )
    doubts += [] if home.is_example else _elsewhere(home.path, world)
    return world, tuple(doubts)


def store(path: Path) -> Mapping[str, Any]:
    """Read auth.json; empty if it is missing or damaged, as for Hermes."""
    import json

    try:
        data, _ = read(path, _LIMIT)
    except FileNotFoundError:
        return {}
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _elsewhere(home: Path, world: SettingInputs) -> Iterator[str]:
    """Yield the places that Hermes reads and this tool does not."""
    if world.release.since(0, 17):
        named = world.started_with.get("HERMES_MANAGED_DIR")
        folder = Path(named) if named else _MANAGED
        for name in ("config.yaml", ".env"):
            if os.path.lexists(folder / name):
                yield f"{folder / name} is the administrator's and overrides the others"
    if snapshot(home / "gateway.json").kind == "file":
        yield "gateway.json of an older setup adds settings that config.yaml lacks"
    if world.release.since(0, 18, 1) and os.path.lexists(home / ".op.env"):
        yield ".op.env may set more variables"
    for name in _VAULTS:
        if section(world.raw, "secrets", name).get("enabled"):
            yield f"secrets.{name} may set more variables"


def read_effective(
    start_environment: Callable[[], Mapping[str, str]],
    read_env: Callable[[], EnvFile | None],
    read_config: Callable[[], ConfigFile | None],
) -> Settings:
    """Return the settings of the running gateway, or of the one that would be started."""
    unsure: list[str] = []

    def known_or_none(ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except CouldNotLook as doubt:
            unsure.append(str(doubt))
            return None

    before = known_or_none(start_environment) or {}
    env, config = known_or_none(read_env), known_or_none(read_config)
    file = parse_variables(env.text or "") if env else {}
    values = (config and config.values) or {}
    return Settings({**before, **file}, frozenset(file), values, tuple(unsure))
