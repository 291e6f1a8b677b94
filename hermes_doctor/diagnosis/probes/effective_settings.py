"""Read the settings that the gateway of a home uses: its variables, .env and config.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.hermes.settings.inputs import Settings, parse_variables

if TYPE_CHECKING:
    from hermes_doctor.hermes.settings.config_yaml import ConfigFile
    from hermes_doctor.hermes.settings.env_file import EnvFile


def read(
    start_environment: Callable[[], Mapping[str, str]],
    read_env: Callable[[], EnvFile | None],
    read_config: Callable[[], ConfigFile | None],
) -> Settings:
    """Return the settings of the running gateway, or of the one that would be started."""
    unsure = []
    try:
        before = start_environment()
    except CouldNotLook as doubt:
        before = {}
        unsure.append(str(doubt))
    file: dict[str, str] = {}
    try:
        env = read_env()
        file = parse_variables(env.text or "") if env else {}
    except CouldNotLook as doubt:
        unsure.append(str(doubt))
    config: Mapping[str, Any] = {}
    try:
        written = read_config()
        config = (written.values if written else None) or {}
    except CouldNotLook as doubt:
        unsure.append(str(doubt))
    return Settings({**before, **file}, frozenset(file), config, tuple(unsure))
