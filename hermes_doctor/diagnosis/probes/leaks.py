"""Find secrets of a home where they do not belong: in its logs, and in a git repository."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, read, read_tail
from hermes_doctor.hermes.settings.credential_pool import suspected_secrets
from hermes_doctor.hermes.settings.document import ENV, Source, Text
from hermes_doctor.hermes.settings.inputs import Settings

LOGS = ("gateway.log", "agent.log", "errors.log")
QUICK, DEEP = 64 * 1024, 16 * MEGABYTE
_NAMES = pattern(r"_(API_KEY|TOKEN|SECRET|PASSWORD|KEY)$")
_SHORTEST = 12
"""Shorter values may be in a log for any reason."""


class Leak(NamedTuple):
    """A secret that one log contains."""

    name: str
    """Its variable, or its path in config.yaml."""
    log: str
    line: int | None
    """None if the log was not read from its start."""


def find_in_logs(home: Home, settings: Settings, *, deep: bool) -> list[Leak]:
    """Return every secret of this home that the end of a log contains."""
    secrets = {value.encode("utf-8", "replace"): name for value, name in _secrets(settings)}
    leaks = []
    for name in LOGS if secrets else ():
        try:
            data, snapshot = read_tail(home / "logs" / name, DEEP if deep else QUICK)
        except (FileNotFoundError, CouldNotLook):
            continue
        for value, called in secrets.items():
            place = data.find(value)
            if place >= 0 and _is_usable(value.decode("utf-8", "replace")):
                whole = snapshot.size <= len(data)
                line = data.count(b"\n", 0, place) + 1 if whole else None
                leaks.append(Leak(called, f"logs/{name}", line))
    return leaks


def _secrets(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the values that must not be anywhere else, each with its name."""
    named = [(settings.value(name), name) for name in sorted(settings.file) if _NAMES.search(name)]
    for path, value in suspected_secrets(settings.config):
        named.append((value.strip(), ".".join(map(str, path))))
    for value, name in named:
        if len(value) >= _SHORTEST and any(char.isdigit() for char in value):
            yield value, name


def _is_usable(value: str) -> bool:
    """Tell whether it is a real key, not a placeholder or a reference."""
    from hermes_doctor.hermes.settings.credential_pool import state

    return state(None, Text(value, Source(ENV, "a key"))) == "usable"


_TRACKED = (".env", "auth.json", "config.yaml")
_LARGEST_INDEX = 32 * MEGABYTE


def find_tracked(home: Home) -> list[str]:
    """Return the secret files that the repository's index lists."""
    try:
        data, _ = read(home / ".git" / "index", _LARGEST_INDEX)
    except (FileNotFoundError, CouldNotLook):
        return []
    if data[:4] != b"DIRC":
        return []
    return [name for name in _TRACKED if _lists(data, name.encode())]


def _lists(data: bytes, name: bytes) -> bool:
    """In the index, an entry's flags end with the length of the name, and the name with a NUL."""
    return (b"\0" + bytes([len(name)]) + name + b"\0") in data
