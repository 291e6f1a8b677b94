"""The resolved settings: what the next message would use, and where each value comes from.

That is the main route, the chain of fallbacks, and the models for side tasks such as vision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.settings import request_route
from hermes_doctor.hermes.settings.credential_pool import key_of
from hermes_doctor.hermes.settings.document import (
    DEFAULT,
    Key,
    Path,
    RequestSettings,
    ResolvedValue,
    Source,
    Text,
    Unresolved,
    dotted_path,
    stripped_text,
    text,
)
from hermes_doctor.hermes.settings.inputs import ABSENT, SettingInputs, section
from hermes_doctor.hermes.settings.platforms import Access, platform_accesses

_NOWHERE = Source(DEFAULT, "not set")
_GUESSED = Source(DEFAULT, "guessed from the provider and the address")


class RouteProblem(NamedTuple):
    """Why a provider cannot be used."""

    kind: str
    why: str


class Route(NamedTuple):
    """A configured route to a model: what was requested, and what a request would use."""

    path: str
    """Its path in config.yaml: `model`, or an entry of the fallback chain."""
    requested: ResolvedValue
    model: ResolvedValue
    provider: ResolvedValue | None
    base_url: ResolvedValue | None
    api_mode: ResolvedValue | None
    key: Key | None
    trouble: RouteProblem | None = None

    @property
    def operators_name(self) -> str:
        """The operator's name for the provider, for one that Hermes only calls `custom`."""
        own = self.provider is not None and self.provider.value == "custom"
        asked = (self.requested.value or "").removeprefix("custom:")
        return asked if own and asked != "auto" else ""


class SideTask(NamedTuple):
    """The settings of a side task; only `auto` means that it follows the main model."""

    name: str
    provider: ResolvedValue
    model: ResolvedValue | None
    base_url: ResolvedValue | None
    api_mode: ResolvedValue | None
    key: Key | None
    trouble: RouteProblem | None = None
    """Why its provider cannot be used, if it names one of its own."""


class Resolved(NamedTuple):
    """All resolved settings of a home's gateway."""

    release: tuple[int, ...]
    """The release whose rules were applied."""
    main: Route
    """The route that config.yaml asks for first."""
    used: Route | None
    """The route of the next message: `main`, a fallback, or None."""
    fallback: tuple[Route, ...]
    tasks: tuple[SideTask, ...]
    platforms: tuple[Access, ...]
    world: SettingInputs
    """The inputs, including secrets."""
    doubts: tuple[str, ...] = ()
    """What could not be read, and why."""


def resolve_settings(inputs: SettingInputs, doubts: tuple[str, ...] = ()) -> Resolved:
    """Resolve all settings of a gateway from its inputs."""
    main, falls_back = _main(inputs)
    chain = tuple(_fallback_route(inputs, link) for link in fallback_chain(inputs))
    used = main if not main.trouble else _instead(inputs, main) if falls_back else None
    return Resolved(
        release=inputs.release.version,
        main=main,
        used=used,
        fallback=chain,
        tasks=tuple(_side_task(inputs, task_setting) for task_setting in task_settings(inputs)),
        platforms=tuple(platform_accesses(inputs)),
        world=inputs,
        doubts=doubts,
    )


def _main(inputs: SettingInputs) -> tuple[Route, bool]:
    asked = Text("auto")
    others: list[Text] = []
    model = model_answer(inputs)
    try:
        asked, others = request_route.requested_provider(inputs)
        request_settings = request_route.resolve(inputs, asked)
    except Unresolved as error:
        trouble = RouteProblem(error.kind, str(error))
        return _route(inputs, "model", asked, others, model, None, trouble), error.falls_back
    if not model.value:
        model = _default_model(inputs, request_settings.provider)
    return _route(inputs, "model", asked, others, model, request_settings, None), False


def model_answer(inputs: SettingInputs) -> ResolvedValue:
    """Return the model's name as the gateway sends it, without expanding `${NAME}`."""
    model = inputs.gateway.get("model")
    if not isinstance(model, dict):
        written = model if isinstance(model, str) else ""
        return ResolvedValue(str(written), inputs.source(written, "model") if written else _NOWHERE)
    able = [(key, model[key]) for key in ("default", "model") if model.get(key)]
    if not able:
        return ResolvedValue("", _NOWHERE)
    first, *others = (
        ResolvedValue(str(value), inputs.source(value, "model", key)) for key, value in able
    )
    return first._replace(shadows=tuple(others))


