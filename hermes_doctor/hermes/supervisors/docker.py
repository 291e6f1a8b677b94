"""Find the container of a gateway, from inside by its processes, from outside by its engine."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import CONTAINER_HOME, Home
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import commands, root_parent
from hermes_doctor.core.system.files import MEGABYTE, read, user_home, which
from hermes_doctor.hermes.processes.lineage import Ancestor, command_line
from hermes_doctor.hermes.supervisors import docker_stop
from hermes_doctor.hermes.supervisors.units import DOCKER, Unit

_INITS = ("tini", "dumb-init", "docker-init", "catatonit", "gosu", "su-exec", "setpriv", "uv")
_SHELLS = ("sh", "bash", "dash", "ash", "entrypoint.sh", "docker-entrypoi")
_SOCKET = "/var/run/docker.sock"
_STATES = {
    **{"running": "active", "restarting": "activating", "created": "inactive"},
    **{"paused": "inactive", "exited": "inactive", "dead": "failed", "removing": "inactive"},
}
_MOUNTS = "{{json .Id}}\t{{json .Mounts}}\t{{json .Config.Env}}\t{{json .Config.Labels}}"
_REPLACES = '{{.Id}}\t{{.State.Status}}\t{{index .Config.Labels "com.docker.compose.replace"}}'
_ONCE = "com.docker.compose.oneoff"
_HOMES = (str(CONTAINER_HOME), "/root/.hermes")
"""The default homes of Hermes in a container without HERMES_HOME."""
_ERROR = pattern(r"\b[A-Z]\w*Error\b|^ERROR|(?i:permission denied|cannot )")
_MOST = 50_000_000
"""Bytes that are read of an answer about all containers."""
PATIENCE = 30.0
"""Seconds that an engine gets for an answer that is indispensable; small servers are slow."""
POLICIES = ("always", "unless-stopped", "on-failure")


class Folder(NamedTuple):
    """A folder that may be a volume of a container."""

    path: str
    """Without links."""
    identity: tuple[int, int] | None
    """Its device and inode."""


def folder_of(path: Path) -> Folder:
    """Return the folder that has this path now."""
    real = os.path.realpath(path)
    with contextlib.suppress(OSError):
        st = os.stat(real)
        return Folder(real, (st.st_dev, st.st_ino))
    return Folder(real, None)


def is_main(pid: int, ancestors: Sequence[Ancestor]) -> bool:
    """Whether the container ends with this process: only init programs or scripts are above it.

    A process that `docker exec` starts has no parent in the container, and a process that a person
    starts has an interactive shell as parent.
    """
    if pid == 1:
        return True
    if not ancestors or ancestors[-1].pid != 1:
        return False
    return all(
        ancestor.name in _INITS
        or (ancestor.name in _SHELLS and len(command_line(ancestor.pid)) > 1)
        for ancestor in ancestors
    )


def own_container(pid: int, home: Path) -> Unit:
    """Return the container that we are in; its restart policy is not visible from inside."""
    silence = "the restart policy of a container cannot be seen from inside"
    return Unit(DOCKER, "this container", home=home, pid=pid, state="active", silence=silence)


def engine() -> str | None:
    """Return the command of a container engine on this machine that we may use.

    An engine on another machine is not used: it may have a container with a folder of the same
    name.
    """
    if root_parent.is_separate():  # root asks it for us
        found: str | None = root_parent.ask_root("engine")
        return found
    if which("docker"):
        told = engine_address()
        if told.startswith("unix://") or (not told and os.access(_SOCKET, os.R_OK | os.W_OK)):
            return "docker"
    return "podman" if which("podman") else None


def of_process(container: str, home: Path) -> Unit:
    """Return the container with this id, which comes from the control group of a process."""
    nameless = Unit(DOCKER, f"container {container[:12]}", home=home, state="active")
    command = engine()
    if command is None:
        return nameless._replace(silence="its container engine cannot be asked from here")
    try:
        unit = inspect(command, container, home)
    except CouldNotLook as why:
        return nameless._replace(silence=str(why))
    return unit or nameless._replace(silence=f"{command} does not know its container")


def of_home(home: Home) -> Unit | None:
    """Return the container that has this home as a volume, the first if there are several."""
    command = engine()
    ids = all_of_home(command, home) if command else None
    return inspect(command, ids[0], home.path) if command and ids else None


def all_of_home(command: str, home: Home, limit: float | None = None) -> list[str] | None:
    """Return the ids of the containers that have this home as a volume; None if unknown.

    The engine's own filter for volumes is not used: it confuses paths inside a container with
    paths outside, and it finds neither folders inside a volume nor the folder of a named volume.
    """
    if root_parent.is_separate():  # the settings of all containers are not for the home's owner
        found: list[str] | None = root_parent.ask_root("containers", limit)
        return found
    return all_of_folder(command, folder_of(home.path), limit)


def all_of_folder(command: str, folder: Folder, limit: float | None = None) -> list[str] | None:
    """Do the same for a folder, whatever has its name meanwhile."""
    listed = commands.ask(command, "ps", "--all", "--no-trunc", "--format", "{{.ID}}", limit=limit)
    ids = listed.out.split()
    if listed.code or not ids:
        return None if listed.code else []
    words = ("inspect", "--type", "container", "--format", _MOUNTS, *ids)
    answer = commands.ask(command, *words, limit=limit, max_bytes=_MOST)
    if answer.code and not answer.out.strip():
        return None
    return [id for line in answer.out.splitlines() if (id := _if_of_home(line, folder))]


def only_container(command: str, ids: Sequence[str], home: Home) -> Unit:
    """Return the only container of a home; CouldNotLook if there is none or more than one."""
    unfinished = unfinished_replacements(command, ids)
    ids = [id for id in ids if id not in unfinished]
    if len(ids) != 1:
        many = f"{len(ids)} containers have" if ids else "no container has"
        raise CouldNotLook("{many} this home as a volume", many=many)
    unit = inspect(command, ids[0], home.path, PATIENCE)
    if unit is None:
        raise CouldNotLook("the container of this home no longer exists")
    return unit


def unfinished_replacements(command: str, ids: Sequence[str]) -> list[str]:
    """Return the containers that Compose created as a replacement before it was interrupted.

    They were never started, and the container that they should replace still exists.
    """
    if len(ids) < 2:
        return []
    words = ("inspect", "--type", "container", "--format", _REPLACES, *ids)
    answer = commands.ask(command, *words, limit=PATIENCE)
    found = []
    for line in answer.out.splitlines():
        id, _, told = line.partition("\t")
        status, _, other = told.partition("\t")
        if status == "created" and other in ids:
            found.append(id)
    return found


def _if_of_home(line: str, folder: Folder) -> str:
    """Return the id of a container whose Hermes uses this home; empty for any other container.

    The home must be a writable volume, or be inside one, at the path of the container's Hermes
    home. Other containers may mount the folder to show its files, to back them up or to run one
    command.
    """
    import json

    try:
        id, mounts, variables, labels = (json.loads(part) for part in line.split("\t"))
        told = dict(str(pair).partition("=")[::2] for pair in variables or ()).get("HERMES_HOME")
        own = (os.path.normpath(told),) if told else _HOMES
        if (labels or {}).get(_ONCE) == "True":
            return ""
        for mount in mounts or ():
            inner = _within(str(mount.get("Source") or ""), folder)
            if inner is None or mount.get("RW") is False:
                continue
            place = os.path.normpath(os.path.join(mount["Destination"], inner))
            if place in own:
                return str(id)
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        pass
    return ""


def _within(source: str, folder: Folder) -> str | None:
    """Return the path of the home relative to a mounted folder; None if it is not inside."""
    if not source:
        return None
    above = os.path.realpath(source)
    with contextlib.suppress(OSError):
        st = os.stat(above)
        if (st.st_dev, st.st_ino) == folder.identity:  # it can be mounted at a second place
            return "."
    inner = os.path.relpath(folder.path, above)
    return None if inner == ".." or inner.startswith("../") else inner


def inspect(command: str, container: str, home: Path, limit: float | None = None) -> Unit | None:
    """Ask an engine about a container; None if it does not know it."""
    answer = commands.ask(command, "inspect", "--type", "container", container, limit=limit)
    if answer.code:
        return None
    unit = read_inspect(answer.out, home)
    if unit is None or unit.settings["Stopped"]:
        return unit
    stopped = docker_stop.look_further(command, unit)
    return unit._replace(settings={**unit.settings, "Stopped": stopped})


def read_inspect(text: str, home: Path) -> Unit | None:
    """Parse the JSON that `docker inspect` or `podman inspect` prints about a container."""
    import json

    try:
        document = json.loads(text)
        one: dict[str, Any] = document[0]
        state: dict[str, Any] = one.get("State") or {}
        host: dict[str, Any] = one.get("HostConfig") or {}
        config: dict[str, Any] = one.get("Config") or {}
        policy: dict[str, Any] = host.get("RestartPolicy") or {}
        labels: dict[str, Any] = config.get("Labels") or {}
        mounts: list[dict[str, Any]] = one.get("Mounts") or []
        status = str(state.get("Status") or "")
        settings = {
            "Id": str(one.get("Id") or ""),
            "Status": status,
            "Restart": str(policy.get("Name") or "no"),
            "NRestarts": str(one.get("RestartCount") or 0),
            "ExecMainStatus": str(state.get("ExitCode") or 0),
            "OOMKilled": "yes" if state.get("OOMKilled") else "no",
            "Project": str(labels.get("com.docker.compose.project") or ""),
            "Service": str(labels.get("com.docker.compose.service") or ""),
            "ProjectFolder": str(labels.get("com.docker.compose.project.working_dir") or ""),
            "ProjectFiles": str(labels.get("com.docker.compose.project.config_files") or ""),
            "Memory": str(host.get("Memory") or 0),
            "Healthcheck": "yes" if _has_health_check(config) else "no",
            "Mounts": "\n".join(str(mount.get("Destination")) for mount in mounts),
            "Image": str(one.get("Image") or ""),
            "ImageName": str(config.get("Image") or ""),
            "Version": str(labels.get("org.opencontainers.image.version") or ""),
            "StartedAt": str(state.get("StartedAt") or ""),
            "Record": docker_stop.record_of(str(one.get("HostnamePath") or "")),
            "Stopped": docker_stop.by_state(state),
        }
        pairs = [str(pair).partition("=") for pair in config.get("Env") or ()]
        return Unit(
            kind=DOCKER,
            name=str(one.get("Name") or settings["Id"][:12]).lstrip("/"),
            home=home,
            pid=int(state.get("Pid") or 0) or None,
            state=_STATES.get(status, "unknown"),
            settings=settings,
            environment={name: value for name, _, value in pairs},
            user=str(config.get("User") or "") or None,
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        raise CouldNotLook("could not understand the answer of the container engine") from None


def _has_health_check(config: Mapping[str, Any]) -> bool:
    test = (config.get("Healthcheck") or {}).get("Test") or []
    return bool(test) and test[0] != "NONE"


def user_ids(unit: Unit) -> tuple[int, int] | None:
    """Return uid and gid of the user whom the settings of a container name; None if unknown.

    An image that starts as root usually changes to another user by itself.
    """
    name, _, group = (unit.user or "").partition(":")
    if name.isdecimal():
        return int(name), int(group) if group.isdecimal() else int(name)
    command = engine() if name and name != "root" else None
    if command is None:
        return None
    # Also a container that does not run gives out its list of users, as an archive.
    answer = commands.ask(command, "cp", f"{unit.settings['Id']}:/etc/passwd", "-")
    match = re.search(rf"(?m)(?:^|\0){re.escape(name)}:[^:\n]*:(\d+):(\d+):", answer.out)
    return (int(match[1]), int(match[2])) if match else None


def last_output(unit: Unit) -> str:
    """Return the last error in the output of a container, else its last line; empty if unknown."""
    command, id = engine(), unit.settings.get("Id")
    if command is None or not id:  # the engine does not know the container
        return ""
    try:
        answer = commands.ask(command, "logs", "--tail", "40", id)
    except CouldNotLook:
        return ""
    lines = [line.strip() for line in (answer.out + answer.err).splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line)]
    return (errors or lines or [""])[-1]


def will_restart(unit: Unit) -> tuple[bool | None, str]:
    """Return whether the engine restarts a container (None: unknown), and a clause with why."""
    policy = unit.settings.get("Restart")
    if policy is None:
        return None, unit.silence or "its restart policy is not known"
    why = f"container {unit.name} has the restart policy {policy}"
    return policy in POLICIES, why


UNKNOWN_ADDRESS = "unknown"


def engine_address() -> str:
    """Return the engine's address from DOCKER_HOST or the context; empty for the default socket."""
    if host := os.environ.get("DOCKER_HOST"):
        return (
            host if "://" in host else f"unix://{host}" if host.startswith("/") else UNKNOWN_ADDRESS
        )
    own = os.environ.get("DOCKER_CONFIG")
    folder = Path(own) if own else user_home() / ".docker"
    name = os.environ.get("DOCKER_CONTEXT") or _docker_document(folder / "config.json").get(
        "currentContext"
    )
    if not name or name == "default":
        return ""
    import hashlib

    place = folder / "contexts" / "meta" / hashlib.sha256(str(name).encode()).hexdigest()
    try:
        return str(_docker_document(place / "meta.json")["Endpoints"]["docker"]["Host"])
    except (LookupError, TypeError):
        return UNKNOWN_ADDRESS


def _docker_document(path: Path) -> dict[str, Any]:
    """Read a small JSON file of Docker; empty if it is missing or invalid."""
    import json

    try:
        found = json.loads(read(path, MEGABYTE)[0])
    except (FileNotFoundError, NotADirectoryError, CouldNotLook, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
