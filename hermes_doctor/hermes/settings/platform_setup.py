"""Look up what is set for each platform: its credentials, its port, and the API server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.knowledge import parse_release
from hermes_doctor.hermes.knowledge.releases import Release, load_knowledge
from hermes_doctor.hermes.settings import config_yaml, credential_pool as keys_module, env_file
from hermes_doctor.hermes.settings.document import BUILT_IN, Document, Text, text
from hermes_doctor.hermes.settings.inputs import ABSENT, SettingInputs, section
from hermes_doctor.hermes.settings.platforms import PLATFORM_PLACES, form_of, started_platforms
from hermes_doctor.hermes.settings.resolved import Resolved

Path = tuple[str, ...]
_FALSE = ("false", "0", "no", "off")


class PlatformBlock:
    """The settings of a platform by key, including secrets.

    Hermes reads some keys in one place only. This class finds a setting in any place, so that one
    in the wrong place is not reported as missing.
    """

    def __init__(self, world: SettingInputs, name: str) -> None:
        self.world = world
        self.name = name
        self.paths: list[Path] = [
            (*place, name, *more) for place in PLATFORM_PLACES.values() for more in ((), ("extra",))
        ]

    def value(self, key: str, *variables: str) -> Text:
        """Return a setting as text, from a variable or config.yaml; empty if it is not set."""
        for variable in variables:
            if found := self.world.getenv(variable):
                return found
        for path, value in self._written(key):
            if value not in (None, "") and not isinstance(value, dict | list):
                return Text(str(value).strip(), self.world.source(value, *path))
        return ABSENT

    def mapping(self, key: str) -> tuple[Path, Mapping[Any, Any]]:
        """Return a setting that is a mapping, and its path; empty if there is none."""
        for path, value in self._written(key):
            if isinstance(value, dict) and value:
                return path, value
        return (), {}

    def path(self, key: str) -> Path | None:
        """Return the path of a setting in config.yaml."""
        return next((path for path, _ in self._written(key)), None)

    @property
    def is_off(self) -> bool:
        """Whether config.yaml disables the platform."""
        return text(str(self.value("enabled"))).lower() in _FALSE

    def _written(self, key: str) -> Iterator[tuple[Path, Any]]:
        for path in self.paths:
            block = section(self.world.raw, *path)
            if key in block:
                yield (*path, key), block[key]


class NeededCredential(NamedTuple):
    """A credential that a platform requires."""

    variables: tuple[str, ...]
    """Any of these sets it."""
    value: Text
    """Empty if it is not set. May be a secret."""
    state: str
    """`usable`, `placeholder`, `masked`, `unresolved` or `missing`."""


class Doubt(NamedTuple):
    """A value that does not have the expected format."""

    variable: str
    value: Text
    shape: str
    """The expected format, in words."""
    sure: bool
    """Whether the issuer documents the format; otherwise it was observed."""


class PlatformSetup(NamedTuple):
    """A platform that is set up, or partly set up."""

    name: str
    label: str
    because: str | None
    """What starts it; None if Hermes does not start it."""
    shared: bool
    """Whether other programs use the same variables."""
    needs: tuple[NeededCredential, ...]
    doubts: tuple[Doubt, ...]


class UnsupportedPlatform(NamedTuple):
    """A platform that is set up but unknown to the release."""

    name: str
    label: str
    since: str
    """The first release that has it."""
    variable: str
    place: str


def unknown_platforms(world: SettingInputs) -> Iterator[UnsupportedPlatform]:
    """Yield platforms whose variables are all set and that only newer releases start."""
    labels: Mapping[str, Any] = load_knowledge("platforms")["platforms"]
    for name, forms in load_knowledge("enabling").items():
        if form_of(forms, world.release.version) is not None:
            continue
        first = min((one for form in forms for one in form["releases"]), key=parse_release)
        for names in forms[0]["by"]:
            values = [world.getenv(one) for one in names]
            if all(values) and values[0].lower() not in _FALSE:
                place = values[0].source.place
                yield UnsupportedPlatform(name, labels[name]["label"], first, names[0], place)
                break


def platform_setups(world: SettingInputs) -> Iterator[PlatformSetup]:
    """Yield every platform with any setting, except those that config.yaml disables."""
    labels: Mapping[str, Any] = load_knowledge("platforms")["platforms"]
    for name, facts in load_knowledge("credentials").items():
        block = PlatformBlock(world, name)
        needs = tuple(_need(block, spelt) for spelt in facts["needs"])
        if name not in started_platforms(world) and (
            block.is_off or not any(needed_credential.value for needed_credential in needs)
        ):
            continue
        if "instead" in facts and block.path(facts["instead"]):
            needs = ()
        yield PlatformSetup(
            name=name,
            label=labels[name]["label"],
            because=started_platforms(world).get(name),
            shared=bool(facts.get("shared")),
            needs=needs,
            doubts=tuple(_doubts(block, facts)),
        )


def _need(block: PlatformBlock, spelt: str) -> NeededCredential:
    pairs = [one.split(":") for one in spelt.split("|")]
    found = (block.value(key, variable) for variable, key in pairs)
    value = next((one for one in found if one), ABSENT)
    state = keys_module.state(block.world.release, value) if value else "missing"
    return NeededCredential(tuple(variable for variable, _ in pairs), value, state)


def _doubts(block: PlatformBlock, facts: Mapping[str, Any]) -> Iterator[Doubt]:
    if "unless" in facts and block.path(facts["unless"]):
        return  # another server with its own kind of tokens
    keys = dict(pair.split(":") for spelt in facts["needs"] for pair in spelt.split("|"))
    for kind in ("shapes", "guesses"):
        for variable, (shape, words) in facts.get(kind, {}).items():
            value = block.value(keys.get(variable, ""), variable)
            usable = value and keys_module.state(block.world.release, value) == "usable"
            if usable and not re.fullmatch(shape, value, re.ASCII):
                yield Doubt(variable, value, words, kind == "shapes")


_BRIDGE: Mapping[str, Any] = {"port": 3000, "port_variables": [], "port_keys": ["bridge_port"]}
"""The WhatsApp bridge listens too, for the gateway only."""


class ListeningPort(NamedTuple):
    """A port that a platform opens."""

    platform: str
    label: str
    port: int
    place: str
    """The line that sets it, or what starts the platform if the port is the default."""
    variable: str | None
    """The variable that sets it in .env, if there is one."""
    key: str | None
    """The key that sets it in config.yaml."""


def listening_ports(world: SettingInputs) -> Iterator[ListeningPort]:
    """Yield the ports of all platforms that would start."""
    known: Mapping[str, Any] = load_knowledge("platforms")["platforms"]
    for name, because in started_platforms(world).items():
        facts = known[name]
        listens = _BRIDGE if name == "whatsapp" else facts.get("listens")
        if not listens:
            continue
        block = PlatformBlock(world, name)
        if not _applies(block, listens.get("when")):
            continue
        variables, keys = listens["port_variables"], listens["port_keys"]
        found = block.value(keys[0] if keys else "", *variables)
        valid = found.isdecimal() and 0 < int(found[:6]) < 65536
        yield ListeningPort(
            platform=name,
            label=facts["label"],
            port=int(found) if valid else listens["port"],
            place=found.source.place if valid else because,
            variable=variables[0] if variables else None,
            key=keys[0] if keys else None,
        )


def usual_ports() -> frozenset[int]:
    """Return the default ports of platforms."""
    known: Mapping[str, Any] = load_knowledge("platforms")["platforms"]
    return frozenset(one["listens"]["port"] for one in known.values() if "listens" in one)


def inputs_of_home(home: Home, release: Release) -> SettingInputs:
    """Return the inputs of another home's gateway, from that home's files only."""
    written, env = config_yaml.read(home), env_file.read(home)
    return SettingInputs(
        release=release,
        document=Document(written.data if written else b""),
        readings=env_file.parse_env(env, release, {}) if env else env_file.NO_VARIABLES,
    )


def _applies(block: PlatformBlock, when: list[str] | None) -> bool:
    if when is None:
        return True
    variable, *values = when
    said = block.value(variable.partition("_")[2].lower(), variable)
    return said in values if values else bool(said)


API_SERVER = "api_server"
_API_HOST = "127.0.0.1"
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


def find_api_server(resolved: Resolved) -> ApiServer | None:
    """Return the API server if these settings enable it."""
    if not any(platform.name == API_SERVER for platform in resolved.platforms):
        return None
    world = resolved.world
    said = _api_setting(world, "host") or world.getenv("API_SERVER_HOST")
    if world.getenv("API_SERVER_HOST") and _enabled_by_variables(world):
        said = world.getenv("API_SERVER_HOST")
    host, source = (str(said), said.source) if said else (_API_HOST, BUILT_IN)
    key = api_server_key(world)
    local = is_local(host)
    needed = _needed_length(world, local=local)
    fault = _key_fault(world, key, needed=needed, local=local)
    return ApiServer(
        host=host,
        local=local,
        fault=fault,
        refused=fault is not None and _refuses(world, key, needed),
        needed=needed,
        place=key.source.place if key else None,
        host_place=source.place,
    )


def api_server_key(world: SettingInputs) -> Text:
    """Return the key that a client must send; a secret. Empty if none is set."""
    return world.getenv("API_SERVER_KEY") or _api_setting(world, "key")


def _enabled_by_variables(world: SettingInputs) -> bool:
    """Tell whether variables enable it; then they also decide where it listens."""
    on = world.getenv("API_SERVER_ENABLED").lower() in ("true", "1", "yes")
    return on or bool(world.getenv("API_SERVER_KEY"))


def _api_setting(world: SettingInputs, key: str) -> Text:
    """Return the value in config.yaml; only `extra` is read."""
    places = [("platforms",), *([("gateway", "platforms")] if world.release.since(0, 16) else [])]
    for place in places:
        path = (*place, API_SERVER, "extra")
        value = section(world.raw, *path).get(key)
        if value:
            return Text(str(value), world.document.source(*path, key))
    return ABSENT


def is_local(host: str) -> bool:
    """Tell whether an address is this machine's own; unknown names count as not local."""
    bare = host.strip().strip("[]").lower()
    return bare in ("localhost", "::1", "::ffff:127.0.0.1") or bare.startswith("127.")


def _needed_length(world: SettingInputs, *, local: bool) -> int:
    """Return how many characters of a key this release requires."""
    if world.release.since(0, 18):
        return _STRONG
    if not local:
        return _FAIR
    return 1 if world.release.since(0, 15) else 0


def _key_fault(world: SettingInputs, key: Text, *, needed: int, local: bool) -> str | None:
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