def _default_model(inputs: SettingInputs, provider: str) -> ResolvedValue:
    failure = inputs.release.topic("models").get(provider, "")
    return ResolvedValue(str(failure), Source(DEFAULT, f"default of {provider}"))


def _instead(inputs: SettingInputs, main: Route) -> Route | None:
    """Return the first fallback with credentials; if it names no model, with the main one."""
    routes = (_fallback_route(inputs, link) for link in _tried_fallbacks(inputs))
    route = next((one for one in routes if not one.trouble), None)
    if route is None or route.model.value:
        return route
    model = main.model
    if not model.value and route.provider and route.provider.value:
        model = _default_model(inputs, route.provider.value)
    return route._replace(model=model)


def _fallback_route(inputs: SettingInputs, link: FallbackEntry) -> Route:
    model = ResolvedValue(str(link.model), link.model.source)
    try:
        request_settings = link.resolve(inputs)
    except Unresolved as error:
        trouble = RouteProblem(error.kind, str(error))
        return _route(inputs, link.path, link.provider, [], model, None, trouble)
    return _route(inputs, link.path, link.provider, [], model, request_settings, None)


def _route(
    inputs: SettingInputs,
    path: str,
    asked: Text,
    others: list[Text],
    model: ResolvedValue,
    used: RequestSettings | None,
    trouble: RouteProblem | None,
) -> Route:
    said: Any = ResolvedValue(str(asked), asked.source, tuple(answer(other) for other in others))
    if used is None:
        return Route(path, said, model, None, None, None, None, trouble)
    url, mode = used.base_url, used.api_mode
    return Route(
        path=path,
        requested=said,
        model=model,
        provider=ResolvedValue(used.provider, asked.source),
        base_url=ResolvedValue(str(url), url.source, tuple(map(answer, used.urls))),
        api_mode=ResolvedValue(str(mode), mode.source if isinstance(mode, Text) else _GUESSED),
        key=key_of(inputs.release, used.key, used.keys),
    )


def answer(value: Text) -> ResolvedValue:
    """Return a value that is not a secret as an answer."""
    return ResolvedValue(str(value), value.source)


def _side_task(inputs: SettingInputs, task: TaskSettings) -> SideTask:
    def maybe(value: Text) -> ResolvedValue | None:
        return answer(value) if value else None

    return SideTask(
        name=task.name,
        provider=answer(task.provider),
        model=maybe(task.model),
        base_url=maybe(task.base_url),
        api_mode=maybe(task.api_mode),
        key=key_of(None, task.key, []) if task.key != ABSENT else None,
        trouble=_trouble(inputs, task),
    )


def _trouble(inputs: SettingInputs, task: TaskSettings) -> RouteProblem | None:
    if task.provider in ("auto", "main", "custom") or task.base_url:
        return None
    try:
        request_settings = request_route.resolve(inputs, task.provider)
    except Unresolved as error:
        return RouteProblem(error.kind, str(error))
    return None if request_settings.key.strip() else RouteProblem("key", "its key is not set")


_FALLBACKS = ("fallback_providers", "fallback_model")


class FallbackEntry(NamedTuple):
    """One entry of the fallback chain, in which Hermes does not expand `${NAME}`."""

    path: str
    provider: Text
    model: Text
    base_url: Text
    key: Text
    wrong_type: bool = False
    """Whether its provider is not text."""

    def resolve(self, inputs: SettingInputs) -> RequestSettings:
        """Return what a request of this entry would use."""
        if self.wrong_type and not inputs.release.since(0, 15):
            raise Unresolved("malformed", f"the provider of {self.path} is not text")
        asked = self.provider or request_route.requested_provider(inputs, here=False)[0]
        return request_route.resolve(inputs, asked, self.base_url, self.key)


def fallback_chain(inputs: SettingInputs) -> list[FallbackEntry]:
    """Return the fallback entries that Hermes accepts; it silently ignores the rest."""
    chain: list[FallbackEntry] = []
    seen: set[tuple[str, str, str]] = set()
    for entry in _entries_in_use(inputs):
        if not entry.provider or not entry.model:
            continue
        same = (entry.provider.lower(), entry.model.lower(), entry.base_url.lower())
        if inputs.release.since(0, 15) and same in seen:
            continue
        seen.add(same)
        chain.append(entry)
    return chain


