"""Find settings about platforms in config.yaml that Hermes silently ignores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import platforms
from hermes_doctor.settings.closest_word import closest_word
from hermes_doctor.settings.document import Path
from hermes_doctor.settings.inputs import references, section
from hermes_doctor.settings.resolved import Resolved
from hermes_doctor.settings.sourced_text import CONFIG, Text

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


def ignored_settings(found: Resolved) -> Iterator[IgnoredSetting]:
    """Yield the settings about platforms that Hermes ignores."""
    raw = found.world.raw
    started = {one.name for one in found.platforms}
    yield from _gateway(found)
    whole = raw.get("platforms")
    if whole and not isinstance(whole, dict):
        names = _names(whole)
        harm = not names or not names <= started
        yield IgnoredSetting(LIST, ("platforms",), harm=harm, value=whole)
    for above in ((), ("platforms",), ("gateway", "platforms")):
        for name, block in section(raw, *above).items():
            if isinstance(name, str):
                yield from _block(found, started, (*above, name), block)


def _gateway(found: Resolved) -> Iterator[IgnoredSetting]:
    value = found.world.raw.get("gateway")
    if value is None or isinstance(value, dict):
        return
    harm = _GONE_SINCE <= found.release < _BACK_SINCE
    yield IgnoredSetting(GATEWAY, ("gateway",), harm=harm, value=value)


def _names(value: Any) -> set[str]:
    listed = value if isinstance(value, list) else [value]
    words = [word for one in listed for word in (one if isinstance(one, dict) else (one,))]
    return {word.strip().lower() for word in words if isinstance(word, str)}


def _block(found: Resolved, started: set[str], path: Path, block: Any) -> Iterator[IgnoredSetting]:
    known = load_knowledge("enabling")
    written = str(path[-1])
    name = written.strip().lower()
    nested = len(path) > 1
    if name not in known:
        meant = closest_word(name, known) if nested else None
        if meant and not section(found.world.raw, *map(str, path[:-1]), meant):
            yield IgnoredSetting(NAME, path, meant, meant not in started, instead=meant)
        return
    if written != name and not nested:
        return
    if not isinstance(block, dict):
        if isinstance(block, bool) or str(block).lower() in ("on", "off", "enabled", "disabled"):
            on = block is True or str(block).lower() in ("on", "enabled")
            form = platforms.form_of(known[name], found.release) or {}
            counts = _place(path) in form.get("on" if on else "off", ())
            harm = on != (name in started)
            yield IgnoredSetting(SWITCH, path, name, harm, value=on, curable=counts)
        return
    if "enabled" in block and not platforms.is_true(block["enabled"]):
        because = next((one.because for one in found.platforms if one.name == name), "")
        if because and not because.endswith("in config.yaml"):
            yield IgnoredSetting(OFF, (*path, "enabled"), name, curable=False)
    yield from _token(found, path, name, block)


def _place(path: Path) -> str:
    return {1: "top", 2: "platforms"}.get(len(path), "gateway")


def _token(
    found: Resolved, path: Path, name: str, block: Mapping[Any, Any]
) -> Iterator[IgnoredSetting]:
    facts = platforms.form_of(load_knowledge("access").get(name, []), found.release) or {}
    variable = facts.get("variables", {}).get("token", "")
    place = _place(path)
    value = block.get("token")
    if not isinstance(value, str) or not value.strip():
        return
    own = next((one for one in found.platforms if one.name == name), None)
    has = own is not None and any(key.state == "usable" for key in own.tokens)
    if "token" not in facts.get("keys", {}).get(place, ()):
        yield IgnoredSetting(TOKEN, (*path, "token"), name, not has, value, variable)
    elif own is None and "enabled" not in block and place != "top":
        yield IgnoredSetting(UNSTARTED, path, name, True)


def value_of(found: Resolved, reference: str) -> Text | None:
    """Return the value of the only variable in `${NAME}`; None if there is more, or it is unset."""
    names = references(reference)
    if len(names) != 1 or reference.strip() != f"${{{names[0]}}}":
        return None
    value = found.world.getenv(names[0])
    return value if value and value.source.kind != CONFIG else None
