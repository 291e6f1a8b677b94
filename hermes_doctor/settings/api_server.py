"""Determine where the API server would listen, and whether its key is strong enough."""

from __future__ import annotations

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings.inputs import ABSENT, SettingInputs, section
from hermes_doctor.settings.resolved import Resolved
from hermes_doctor.settings.sourced_text import BUILT_IN, Source, Text

NAME = "api_server"
_HOST = "127.0.0.1"
_STRONG, _FAIR = 16, 8


class ApiServer(NamedTuple):
    """The API server that would start, without its key."""

    host: str
    local: bool
    """Whether only this machine can reach it."""
    fault: str | None
    """What is wrong with its key; None if nothing is."""
    refused: bool
    """Whether this keeps it from starting."""
    needed: int
    """The minimum length of the key; 0 if none is required."""
    place: str | None
    """Where the key is set."""
    host_place: str


def find(found: Resolved) -> ApiServer | None:
    """Return the API server if these settings enable it."""
    if not any(one.name == NAME for one in found.platforms):
        return None
    world = found.world
    said = _written(world, "host") or world.getenv("API_SERVER_HOST")
    if world.getenv("API_SERVER_HOST") and _by_variables(world):
        said = world.getenv("API_SERVER_HOST")
    host, source = (str(said), said.source) if said else (_HOST, BUILT_IN)
    key = secret_key(world)
    local = is_local(host)
    needed = _needed(world, local=local)
    fault = _fault(world, key, needed=needed, local=local)
    return ApiServer(
        host=host,
        local=local,
        fault=fault,
        refused=fault is not None and _refuses(world, key, needed),
        needed=needed,
        place=key.source.place if key else None,
        host_place=_place(source),
    )


def secret_key(world: SettingInputs) -> Text:
    """Return the key that a client must send; a secret. Empty if none is set."""
    return world.getenv("API_SERVER_KEY") or _written(world, "key")


def _by_variables(world: SettingInputs) -> bool:
    """Tell whether variables enable it; then they also decide where it listens."""
    on = world.getenv("API_SERVER_ENABLED").lower() in ("true", "1", "yes")
    return on or bool(world.getenv("API_SERVER_KEY"))


def _written(world: SettingInputs, key: str) -> Text:
    """Return the value in config.yaml; only `extra` is read."""
    places = [("platforms",), *([("gateway", "platforms")] if world.release.since(0, 16) else [])]
    for place in places:
        path = (*place, NAME, "extra")
        value = section(world.raw, *path).get(key)
        if value:
            return Text(str(value), world.document.source(*path, key))
    return ABSENT


def is_local(host: str) -> bool:
    """Tell whether an address is this machine's own; unknown names count as not local."""
    bare = host.strip().strip("[]").lower()
    return bare in ("localhost", "::1", "::ffff:127.0.0.1") or bare.startswith("127.")


def _needed(world: SettingInputs, *, local: bool) -> int:
    """Return how many characters of a key this release requires."""
    if world.release.since(0, 18):
        return _STRONG
    if not local:
        return _FAIR
    return 1 if world.release.since(0, 15) else 0


def _fault(world: SettingInputs, key: Text, *, needed: int, local: bool) -> str | None:
    bare = key.strip()
    if not bare:
        return "missing" if needed else None
    if needed > 1 and bare.lower() in world.release.placeholders:
        return "a placeholder"
    if len(bare) < needed:
        return f"shorter than {needed} characters"
    return None if local or len(bare) >= _STRONG else f"shorter than {_STRONG} characters"


def _refuses(world: SettingInputs, key: Text, needed: int) -> bool:
    bare = key.strip()
    return len(bare) < needed or (needed > 1 and bare.lower() in world.release.placeholders)


def _place(source: Source) -> str:
    return source.place if source is not BUILT_IN else "built in"