def _entries_in_use(inputs: SettingInputs) -> list[FallbackEntry]:
    """Return all entries; older releases read the second place only if the first is empty."""
    newer = inputs.release.since(0, 15)
    places = _FALLBACKS if newer or not inputs.raw.get(_FALLBACKS[0]) else _FALLBACKS[:1]
    blocks = fallback_blocks(inputs, places)
    return [_fallback_entry(inputs, dotted_path(path), block) for path, block in blocks]


def fallback_blocks(
    inputs: SettingInputs, places: Iterable[str] = _FALLBACKS
) -> Iterator[tuple[Path, Mapping[Any, Any]]]:
    """Yield the entries with their paths in config.yaml."""
    for place in places:
        raw = inputs.raw.get(place)
        if isinstance(raw, dict):
            yield (place,), raw
        for number, block in enumerate(raw if isinstance(raw, list) else ()):
            if isinstance(block, dict):
                yield (place, number), block


def _fallback_entry(inputs: SettingInputs, path: str, block: Mapping[Any, Any]) -> FallbackEntry:
    url = stripped_text(block.get("base_url")) if isinstance(block.get("base_url"), str) else ABSENT
    key = text(block.get("api_key"))
    key = key.like(key.strip())
    if not key and inputs.release.since(0, 15):
        key = inputs.named_variable(stripped_text(block.get("key_env") or block.get("api_key_env")))
    provider = block.get("provider")
    return FallbackEntry(
        path=path,
        provider=stripped_text(provider),
        model=stripped_text(block.get("model")),
        base_url=url.without_slash(),
        key=key,
        wrong_type=bool(provider) and not isinstance(provider, str),
    )


def _tried_fallbacks(inputs: SettingInputs) -> list[FallbackEntry]:
    """Return the entries that are tried; older releases accept ones without provider or model."""
    return fallback_chain(inputs) if inputs.release.since(0, 15) else _entries_in_use(inputs)


_AUTO = Text("auto", Source(DEFAULT, "as the main model"))


class TaskSettings(NamedTuple):
    """The provider and model of a side task; `auto` is the main provider or any with a key."""

    name: str
    provider: Text
    model: Text
    base_url: Text
    key: Text
    api_mode: Text


def task_settings(inputs: SettingInputs) -> list[TaskSettings]:
    """Return every side task that this release knows or that config.yaml names."""
    written = section(inputs.config, "auxiliary")
    known = inputs.release.topic("auxiliary")
    named = [name for name, block in written.items() if isinstance(block, dict)]
    return [_task_settings(inputs, str(name)) for name in dict.fromkeys((*known, *named))]


def _task_settings(inputs: SettingInputs, name: str) -> TaskSettings:
    written = section(inputs.config, "auxiliary", name)
    block = {**inputs.release.topic("auxiliary").get(name, {}), **written}
    provider, model, url, key, mode = (
        _task_text(block, k) for k in ("provider", "model", "base_url", "api_key", "api_mode")
    )
    if not key and inputs.release.since(0, 19):
        setting = "key_env" if block.get("key_env") else "api_key_env"
        key = inputs.named_variable(_task_text(block, setting))
    if inputs.release.since(0, 18) and model.lower() == "auto":
        model = ABSENT
    direct = inputs.release.addresses.get(f"auxiliary {provider.lower()}")
    if direct:
        url = url or Text(direct, Source(DEFAULT, str(provider)))
        provider = provider.like("custom")
    if url and key:
        return TaskSettings(name, provider.like("custom"), model, url, key, mode)
    if not provider or provider == "auto":
        return TaskSettings(name, _AUTO, model, ABSENT, ABSENT, mode)
    return TaskSettings(name, provider, model, url, ABSENT if url else key, mode)


def _task_text(block: Mapping[Any, Any], key: str) -> Text:
    """Convert a value to text as Hermes does: an empty one becomes the word `None`."""
    value = block.get(key, "")
    found = value if isinstance(value, Text) else Text(str(value))
    return found.like(found.strip())
