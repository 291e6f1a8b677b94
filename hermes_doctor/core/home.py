"""Find Hermes homes, and name the files in them and those that this tool has for them outside."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from hermes_doctor.core.known_secrets import watch_home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import sentences, text
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.preferences import effective, places
from hermes_doctor.core.system import limits
from hermes_doctor.core.system.files import StrPath, list_folder, user_home

CONTAINER_HOME = Path("/opt/data")

MARKERS = (
    "config.yaml",
    ".env",
    "state.db",
    "auth.json",
    "gateway.pid",
    "gateway.lock",
    "gateway_state.json",
    "kanban.db",
    "SOUL.md",
    "logs",
    "sessions",
    "cron",
    "profiles",
    "backups/doctor",
)
"""A folder is a home when it holds at least one of these."""

DATABASES = (
    "state.db",
    "kanban.db",
    "response_store.db",
    "projects.db",
    "verification_evidence.db",
    "memory_store.db",
    "retaindb_queue.db",
    "cron/executions.db",
    "gateway/discord_message_recovery.db",
)
SIDECARS = ("-wal", "-shm", "-journal")
BACKGROUND_LOG = "logs/gateway-background.log"
"""The output of a gateway that this tool started in the background."""
CACHES = ("response_store.db", "cron/executions.db")
"""Databases without lasting data: Hermes creates them again, but a damaged one stops it."""
EXAMPLE = ".hermes-doctor-example"
"""The file that marks the home of `hermes-doctor demo`."""
_LOSSES = {
    "state.db": "The bot remembers nothing and saves nothing.",
    "kanban.db": "No task of the board can be read or started.",
    "response_store.db": "A gateway with the API server enabled cannot start.",
    "cron/executions.db": "No scheduled job runs.",
}


def loss(name: str) -> str:
    """Return a sentence that says what does not work while this database cannot be used."""
    file = name.rpartition("/")[2]
    return _LOSSES.get(name) or _LOSSES.get(file, "Everything that uses it fails.")


def database_of(path: Path) -> Path:
    """Return the database that a sidecar belongs to; any other path is returned as it is."""
    name = path.name
    if not name.endswith(SIDECARS):
        return path
    for suffix in SIDECARS:
        name = name.removesuffix(suffix)
    return path.with_name(name)


def is_database(path: StrPath) -> bool:
    """Whether a path is one of Hermes' databases or a sidecar of one."""
    name = os.fspath(path).rpartition("/")[2]
    return ".db" in name and database_of(Path(name)).name.endswith(".db")


class Home(NamedTuple):
    """One Hermes data folder."""

    path: Path
    named: Path | None = None
    """The path as the user gave it; it may contain symlinks."""

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @property
    def profile(self) -> str | None:
        """The profile's name, or None for a root home."""
        return self.path.name if self.path.parent.name == "profiles" else None

    @property
    def is_example(self) -> bool:
        """Whether `hermes-doctor demo` made this home; it has no Hermes, and none is started."""
        return os.path.lexists(self.path / EXAMPLE)

    @property
    def vault(self) -> Path:
        """The folder of this home's backups, unless the user chooses another vault."""
        return self.path / "backups" / "doctor"

    @property
    def runs(self) -> Path:
        """The folder of this home's receipts; it does not depend on where the backups are."""
        return self.vault / "runs"

    @property
    def option(self) -> str:
        """` --home PATH` if a pasted command needs it to find this home, else empty."""
        import shlex

        usual = (user_home() / ".hermes", CONTAINER_HOME)
        return "" if self.path in usual else f" --home {shlex.quote(str(self.path))}"

    def name_of(self, path: Path) -> str:
        """Return a path as reports show it: relative if it is inside the home."""
        text, base = str(path), str(self.path)
        return text[len(base) + 1 :] if text.startswith(f"{base}/") else text

    def profiles(self) -> list[Path]:
        """The profile homes under this root home."""
        folder = self.path / "profiles"
        return [folder / name for name in list_folder(folder) if os.path.isdir(folder / name)]

    def databases(self) -> Iterator[Path]:
        """Yield every path where this home may have a database, kanban boards included."""
        for name in DATABASES:
            yield self.path / name
        yield from self.boards()

    def boards(self) -> Iterator[Path]:
        """Yield the databases of the kanban boards other than the default one."""
        folder = self.path / "kanban" / "boards"
        for name in list_folder(folder):
            yield folder / name / "kanban.db"


def looks_like_home(path: Path) -> bool:
    """Whether the folder contains any file or folder that Hermes creates."""
    try:
        return any(os.path.lexists(path / name) for name in MARKERS)
    except OSError:
        return False


