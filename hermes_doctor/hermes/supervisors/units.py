"""Service definitions that run a gateway, and the unit files of systemd with their drop-ins."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
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


SYSTEMD_USER, SYSTEMD_SYSTEM = "systemd-user", "systemd-system"
LAUNCHD, S6, DOCKER = "launchd", "s6", "docker"
OTHER = "other"
"""A supervisor that this tool knows by name only: supervisord, runit, pm2."""
_BY_SYSTEMD = ("watchdog", "oom-kill")
"""Results of a unit whose process systemd or the kernel ended, for which nobody asked."""
_MANAGERS = {
    SYSTEMD_USER: "systemd",
    SYSTEMD_SYSTEM: "systemd",
    LAUNCHD: "launchd",
    S6: "s6",
    DOCKER: "Docker",
}


class Unit(NamedTuple):
    """A service definition that runs a gateway: systemd unit, plist, s6 slot or container."""

    kind: str
    """One of the constants above."""
    name: str
    """Its name for the supervisor: `hermes-gateway.service`, `ai.hermes.gateway`, `gateway-x`."""
    path: Path | None = None
    """The file that defines it."""
    home: Path | None = None
    """The home that it would run on."""
    pid: int | None = None
    """Its main process according to the supervisor."""
    state: str = "unknown"
    """`active`, `activating`, `inactive`, `failed`; `unknown` if the supervisor did not answer."""
    settings: Mapping[str, str] = {}
    """What the supervisor reports: Restart, Result, NRestarts, ExecMainStatus and the like."""
    environment: Mapping[str, str] = {}
    """The variables that it sets for the gateway. They contain secrets: only names are shown."""
    user: str | None = None
    """The user that it runs as, if it names one."""
    program: tuple[str, ...] = ()
    """The command line that it starts, split into words."""
    folder: Path | None = None
    """The working directory, which must exist for the start."""
    files: tuple[Path, ...] = ()
    """Every file that contributes to the definition, in ascending priority."""
    declared: Mapping[str, str] = {}
    """The settings in those files, each with its last value; known without the supervisor."""
    manager: int | None = None
    """The uid of the systemd user manager; None for the system manager."""
    silence: str = ""
    """Why the supervisor did not answer; empty if it did."""

    @property
    def manager_name(self) -> str:
        """What people call its supervisor."""
        return _MANAGERS.get(self.kind, self.name)

    @property
    def systemd(self) -> bool:
        """Whether it is a systemd unit."""
        return self.kind in (SYSTEMD_USER, SYSTEMD_SYSTEM)

    @property
    def enabled(self) -> bool | None:
        """Whether it starts by itself with the machine or the login; None: unknown."""
        failure = self.settings.get("UnitFileState", "")
        if failure in ("enabled", "enabled-runtime", "linked", "alias", "generated", "transient"):
            return True
        return False if failure in ("disabled", "masked", "static", "indirect") else None

    @property
    def starts_at_boot(self) -> bool | None:
        """Whether it is enabled, or another unit starts it; None: unknown."""
        if any(self.settings.get(name) for name in ("WantedBy", "RequiredBy", "TriggeredBy")):
            return True
        return self.enabled

    @property
    def can_be_enabled(self) -> bool:
        """Whether it is a systemd unit whose file says what would start it."""
        return self.systemd and self.settings.get("UnitFileState") == "disabled"

    @property
    def was_stopped(self) -> bool:
        """Whether a person or a command stopped it, so that its supervisor does not restart it."""
        if self.kind == DOCKER:
            return self.settings.get("Stopped") == "yes"
        return self.systemd and was_stopped(lambda name: self.settings.get(name, ""), self.state)

    @property
    def is_between_starts(self) -> bool:
        """Whether its supervisor starts it, or is about to start it again after it failed."""
        if self.state == "activating":
            return True
        if self.state != "deactivating" or not self.systemd:
            return False
        began, left, ended = (
            self.number(f"{name}TimestampMonotonic")
            for name in ("InactiveExit", "ActiveExit", "ExecMainExit")
        )
        return left < began or 0 < ended <= left  # a stop ends the process after it left "active"

    @property
    def command(self) -> str:
        """The command for its systemd manager, without the verb: `systemctl --user`."""
        return {SYSTEMD_USER: "systemctl --user", SYSTEMD_SYSTEM: "sudo systemctl"}.get(
            self.kind, ""
        )

    def number(self, name: str) -> int:
        """Return a numeric setting; 0 when it is not set."""
        text = self.settings.get(name, "")
        return int(text) if text.isascii() and text.isdigit() else 0


def was_stopped(get_property: Callable[[str], str], state: str) -> bool:
    """Whether a systemd unit was stopped on purpose, judging by its properties.

    If systemd stops a unit, the unit leaves its active state before its process ends; after a crash
    it leaves it afterwards. A unit that waits for its restart becomes inactive only if it is
    stopped; if systemd gives up, it becomes failed. Restart= and the exit status do not matter.
    """
    if state not in ("inactive", "failed") or get_property("Result") in _BY_SYSTEMD:
        return False
    began, left, ended, rested, changed = (
        int(value) if (value := get_property(f"{name}TimestampMonotonic")).isdecimal() else 0
        for name in ("InactiveExit", "ActiveExit", "ExecMainExit", "InactiveEnter", "StateChange")
    )
    if began > ended:  # it waited for its next start; a later `reset-failed` is not a stop
        return state == "inactive" and ended > 0 and rested == changed
    return 0 < began <= left < ended


def home_of(program: Sequence[str], environment: Mapping[str, str], user: Path) -> Path:
    """Return the home that a command works on, given its variables and its user's folder."""
    from hermes_doctor.hermes.processes import home_of as home_of_module

    base = Path(environment.get("HERMES_HOME") or user / ".hermes")
    profile = home_of_module.profile_in(split_command(program))
    if profile == "default" and base.parent.name == "profiles":
        base = base.parent.parent
    elif profile not in (None, "", "default") and base.parent.name != "profiles":
        base = base / "profiles" / str(profile)
    try:
        return base.resolve()
    except (OSError, RuntimeError):
        return base


def runs_gateway(program: Sequence[str]) -> bool:
    """Whether a command runs a gateway, directly or through a shell, sudo or uv."""
    from hermes_doctor.hermes.processes import home_of as home_of_module

    found = split_command(program)
    return any(home_of_module.is_gateway(found[n:]) for n in range(len(found)))


def split_command(program: Sequence[str]) -> list[str]:
    """Return the words of a command; the script of a shell's -c is split into words, too."""
    found: list[str] = []
    for word in program:
        found += word.split() if " " in word and "gateway" in word else [word]
    return found
