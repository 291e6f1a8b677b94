"""Determine which platforms would start, with which tokens, and which users may talk to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.knowledge import parse_release
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from hermes_doctor.hermes.settings import urls
from hermes_doctor.hermes.settings.credential_pool import key_of
from hermes_doctor.hermes.settings.document import DEFAULT, Key, ResolvedValue, Source, Text
from hermes_doctor.hermes.settings.inputs import ABSENT, SettingInputs, Settings, section
from hermes_doctor.hermes.settings.urls import Endpoint, Proxy, endpoint

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
        proxies=tuple(urls.all_proxies(settings, own)),
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


GLOBAL_USERS, GLOBAL_EVERYONE = "GATEWAY_ALLOWED_USERS", "GATEWAY_ALLOW_ALL_USERS"
_OPEN = ("true", "1", "yes")
_NO_CREDENTIAL = ("_ENABLED", "_URL", "_HOST", "_SERVER", "_CHANNEL", "_NICKNAME", "_TOPIC")
_UNASKED = ("homeassistant", "webhook")
"""Platforms whose senders Hermes never checks."""


class Access(NamedTuple):
    """The access settings of a platform that would start."""

    name: str
    label: str
    because: str
    """The setting that enables it."""
    tokens: tuple[Key, ...]
    """Its credentials; a required one that is not set has the state `missing`."""
    users: ResolvedValue | None
    """The users who may talk to it, separated by commas."""
    everyone: ResolvedValue | None
    """The setting that lets everyone talk to it."""
    dm_policy: ResolvedValue | None
    group_policy: ResolvedValue | None
    allow_from: ResolvedValue | None
    """The list that the platform's own policy uses."""
    home_channel: ResolvedValue | None

    def admits(self, user: str) -> bool:
        """Tell whether the gateway accepts a user's direct messages; pairings are not counted."""
        if self.name in _UNASKED:
            return True
        if self.everyone and self.everyone.source.name != GLOBAL_EVERYONE:
            return True
        if self.users is None:
            return self.everyone is not None
        listed = {one.strip() for one in (self.users.value or "").split(",")} - {""}
        return bool({"*", user, user.partition("@")[0]} & listed)


def platform_accesses(inputs: SettingInputs) -> Iterator[Access]:
    """Yield the platforms that a gateway of this release starts with these settings."""
    known: Mapping[str, Any] = load_knowledge("platforms")["platforms"]
    for name, because in started_platforms(inputs).items():
        own = access_reader(inputs, name)
        token = own.token_text()
        if own.is_strict and token and not inputs.release.is_usable(token):
            continue
        needed = [v for v in known[name]["variables"] if not v.endswith(_NO_CREDENTIAL)]
        yield Access(
            name=name,
            label=known[name]["label"],
            because=because,
            tokens=tuple(own.token(variable) for variable in needed),
            users=own.users(),
            everyone=own.everyone(),
            dm_policy=own.setting("dm_policy"),
            group_policy=own.setting("group_policy"),
            allow_from=own.setting("allow_from"),
            home_channel=own.setting("home_channel"),
        )


@lru_cache(maxsize=4)
def started_platforms(inputs: SettingInputs) -> Mapping[str, str]:
    """Map each platform that would start to the setting that starts it."""
    return dict(_started(inputs))


def _started(inputs: SettingInputs) -> Iterator[tuple[str, str]]:
    names = frozenset(inputs.readings.dotenv.values)
    seen = Settings(inputs.variables, names, inputs.raw, ())
    file = {**inputs.readings.own.values, **inputs.variables}
    found = {one.name: one for one in find(seen, inputs.release.version)}
    in_file = found
    if len(file) > len(inputs.variables):
        more = Settings(file, frozenset(inputs.readings.own.values), inputs.raw, ())
        in_file = {one.name: one for one in find(more, inputs.release.version)}
    for name in load_knowledge("enabling"):
        own = access_reader(inputs, name)
        platform = found.get(name) or (in_file.get(name) if own.reads_file else None)
        because = platform.because if platform else own.loosely()
        if because:
            yield name, because


def access_reader(inputs: SettingInputs, name: str) -> _Reader:
    """Return the settings of a platform, whether it would start or not."""
    forms = load_knowledge("access").get(name, [])
    return _Reader(inputs, name, form_of(forms, inputs.release.version) or {})