def find(option: Path | None, environ: Mapping[str, str] = os.environ) -> Home:
    """Return the home to work on: the option, else HERMES_HOME, config.toml, default folders."""
    named = [("--home", option.expanduser())] if option else []
    if not option and environ.get("HERMES_HOME"):
        named = [("HERMES_HOME", Path(environ["HERMES_HOME"]).expanduser())]
    elif not option and (chosen := effective.load().find("home")):
        named = [(chosen.origin, chosen.value)]
    for source, path in named:
        limits.note_drive(path)
        if not os.path.exists(path):
            raise Trouble(
                sentences(
                    text("{source} names {path}, which does not exist.", source=source, path=path),
                    _HINT,
                )
            )
        if not os.path.isdir(path):
            raise Trouble(
                sentences(
                    text("{source} names {path}, which is not a folder.", source=source, path=path),
                    _HINT,
                )
            )
        if not os.access(path, os.R_OK | os.X_OK):
            raise Trouble(
                "{source} names {path}, which you may not read. Run this with sudo.",
                source=source,
                path=path,
            )
        if not looks_like_home(path):
            raise Trouble(
                sentences(
                    text(
                        "{source} names {path}, which contains no file of Hermes (config.yaml, "
                        ".env, state.db, …).",
                        source=source,
                        path=path,
                    ),
                    _HINT,
                )
            )
        return _trusted(path)
    looked = [user_home() / ".hermes", CONTAINER_HOME]
    for path in looked:
        limits.note_drive(path)
        if os.path.isdir(path) and looks_like_home(path):
            return _trusted(path)
    others = _homes_of_others(environ)
    raise Trouble(
        sentences(
            text(
                "No Hermes home found. HERMES_HOME is not set, and neither {first} nor {second} "
                "contains one.",
                first=looked[0],
                second=looked[1],
            ),
            text("There is one at {home}: add --home {home}.", home=others[0]) if others else "",
            _HINT,
        )
    )


def _trusted(path: Path) -> Home:
    """The home in this folder, if the operator's own files are outside of it."""
    home = Home(path.resolve(), path)
    places.refuse_inside(home.path)
    watch_home(home.path)
    return home


def root_home(home: Home) -> Home:
    """Return the root home of a profile, since the Hermes installation serves all its profiles.

    A root home is returned as it is, and so is a profile whose root home is not accessible.
    """
    root = home.path.parent.parent
    is_one = any(os.path.lexists(root / name) for name in ("config.yaml", "state.db"))
    if home.profile is None or not is_one or not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        return home
    return Home(root)


_HINT = "Name the folder with --home DIR, or try the tool first: hermes-doctor demo"


def _homes_of_others(environ: Mapping[str, str]) -> list[Path]:
    """Return the home of the user who called sudo, if there is one."""
    user = environ.get("SUDO_USER")
    path = Path(f"~{user}").expanduser() / ".hermes" if user else None
    return [path] if path and os.path.isdir(path) and looks_like_home(path) else []


def all_homes(first: Home | None, used: list[Path]) -> list[Home]:
    """Return the home, the other homes of the same root, and every home in use by a gateway.

    A profile that we may not enter counts too: its report then says that it could not be checked.
    """
    roots = [first.path] if first else []
    roots += used
    found: dict[Path, Home] = {}
    for path in roots:
        home = Home(path.resolve())
        root = Home(home.path.parent.parent) if home.profile else home
        for candidate in (root.path, home.path, *_profiles(root)):
            closed = os.path.isdir(candidate) and not os.access(candidate, os.X_OK)
            if closed or (os.path.isdir(candidate) and looks_like_home(candidate)):
                found.setdefault(candidate.resolve(), Home(candidate.resolve()))
    for path in found:
        watch_home(path)
    return list(found.values())


def _profiles(root: Home) -> list[Path]:
    try:
        return root.profiles()
    except CouldNotLook:
        return []


SERVICE_VARIABLE = "HERMES_DOCTOR_SERVICE"
"""Environment variable that the unit of `watch install` sets."""


PREFIX = "hermes-doctor-watch"
SYSTEM_STATE = Path("/var/lib")


def state_folder() -> Path:
    """The folder where the commands and watches of this user store their state."""
    base = os.environ.get("XDG_STATE_HOME", "")
    state = Path(base) if os.path.isabs(base) else user_home() / ".local" / "state"
    return state / "hermes-doctor"


def identity(home: Home) -> str:
    """A short name of a home for files and units: its name and part of its path's digest."""
    import hashlib
    import re

    name = home.profile or home.path.name.lstrip(".")
    place = hashlib.sha256(os.fsencode(home.path)).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')[:24] or 'home'}-{place}"


def system_state_folder(home: Home) -> Path:
    """Where the system service of a home stores its state; its user may have no such folder."""
    if sys.platform == "darwin":
        return state_folder()
    return SYSTEM_STATE / f"{PREFIX}-{identity(home)}" / "hermes-doctor"


def config_environment() -> dict[str, str]:
    """Where this user's own settings are, if not in the usual place; a job must know it."""
    chosen = os.environ.get("XDG_CONFIG_HOME", "")
    return {"XDG_CONFIG_HOME": chosen} if os.path.isabs(chosen) else {}
