"""Determine which platforms the gateway starts, from its settings and its release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.knowledge.data import load_knowledge
from hermes_doctor.hermes.knowledge.versions import parse_release
from hermes_doctor.hermes.settings import network_endpoints
from hermes_doctor.hermes.settings.inputs import Settings, section
from hermes_doctor.hermes.settings.network_endpoints import Endpoint, Proxy, endpoint

PLATFORM_PLACES = {"top": (), "platforms": ("platforms",), "gateway": ("gateway", "platforms")}
"""Where config.yaml can enable a platform, the highest precedence first."""
ALWAYS_CONNECTED, LISTENING = "held", "listening"


class Platform(NamedTuple):
    """A platform that the settings enable."""

    name: str
    label: str
    because: str
    """What enables it: a variable's name and place, or a key of config.yaml."""
    link: str
    """`held`: always connected; `polled`: connects now and then; `listening`; `bridge`."""
    endpoints: tuple[Endpoint, ...]
    """The hosts that it connects to."""
    moved: bool
    """Whether the operator has set a non-standard address."""
    network: str | None
    """The name of the network of its hosts, if it has its own."""
    port: int | None
    """The port that it listens on."""
    proxies: tuple[Proxy, ...]
    """The proxies that it may connect through."""
    proxy_variables: tuple[str, ...]
    notifies: bool | None
    """Whether the gateway reconnects it after a failure at runtime; if not, it stays dead."""
    quiet_after: float | None
    """The number of seconds without data after which a connection is considered dead."""
    lock: str | None
    """The scope of its lock on the bot's token."""
    library: str | None = None
    """The library that its adapter imports and that Hermes does not always install."""


def find(settings: Settings, installed: tuple[int, ...] | None) -> list[Platform]:
    """Return the platforms that a gateway of this release starts with these settings."""
    known: Mapping[str, Any] = load_knowledge("platforms")["platforms"]
    platforms = []
    for name, forms in load_knowledge("enabling").items():
        form = form_of(forms, installed)
        because = form and _because(settings, name, form)
        if form and because:
            platforms.append(_platform(settings, name, known[name], form, because))
    return platforms


def form_of(
    forms: list[dict[str, Any]], installed: tuple[int, ...] | None
) -> dict[str, Any] | None:
    """Return what is known for this release, or for the newest one before it."""
    best: tuple[int, ...] = ()
    found = None
    for form in forms:
        for name in form["releases"]:
            release = parse_release(name)
            if release >= best and (installed is None or release <= installed):
                best, found = release, form
    return found


def _because(settings: Settings, name: str, form: Mapping[str, Any]) -> str | None:
    """Return what enables this platform; None if nothing does, or something disables it."""
    for place, path in PLATFORM_PLACES.items():
        block = section(settings.config, *path, name)
        if "enabled" not in block:
            continue
        if not is_true(block["enabled"]):
            if place in form["off"]:
                return None
            break
        if place in form["on"]:
            return f"{'.'.join((*path, name))}.enabled in config.yaml"
    for names in form["by"]:
        if all(settings.is_set(one) for one in names):
            return f"{names[0]} in {settings.source(names[0])}"
    return None


def is_true(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in ("true", "1", "yes", "on")
    return bool(value)


def _platform(
    settings: Settings,
    name: str,
    facts: Mapping[str, Any],
    form: Mapping[str, Any],
    because: str,
) -> Platform:
    blocks = list(_blocks(settings, name))
    moved = _moved(settings, facts, blocks)
    usual = tuple(endpoint(host) for host in facts.get("hosts", ()))
    own = tuple(facts.get("proxy_variables", ()))
    listens = facts.get("listens")
    listening = listens is not None and _applies(settings, blocks, listens.get("when"))
    link = LISTENING if listening else facts["link"]
    return Platform(
        name=name,
        label=facts["label"],
        because=because,
        link=link,
        endpoints=(moved,) if moved else tuple(one for one in usual if one),
        moved=moved is not None and moved not in usual,
        network=facts.get("network"),
        port=_port(settings, listens, blocks) if listening and listens else None,
        proxies=tuple(network_endpoints.all_proxies(settings, own)),
        proxy_variables=own,
        notifies=form["notifies"],
        quiet_after=facts.get("quiet_after"),
        lock=facts.get("lock"),
        library=facts.get("library"),
    )


def _blocks(settings: Settings, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield every block of config.yaml about a platform, including its `extra`."""
    for path in PLATFORM_PLACES.values():
        block = section(settings.config, *path, name)
        yield block
        yield section(block, "extra")


def _moved(
    settings: Settings, facts: Mapping[str, Any], blocks: list[Mapping[str, Any]]
) -> Endpoint | None:
    """Return the address that the operator has set."""
    for word in facts.get("address_variables", ()):
        variable, _, port = word.partition(":")
        if settings.value(variable):
            return endpoint(settings.value(variable), int(port or 443))
    for word in facts.get("address_keys", ()):
        key, _, port = word.partition(":")
        for block in blocks:
            if isinstance(block.get(key), str) and block[key].strip():
                return endpoint(block[key].strip(), int(port or 443))
    return None


def _applies(settings: Settings, blocks: list[Mapping[str, Any]], when: list[str] | None) -> bool:
    """Tell whether a platform listens: always, or if a variable is set (to a value)."""
    if when is None:
        return True
    variable, *values = when
    key = variable.partition("_")[2].lower()
    said = [settings.value(variable), *(str(block[key]) for block in blocks if key in block)]
    return any(word in values if values else word for word in said)


def _port(
    settings: Settings, listens: Mapping[str, Any], blocks: list[Mapping[str, Any]]
) -> int | None:
    said = [settings.value(variable) for variable in listens["port_variables"]]
    said += [str(block[key]) for key in listens["port_keys"] for block in blocks if key in block]
    chosen = next((word for word in said if word.isdecimal()), str(listens["port"]))
    return int(chosen) if 0 < int(chosen[:6]) < 65536 else None