class _Reader:
    """The settings of one platform, each from the place with the highest precedence."""

    def __init__(self, inputs: SettingInputs, name: str, facts: Mapping[str, Any]) -> None:
        self.inputs = inputs
        self.name = name
        self.variables: Mapping[str, str] = facts.get("variables", {})
        self.keys: Mapping[str, list[str]] = facts.get("keys", {})
        self.bridged: Mapping[str, str] = facts.get("bridged", {})
        self.bound: list[str] = facts.get("bound", [])
        self.reads_file = bool(facts.get("file"))
        """Whether variables count that only Hermes' own .env parser sees."""
        self.is_loose = bool(facts.get("loose"))
        self.is_strict = bool(facts.get("strict"))
        """Whether the platform does not start with a placeholder as its token."""
        self.lists = (facts.get("users"), facts.get("everyone"))

    def loosely(self) -> str | None:
        """Return the setting that starts the platform although nothing enables it."""
        if not self.is_loose:
            return None
        for place, path in PLATFORM_PLACES.items():
            block = section(self.inputs.raw, *path, self.name)
            if "enabled" in block:
                return None
            for key in block:
                if key == "extra" and block[key] and place != "top":
                    return f"{'.'.join((*path, self.name))}.extra in config.yaml"
                if key in self.keys.get(place, ()) and key not in ("token", "api_key"):
                    return f"{'.'.join((*path, self.name))}.{key} in config.yaml"
        return None

    def token(self, variable: str) -> Key:
        """Return a credential by its variable; a key of config.yaml can replace it."""
        field = next((f for f, v in self.variables.items() if v == variable), None)
        found = [*self._variable(variable), *(self._written(field) if field else ())]
        missing = Text("", Source(DEFAULT, variable))
        chosen = found[0] if found else missing
        return key_of(self.inputs.release, chosen, [*found[1:], *self.inputs.layers(variable)[1:]])

    def token_text(self) -> Text:
        """Return the platform's token."""
        variable = self.variables.get("token")
        return next(iter((*self._variable(variable), *self._written("token"))), ABSENT)

    def setting(self, key: str) -> ResolvedValue | None:
        """Return a setting of the platform; None if it is not set."""
        field = key if key in ("token", "api_key", "home_channel") else f"extra.{key}"
        variable = self.variables.get(field)
        if field in self.bound and not self._is_switched_on():
            variable = None
        return _answer([*self._variable(variable), *self._written(field)])

    def _is_switched_on(self) -> bool:
        """Tell whether variables alone enable the platform."""
        forms = load_knowledge("enabling").get(self.name, [])
        form = form_of(forms, self.inputs.release.version) or {}
        return any(all(map(self.inputs.getenv, names)) for names in form.get("by", ()))

    def users(self) -> ResolvedValue | None:
        """Return the lists of users who may talk to it as one list."""
        own, shared = self._own_users(), list(self._variable(GLOBAL_USERS))
        if own and shared:
            both = Text(f"{own[0]},{shared[0]}", own[0].source)
            return _answer([both, *own[1:]])
        return _answer(own or shared)

    def user_lists(self) -> list[Text]:
        """Return the lists that are used: the platform's own and the one for all platforms."""
        return [*self._own_users()[:1], *self._variable(GLOBAL_USERS)]

    def _own_users(self) -> list[Text]:
        variable = self.lists[0]
        return [*self._variable(variable), *self._bridged(variable)] if variable else []

    def everyone(self) -> ResolvedValue | None:
        """Return what lets everyone in; the setting for all platforms counts only without lists."""
        variable = self.lists[1]
        own = [text for text in self._variable(variable) if variable and text.lower() in _OPEN]
        if own or self.users():
            return _answer(own)
        return _answer([one for one in self._variable(GLOBAL_EVERYONE) if one.lower() in _OPEN])

    def _variable(self, name: str | None) -> Iterator[Text]:
        value = self.inputs.getenv(name) if name else ABSENT
        if value:
            yield value

    def _written(self, field: str) -> Iterator[Text]:
        """Yield the values in config.yaml, the highest precedence first."""
        key = field.removeprefix("extra.")
        spellings = (key,) if key == field else (key, field)
        for place in PLATFORM_PLACES:
            for spelt in spellings:
                if spelt in self.keys.get(place, ()):
                    yield from self._value(place, spelt)

    def _bridged(self, variable: str) -> Iterator[Text]:
        for place in PLATFORM_PLACES:
            for key, became in self.bridged.items():
                where, _, spelt = key.partition(" ")
                if where == place and became == variable:
                    yield from self._value(place, spelt)

    def _value(self, place: str, key: str) -> Iterator[Text]:
        path = (*PLATFORM_PLACES[place], self.name, *key.split("."))
        value = section(self.inputs.raw, *path[:-1]).get(path[-1])
        if value is None or value == "" or isinstance(value, dict):
            return
        said = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        yield Text(said, self.inputs.document.source(*path))


def _answer(texts: list[Text]) -> ResolvedValue | None:
    if not texts:
        return None
    return ResolvedValue(
        str(texts[0]),
        texts[0].source,
        tuple(ResolvedValue(str(one), one.source) for one in texts[1:]),
    )
