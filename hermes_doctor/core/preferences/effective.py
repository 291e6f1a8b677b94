"""The settings that apply, and where each comes from.

An option on the command line comes first, then the environment, then the user's file, then the file
for all users. In the files, what is said of one home comes before what is said of all.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import sentences, text
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.preferences import places

if TYPE_CHECKING:
    from hermes_doctor.core.preferences.config_toml import ConfigFile, Keys

VARIABLES = {
    "home": "HERMES_HOME",
    "language": "HERMES_DOCTOR_LANGUAGE",
    "fail_on": "HERMES_DOCTOR_FAIL_ON",
    "plugins": "HERMES_DOCTOR_PLUGINS",
    "vault": "HERMES_DOCTOR_VAULT",
}
"""The environment variables that come before the files."""


class Setting(NamedTuple):
    """A value, and where it comes from."""

    value: Any
    source: ConfigFile | str
    """A file, or the name of an environment variable."""
    keys: Keys = ()

    @property
    def origin(self) -> str:
        """The file and line, or the environment variable."""
        return self.source if isinstance(self.source, str) else self.source.origin(self.keys)


class Preferences:
    """The settings of all files and of the environment."""

    def __init__(self, files: tuple[ConfigFile, ...]) -> None:
        self.files = files
        """The files that exist; the first one wins."""

    def find(self, *keys: str, home: Path | None = None) -> Setting | None:
        """The value with these keys, of this home if a file says something of it."""
        if len(keys) == 1 and (setting := _from_environment(keys[0])):
            return setting
        for file in self.files:
            for place in _tables_of(file, home):
                if (*place, *keys) in file.values:
                    return _setting(file, (*place, *keys))
        for file in self.files:
            if keys in file.values:
                return _setting(file, keys)
        return None

    def vault(self, home: Path) -> Path | None:
        """The folder for the backups of this home, if one is set."""
        setting = self.find("vault", home=home)
        return setting.value if setting else None

    def plugins(self) -> list[Path]:
        """The operator's folders of plugins."""
        setting = self.find("plugins")
        return setting.value if setting else []

    def fail_on(self, home: Path) -> Setting | None:
        """From which severity on `check` fails."""
        return self.find("fail_on", home=home)

    def watch(self, home: Path) -> dict[str, Setting]:
        """The options of the watch of this home."""
        if not self.files:
            return {}
        from hermes_doctor.core.preferences.config_toml import WATCH_KEYS

        found = {name: self.find("watch", name, home=home) for name in WATCH_KEYS}
        return {name: one for name, one in found.items() if one}

    def may_mute(self, path: Path) -> bool:
        """Whether a file may mute problems, or make them milder.

        With `mutes = "root"` in the file for all users, only the files beside it may.
        """
        return path.parent == places.SYSTEM or not any(
            file.values.get(("mutes",)) == "root" for file in self.files
        )

    def severities(self, home: Path) -> dict[str, Setting]:
        """The severities to report codes with, by code; the value None means `off`."""
        files = tuple(file for file in self.files if self.may_mute(file.path))
        if files != self.files:
            return Preferences(files).severities(home)
        codes = dict.fromkeys(
            keys[-1] for file in self.files for keys in file.values if keys[-2:-1] == ("severity",)
        )
        found = {code: self.find("severity", code, home=home) for code in codes}
        return {code: one for code, one in found.items() if one}

    def homes(self) -> list[Path]:
        """The homes of which a file says something."""
        names = [keys[1] for file in self.files for keys in file.values if keys[0] == "homes"]
        found = [os.path.realpath(Path(name).expanduser()) for name in names]
        return [Path(path) for path in dict.fromkeys(found)]

    def check_codes(self, known: Collection[str]) -> None:
        """Raise Trouble if a file sets the severity of a code that no check has."""
        for file in self.files:
            for keys in file.values:
                if keys[-2:-1] == ("severity",) and keys[-1] not in known:
                    raise _unknown_code(file, keys, known)


def load() -> Preferences:
    """Read the files that exist; raise Trouble if one of them is wrong or not trusted."""
    there = places.existing(places.CONFIG)[::-1]
    if not there:
        return Preferences(())
    from hermes_doctor.core.preferences import config_toml

    return Preferences(
        tuple(config_file for path in there if (config_file := config_toml.load(path)))
    )


def _from_environment(key: str) -> Setting | None:
    variable = VARIABLES.get(key, "")
    given = os.environ.get(variable, "")
    if not given:
        return None
    from hermes_doctor.core.preferences import config_toml

    try:
        if key == "plugins":
            folders = [config_toml.absolute_path(one) for one in given.split(os.pathsep) if one]
            return Setting(folders, variable)
        if key == "vault":
            return Setting(config_toml.absolute_path(given), variable)
        if key == "language":
            return Setting(config_toml.language(given), variable)
        if key == "fail_on":
            config_toml.parse_fail_on(given)
    except config_toml.WrongValue as wrong:
        raise Trouble("{name}: {why}.", name=variable, why=wrong) from None
    return Setting(given, variable)


def _setting(file: ConfigFile, keys: Keys) -> Setting:
    return Setting(file.values[keys], file, keys)


def _tables_of(file: ConfigFile, home: Path | None) -> Iterator[Keys]:
    """The tables in which the file says something of this home."""
    if home is None:
        return
    names = dict.fromkeys(keys[1] for keys in file.values if keys[0] == "homes")
    for name in names:
        if Path(os.path.realpath(Path(name).expanduser())) == home:
            yield "homes", name


def _unknown_code(file: ConfigFile, keys: Keys, known: Collection[str]) -> Trouble:
    from hermes_doctor.core.preferences.config_toml import did_you_mean

    return Trouble(
        sentences(
            text("{origin}: unknown code {code!r}.", origin=file.origin(keys), code=keys[-1]),
            did_you_mean(keys[-1], known),
            "See: hermes-doctor list codes",
        )
    )
