"""Parse systemd unit files with their drop-ins, as systemd does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import list_folder, read

_LIMIT = 256 * 1024
_MOST_FILES = 100
_PREFIXES = "-@:+!|"
_SPAN = pattern(r"(\d+(?:\.\d+)?)\s*([a-zµ]*)")
_UNITS = {
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("us", "µs", "usec"), 1e-6),
}

Settings = dict[str, list[str]]


class Definition(NamedTuple):
    """The merged content of a unit file and its drop-ins."""

    files: tuple[Path, ...]
    """The unit file first, then its drop-ins."""
    settings: Mapping[str, Sequence[str]]
    """Every setting of [Unit], [Service] and [Install] with its effective values."""

    def last(self, name: str) -> str:
        """Return the last value of a setting; empty when it is not set."""
        values = self.settings.get(name)
        return values[-1] if values else ""

    def program(self, specifiers: Mapping[str, str]) -> list[str]:
        """Return the command line that it starts, with the specifiers in `specifiers` expanded."""
        found = split_words(self.last("ExecStart"))
        if found:
            found[0] = found[0].lstrip(_PREFIXES)
        return [expand_specifiers(word, specifiers) for word in found]

    def environment(self, specifiers: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that it sets, also those from environment files."""
        made: dict[str, str] = {}
        for value in self.settings.get("Environment", ()):
            for word in split_words(value):
                name, given, text = word.partition("=")
                if given:
                    made[name] = expand_specifiers(text, specifiers)
        for value in self.settings.get("EnvironmentFile", ()):
            made |= _variables(Path(expand_specifiers(value.removeprefix("-"), specifiers)))
        return made


def load(path: Path, folders: Sequence[Path]) -> Definition:
    """Read a unit file and its drop-ins; `folders` are in descending priority.

    Raises `FileNotFoundError` when it does not exist and `CouldNotLook` when it cannot be read.
    """
    data, _ = read(path, _LIMIT)
    settings: Settings = {}
    parse(data.decode("utf-8", "replace"), settings)
    files = [path]
    for part in _drop_ins(path.name, folders):
        try:
            data, _ = read(part, _LIMIT)
        except (FileNotFoundError, CouldNotLook):
            continue  # masked, or not readable for systemd either
        parse(data.decode("utf-8", "replace"), settings)
        files.append(part)
    return Definition(tuple(files), settings)


def parse(text: str, settings: Settings) -> None:
    """Add the settings of a file; an empty value removes all earlier values of its setting."""
    section, joined = "", ""
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith(("#", ";")):
            continue
        if line.endswith("\\"):
            joined += line[:-1].strip() + " "
            continue
        bare, joined = joined + bare, ""
        if bare.startswith("[") and bare.endswith("]"):
            section = bare[1:-1]
        elif section in ("Unit", "Service", "Install") and "=" in bare:
            name, _, value = bare.partition("=")
            if value.strip():
                settings.setdefault(name.strip(), []).append(value.strip())
            else:
                settings.pop(name.strip(), None)


def _drop_ins(name: str, folders: Sequence[Path]) -> list[Path]:
    """Return the drop-ins of a unit, sorted by name; of equal names, the first folder wins."""
    stem = name.removesuffix(".service")
    bases = [name]
    if "@" in stem:
        bases.append(f"{stem.partition('@')[0]}@.service")
    parts = stem.partition("@")[0].split("-")
    bases += [f"{'-'.join(parts[:n])}-.service" for n in range(len(parts) - 1, 0, -1)]
    bases.append("service")
    found: dict[str, Path] = {}
    for folder in folders:
        for base in bases:
            place = folder / f"{base}.d"
            try:
                names = list_folder(place, 1000)
            except CouldNotLook:
                continue
            for one in names:
                if one.endswith(".conf"):
                    found.setdefault(one, place / one)
    return [found[one] for one in sorted(found)][:_MOST_FILES]


def split_words(text: str) -> list[str]:
    """Split a value into words as systemd does, respecting quotes."""
    import shlex

    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def expand_specifiers(text: str, specifiers: Mapping[str, str]) -> str:
    """Expand the specifiers (%h, %u, …) of a value; unknown ones stay."""
    return re.sub(r"%(.)", lambda m: "%" if m[1] == "%" else specifiers.get(m[1], m[0]), text)


def _variables(path: Path) -> dict[str, str]:
    """Parse an environment file with one variable per line; empty if it cannot be read."""
    try:
        data, _ = read(path, _LIMIT)
    except (FileNotFoundError, CouldNotLook):
        return {}
    made = {}
    for line in data.decode("utf-8", "replace").splitlines():
        name, given, value = line.strip().partition("=")
        if given and not name.startswith(("#", ";")):
            made[name.strip()] = value.strip().strip("\"'")
    return made


def parse_time_span(text: str) -> float | None:
    """Parse a time span in systemd's format into seconds; None if it is invalid or infinite."""
    parts = _SPAN.findall(text.strip())
    if not parts or not re.fullmatch(rf"(\s*{_SPAN.pattern})+\s*", text):
        return None
    if any(unit not in _UNITS for _, unit in parts):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
