"""Find the other homes of this machine: their running gateways, and the bots that they share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Gateway, Trouble, known_or
from hermes_doctor.core.system import privileges
from hermes_doctor.core.system.files import list_folder, read
from hermes_doctor.diagnosis.probes import port_test
from hermes_doctor.hermes.processes import gateway_processes, process_stat, runtime_files, sockets
from hermes_doctor.hermes.processes.home_of import (
    home_by_environment,
    home_by_lock_file,
    is_gateway,
    is_same_folder,
    profile_in,
)
from hermes_doctor.hermes.processes.lineage import command_line
from hermes_doctor.hermes.settings import config_yaml, env_file, inputs
from hermes_doctor.hermes.settings.env_file import LIMIT, NAME
from hermes_doctor.hermes.settings.inputs import Settings

if TYPE_CHECKING:
    from hermes_doctor.hermes.processes.gateway_processes import CommandLines
    from hermes_doctor.hermes.processes.runtime_files import Runtime


BELIEVING = (0, 17)
"""The first release that trusts the state file without checking the lock."""
ENDED = (None, "stopped", "startup_failed")
"""The states in which Hermes does not believe that the named process is a gateway."""


class OtherGateway(NamedTuple):
    """A running gateway of another home."""

    pid: int
    home: Path
    blocks: bool = False
    """Whether Hermes takes it for the gateway of this home and does not start another one."""


def running_elsewhere(home: Home, lines: CommandLines) -> Iterator[OtherGateway]:
    """Yield the running gateways of other homes among these processes, as far as we may see."""
    for candidate in gateway_processes.candidates(lines):
        if (
            candidate.claim
            and candidate.seems_to_work
            and not is_same_folder(candidate.claim.home, home.path)
        ):
            yield OtherGateway(candidate.gateway.pid, candidate.claim.home)


def named_in(home: Home, runtime: Runtime, release: tuple[int, ...] | None) -> OtherGateway | None:
    """Return the gateway of another home that the files of this home name, as after a copy."""
    for owner in (runtime.state_owner, runtime.pid_file, runtime.lock_file):
        seen = process_stat.stat(owner.pid) if owner else None
        if owner is None or seen is None or seen.doing == "Z":
            continue
        if owner.start_time not in (None, seen.start_time):
            continue
        argv = command_line(owner.pid)
        if not is_gateway(argv):
            continue
        claim = home_by_lock_file(owner.pid) or home_by_environment(owner.pid, profile_in(argv))
        if claim is None or is_same_folder(claim.home, home.path):
            continue
        believed = owner is runtime.state_owner and runtime.state not in ENDED
        trusting = release is None or release >= BELIEVING
        return OtherGateway(owner.pid, claim.home, believed and trusting)
    return None


_MOST = 100
_RAN = ("gateway_state.json", "gateway.pid", "gateway.lock")


class SharedBot(NamedTuple):
    """A bot that two homes use."""

    scope: str
    """Hermes' name for its lock."""
    variable: str
    home: Path
    """The other home."""
    ran: bool
    """Whether a gateway has ever run on the other home."""
    pid: int | None = None
    """The running gateway of the other home; None if none was seen."""


def homes_beside(home: Home) -> list[Path]:
    """Return the other homes under the same root."""
    root = home.path.parent.parent if home.profile else home.path
    paths = known_or([], lambda: [root, *Home(root).profiles()[:_MOST]])
    return [path for path in paths if path != home.path]


def shared_bots(home: Home, own: Settings, running: Sequence[OtherGateway] = ()) -> list[SharedBot]:
    """Return this home's bots that another home also uses; values are only compared.

    The other homes are those under the same root and those of the running gateways.
    """
    bots = {
        variable: (scope, value)
        for scope, variable in IDENTITIES.items()
        if (value := own.value(variable))
    }
    if not bots:
        return []
    found: list[SharedBot] = []
    resting = [
        path
        for path in homes_beside(home)
        if not any(is_same_folder(path, r.home) for r in running)
    ]
    for other, pid in [
        *((one.home, one.pid) for one in running),
        *((one, None) for one in resting),
    ]:
        theirs = _variables(other, pid)
        for variable, (scope, value) in bots.items():
            if theirs.get(variable, "").strip() == value:
                ran = pid is not None or any(os.path.lexists(other / name) for name in _RAN)
                found.append(SharedBot(scope, variable, other, ran, pid))
    return found


def _variables(home: Path, pid: int | None) -> dict[str, str]:
    """Return the variables of another home and its gateway, as far as we may read them.

    Root opens no file in a home of another user, so there it sees only what the gateway was given.
    """
    given = (process_stat.environment(pid) if pid else None) or {}
    if _is_of_another_user(home):
        return given
    try:
        data, _ = read(home / NAME, LIMIT)
    except (FileNotFoundError, CouldNotLook):
        return given
    return given | inputs.parse_variables(data.decode("utf-8-sig", "replace"))


