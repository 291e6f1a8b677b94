"""Find settings that have no effect or will lose it.

Hermes ignores them, a variable overrides them, or the next update drops them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from hermes_doctor.hermes.settings import platforms
from hermes_doctor.hermes.settings.document import CONFIG, Path, Source, Text
from hermes_doctor.hermes.settings.inputs import references, section, whole_number
from hermes_doctor.hermes.settings.misspellings import closest_word
from hermes_doctor.hermes.settings.platforms import PLATFORM_PLACES
from hermes_doctor.hermes.settings.resolved import Resolved

LIST, SWITCH, NAME, GATEWAY, OFF, UNSTARTED, TOKEN = (
    "list",
    "switch",
    "name",
    "gateway",
    "off",
    "unstarted",
    "token",
)
_GONE_SINCE, _BACK_SINCE = (0, 14), (0, 19)
"""Between these releases, all platform settings are ignored if `gateway` is not a mapping."""


class IgnoredSetting(NamedTuple):
    """A setting that is ignored. `value` may be a secret."""

    kind: str
    path: Path
    platform: str = ""
    harm: bool = True
    """Whether the result differs from what the file asks for."""
    value: Any = None
    instead: str = ""
    """The name or the variable that would work."""
    curable: bool = True
    """Whether it would work if written differently."""


def ignored_settings(resolved: Resolved) -> Iterator[IgnoredSetting]:
    """Yield the settings about platforms that Hermes ignores."""
    raw = resolved.world.raw
    started = {platform.name for platform in resolved.platforms}
    yield from _gateway(resolved)
    whole = raw.get("platforms")
    if whole and not isinstance(whole, dict):
        listed = whole if isinstance(whole, list) else [whole]
        words = [word for one in listed for word in (one if isinstance(one, dict) else (one,))]
        names = {word.strip().lower() for word in words if isinstance(word, str)}
        harm = not names or not names <= started
        yield IgnoredSetting(LIST, ("platforms",), harm=harm, value=whole)
    for above in PLATFORM_PLACES.values():
        for name, block in section(raw, *above).items():
            if isinstance(name, str):
                yield from _block(resolved, started, (*above, name), block)


def _gateway(resolved: Resolved) -> Iterator[IgnoredSetting]:
    value = resolved.world.raw.get("gateway")
    if value is None or isinstance(value, dict):
        return
    harm = _GONE_SINCE <= resolved.release < _BACK_SINCE
    yield IgnoredSetting(GATEWAY, ("gateway",), harm=harm, value=value)


def _block(
    resolved: Resolved, started: set[str], path: Path, block: Any
) -> Iterator[IgnoredSetting]:
    known = load_knowledge("enabling")
    written = str(path[-1])
    name = written.strip().lower()
    nested = len(path) > 1
    if name not in known:
        meant = closest_word(name, known) if nested else None
        if meant and not section(resolved.world.raw, *map(str, path[:-1]), meant):
            yield IgnoredSetting(NAME, path, meant, meant not in started, instead=meant)
        return
    if written != name and not nested:
        return
    if not isinstance(block, dict):
        if isinstance(block, bool) or str(block).lower() in ("on", "off", "enabled", "disabled"):
            on = block is True or str(block).lower() in ("on", "enabled")
            form = platforms.form_of(known[name], resolved.release) or {}
            counts = _place(path) in form.get("on" if on else "off", ())
            harm = on != (name in started)
            yield IgnoredSetting(SWITCH, path, name, harm, value=on, curable=counts)
        return
    if "enabled" in block and not platforms.is_true(block["enabled"]):
        because = next(
            (platform.because for platform in resolved.platforms if platform.name == name), ""
        )
        if because and not because.endswith("in config.yaml"):
            yield IgnoredSetting(OFF, (*path, "enabled"), name, curable=False)
    yield from _token(resolved, path, name, block)


def _place(path: Path) -> str:
    return {1: "top", 2: "platforms"}.get(len(path), "gateway")


def _token(
    resolved: Resolved, path: Path, name: str, block: Mapping[Any, Any]
) -> Iterator[IgnoredSetting]:
    facts = platforms.form_of(load_knowledge("access").get(name, []), resolved.release) or {}
    variable = facts.get("variables", {}).get("token", "")
    place = _place(path)
    value = block.get("token")
    if not isinstance(value, str) or not value.strip():
        return
    own = next((platform for platform in resolved.platforms if platform.name == name), None)
    has = own is not None and any(key.state == "usable" for key in own.tokens)
    if "token" not in facts.get("keys", {}).get(place, ()):
        yield IgnoredSetting(TOKEN, (*path, "token"), name, not has, value, variable)
    elif own is None and "enabled" not in block and place != "top":
        yield IgnoredSetting(UNSTARTED, path, name, True)


def referenced_value(resolved: Resolved, reference: str) -> Text | None:
    """Return the value of the only variable in `${NAME}`; None if there is more, or it is unset."""
    names = references(reference)
    if len(names) != 1 or reference.strip() != f"${{{names[0]}}}":
        return None
    value = resolved.world.getenv(names[0])
    return value if value and value.source.kind != CONFIG else None


_OTHER = {"allowed_users": "allow_from", "allow_from": "allowed_users"}
_BY_VARIABLE = frozenset(
    ["slack", "feishu", "mattermost", "email", "sms", "signal", "wecom_callback"]
)
"""Platforms that take the list only from a variable."""


class IgnoredAllowlist(NamedTuple):
    """An allowlist that is ignored."""

    path: Path
    platform: str
    users: tuple[str, ...]
    """The users on the list who are not let in."""
    key: str | None
    """The key that would work in this place."""
    variable: str | None
    """The variable that would work instead."""


def ignored_allowlists(resolved: Resolved) -> Iterator[IgnoredAllowlist]:
    """Yield the ignored lists of platforms that would start."""
    for own in resolved.platforms:
        facts = (
            platforms.form_of(load_knowledge("access").get(own.name, []), resolved.release) or {}
        )
        bridged = facts.get("bridged", {})
        for place, above in PLATFORM_PLACES.items():
            block = section(resolved.world.raw, *above, own.name)
            for key, other in _OTHER.items():
                turned = f"{place} {other}" in bridged
                if key not in block or f"{place} {key}" in bridged:
                    continue
                if key == "allow_from" and not turned and own.name not in _BY_VARIABLE:
                    continue  # the adapter uses it itself
                users = tuple(user for user in _users(block[key]) if not own.admits(user))
                if users:
                    meant = other if turned and other not in block else None
                    path = (*above, own.name, key)
                    yield IgnoredAllowlist(path, own.name, users, meant, facts.get("users"))


def _users(value: Any) -> list[str]:
    listed = value if isinstance(value, list) else str(value or "").split(",")
    return [str(one).strip() for one in listed if str(one).strip()]


_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})


class OverriddenSetting(NamedTuple):
    """A setting, and the variable that overrides it."""

    path: Path
    variable: str
    source: Source
    """Where the variable is set."""


def overridden_settings(resolved: Resolved) -> Iterator[OverriddenSetting]:
    """Yield the overridden settings of platforms that would start, if the values differ."""
    world = resolved.world
    started = {platform.name for platform in resolved.platforms}
    for name, variable in world.release.key_topic("bridged").items():
        path = tuple(name.split("."))
        if path[-2] in started:
            value = section(world.raw, *path[:-1]).get(path[-1])
            yield from _if_overridden(resolved, path, value, variable)
    for name, value in world.raw.items():
        if isinstance(name, str) and name.isupper() and isinstance(value, str | int | float):
            yield from _if_overridden(resolved, (name,), value, name)
    for own in resolved.platforms:
        for key in own.tokens:
            for other in key.shadows:
                differs = other.fingerprint != key.fingerprint
                if other.source.kind == CONFIG and key.source.kind != CONFIG and differs:
                    yield OverriddenSetting(
                        tuple(other.source.name.split(".")), key.name, key.source
                    )


def _if_overridden(
    resolved: Resolved, path: Path, value: Any, variable: str
) -> Iterator[OverriddenSetting]:
    counts = resolved.world.variables.get(variable)
    if value is None or counts is None or not counts or counts.source.kind == CONFIG:
        return
    if _meaning(value) != _meaning(counts):
        yield OverriddenSetting(path, variable, counts.source)


def _meaning(value: Any) -> frozenset[str]:
    """Normalise a setting, so that different notations of a value compare equal."""
    if isinstance(value, Text | str):
        bare = value.strip()
        if bare[:1] == "[" and bare[-1:] == "]":
            value = bare[1:-1].replace('"', "").replace("'", "")
        listed = str(value).split(",")
    else:
        listed = value if isinstance(value, list) else [value]
    return frozenset(_word(one) for one in listed) - {""}


def _word(value: Any) -> str:
    word = str(value).strip().lower()
    return "true" if word in _TRUE else "false" if word in _FALSE else word


class DeprecatedSetting(NamedTuple):
    """A deprecated setting, and what to use instead."""

    name: str
    source: Source
    replacement: str
    overridden: bool = False
    """Whether the replacement is set too and overrides it."""


def deprecated_settings(resolved: Resolved) -> Iterator[DeprecatedSetting]:
    """Yield the deprecated settings that are set, according to the release's own list."""
    world = resolved.world
    for name, instead in world.release.key_topic("older").items():
        variable = world.readings.dotenv.values.get(name)
        if variable:
            yield DeprecatedSetting(name, variable.source, instead)
        above, _, key = name.rpartition(".")
        if above and key in section(world.raw, above):
            yield DeprecatedSetting(name, world.document.source(above, key), instead)
    turns = section(world.raw, "agent").get("max_turns")
    limit = world.readings.dotenv.values.get("HERMES_MAX_ITERATIONS")
    if turns is not None and limit and limit.strip() != str(turns):
        yield DeprecatedSetting(
            "HERMES_MAX_ITERATIONS", limit.source, "agent.max_turns in config.yaml", True
        )


_COUNTS_AS_NONE = (0, 16)
"""Since this release, a file without a version counts as the oldest."""


class ConfigVersion(NamedTuple):
    """The version in the file, the release's version, and what the update between them loses."""

    written: int | None
    newest: int
    losses: tuple[str, ...]
    harms: bool
    """Whether one of the losses is in use."""


def config_version(resolved: Resolved) -> ConfigVersion:
    """Return the version and the losses of this home's file."""
    world = resolved.world
    newest = max(int(one) for one in world.release.topic("config_version"))
    written = whole_number(world.raw.get("_config_version"))
    missing_is_old = resolved.release >= _COUNTS_AS_NONE
    counted = written if written is not None else 0 if missing_is_old else newest
    losses = []
    token = world.readings.own.values.get("ANTHROPIC_TOKEN")
    if counted < 9 and token:
        losses.append("ANTHROPIC_TOKEN in .env is made blank")
    if counted < 12 and isinstance(world.raw.get("custom_providers"), list):
        losses.append("custom_providers becomes providers, without fields that it does not know")
    if counted < 17 and any(
        str(k).startswith("summary_") for k in section(world.raw, "compression")
    ):
        losses.append("compression.summary_… moves to auxiliary.compression")
    if counted < newest and b"#" in world.document.data:
        losses.append("comments in config.yaml are lost")
    harms = bool(token) and counted < 9
    return ConfigVersion(written, newest, tuple(losses), harms)