def _is_of_another_user(home: Path) -> bool:
    try:
        return sys.platform == "linux" and privileges.owner_of_home(home) is not None
    except (OSError, Trouble):  # it is gone, or others may write to it
        return True


_SETTING = "multiplex_profiles"
_VARIABLE = "GATEWAY_MULTIPLEX_PROFILES"


class Listed(NamedTuple):
    """The gateway of the root home, which lists this profile as served."""

    gateway: Gateway
    stale: bool
    """It does not serve the profile: an earlier gateway wrote the list."""


def listed_by(home: Home) -> Listed | None:
    """Return the running gateway whose state file lists this profile as served."""
    if home.profile is None:
        return None
    root = Home(home.path.parent.parent)
    runtime = runtime_files.find(root)
    if home.profile not in runtime.served:
        return None
    running = gateway_processes.gateways_of(root)
    owner = runtime_files.with_our_pids(runtime, [one.pid for one in running]).state_owner
    gateway = next((one for one in running if owner is not None and one.pid == owner.pid), None)
    return Listed(gateway, _is_alone(root, gateway)) if gateway else None


def _is_alone(root: Home, gateway: Gateway) -> bool:
    """Whether the root's gateway was started with settings that let it serve no other profile.

    Hermes keeps the list of an earlier gateway in gateway_state.json if the next one writes none.
    """
    try:
        config, env = config_yaml.read(root), env_file.read(root)
        environment = process_stat.environment(gateway.pid)
    except (CouldNotLook, OSError):
        return False
    values = config.values if config else None
    if config is None or values is None or environment is None or _VARIABLE in environment:
        return False
    if config.snapshot.mtime_ns / 1e9 > gateway.started_at.timestamp():
        return False
    if env and _VARIABLE.encode() in env.data:
        return False
    nested = values.get("gateway")
    nested = nested.get(_SETTING) if isinstance(nested, dict) else None
    return False in (values.get(_SETTING), nested) and True not in (values.get(_SETTING), nested)


_LIMIT = 64 * 1024
IDENTITIES = {
    "telegram-bot-token": "TELEGRAM_BOT_TOKEN",
    "discord-bot-token": "DISCORD_BOT_TOKEN",
    "slack-app-token": "SLACK_APP_TOKEN",
    "weixin-bot-token": "WEIXIN_TOKEN",
    "qqbot-appid": "QQ_APP_ID",
    "signal-phone": "SIGNAL_ACCOUNT",
    "feishu-app-id": "FEISHU_APP_ID",
}
"""The variable whose value each kind of lock is named after."""


class BotHolder(NamedTuple):
    """A running process that holds the lock of a bot."""

    scope: str
    pid: int
    path: Path


def bot_holders(settings: Settings, uid: int) -> list[BotHolder]:
    """Find the holders of the bots in these settings; `uid` is the gateway's user."""
    import hashlib

    folder = _folder(settings, uid)
    there = set(list_folder(folder))
    found = []
    for scope, variable in IDENTITIES.items():
        value = settings.value(variable)
        name = f"{scope}-{hashlib.sha256(value.encode()).hexdigest()[:16]}.lock" if value else ""
        if name in there and (pid := _holder(folder / name)) is not None:
            found.append(BotHolder(scope, pid, folder / name))
    return found


def _folder(settings: Settings, uid: int) -> Path:
    named = settings.value("HERMES_GATEWAY_LOCK_DIR")
    if named:
        return Path(named)
    state = settings.value("XDG_STATE_HOME")
    home = settings.value("HOME") or _user_folder(uid)
    return Path(state or f"{home}/.local/state") / "hermes" / "gateway-locks"


def _user_folder(uid: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(uid).pw_dir
    except (ImportError, KeyError):
        return os.path.expanduser("~")


def _holder(path: Path) -> int | None:
    """Return the process that a lock names, if it is still the same process."""
    import json

    try:
        said = json.loads(read(path, _LIMIT)[0])
        pid, began = said["pid"], said.get("start_time")
    except (FileNotFoundError, CouldNotLook, ValueError, TypeError, KeyError, AttributeError):
        return None
    if not isinstance(pid, int) or pid <= 0:
        return None
    seen = process_stat.stat(pid)
    if seen is None or (began is not None and seen.start_time != began):
        return None  # it has ended, and another process may have its pid by now
    return pid


def is_port_of_other_home(url: str, home: Path) -> bool:
    """Tell whether a visible gateway of another home listens at this address."""
    place = port_test.parse(url) if url else None
    if place is None or not place.loopback:
        return False
    return any(
        candidate.claim is not None
        and not is_same_folder(candidate.claim.home, home)
        and port_test.reachable(candidate.gateway.pid)
        and any(door.local[1] == place.port for door in sockets.listeners(candidate.gateway.pid))
        for candidate in gateway_processes.candidates()
    )
