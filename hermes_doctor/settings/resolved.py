"""The resolved settings: what the next message would use, and where each value comes from."""

from __future__ import annotations

from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import auxiliary, fallback, request_route
from hermes_doctor.settings.access import Access, platform_accesses
from hermes_doctor.settings.inputs import ABSENT, SettingInputs
from hermes_doctor.settings.key_state import key_of
from hermes_doctor.settings.outcome import RequestSettings, Unresolved
from hermes_doctor.settings.sourced_text import DEFAULT, Key, ResolvedValue, Source, Text

_NOWHERE = Source(DEFAULT, "not set")


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


def of(inputs: SettingInputs, doubts: tuple[str, ...] = ()) -> Resolved:
    """Resolve all settings of a gateway from its inputs."""
    main, falls_back = _main(inputs)
    chain = tuple(_link(inputs, link) for link in fallback.chain(inputs))
    used: Route | None = main
    if main.trouble:
        used = _instead(inputs, main) if falls_back else None
    return Resolved(
        release=inputs.release.version,
        main=main,
        used=used,
        fallback=chain,
        tasks=tuple(_task(inputs, one) for one in auxiliary.tasks(inputs)),
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
        found = request_route.resolve(inputs, asked)
    except Unresolved as error:
        trouble = RouteProblem(error.kind, str(error))
        return _route(inputs, "model", asked, others, model, None, trouble), error.falls_back
    if not model.value:
        model = _default_model(inputs, found.provider)
    return _route(inputs, "model", asked, others, model, found, None), False


def model_answer(inputs: SettingInputs) -> ResolvedValue:
    """Return the model's name as the gateway sends it, without expanding `${NAME}`."""
    model = inputs.gateway.get("model")
    if not isinstance(model, dict):
        written = model if isinstance(model, str) else ""
        return ResolvedValue(str(written), inputs.source(written, "model") if written else _NOWHERE)
    able = [(key, model[key]) for key in ("default", "model") if model.get(key)]
    if not able:
        return ResolvedValue("", _NOWHERE)
    made = [ResolvedValue(str(value), inputs.source(value, "model", key)) for key, value in able]
    return ResolvedValue(made[0].value, made[0].source, tuple(made[1:]))


def _default_model(inputs: SettingInputs, provider: str) -> ResolvedValue:
    found = inputs.release.topic("models").get(provider, "")
    return ResolvedValue(str(found), Source(DEFAULT, f"default of {provider}"))


def _instead(inputs: SettingInputs, main: Route) -> Route | None:
    """Return the first fallback with credentials; if it names no model, with the main one."""
    routes = (_link(inputs, link) for link in fallback.tried_links(inputs))
    found = next((one for one in routes if not one.trouble), None)
    if found is None or found.model.value:
        return found
    model = main.model
    if not model.value and found.provider and found.provider.value:
        model = _default_model(inputs, found.provider.value)
    return found._replace(model=model)


def _link(inputs: SettingInputs, link: fallback.FallbackEntry) -> Route:
    model = ResolvedValue(str(link.model), link.model.source)
    try:
        found = link.resolve(inputs)
    except Unresolved as error:
        trouble = RouteProblem(error.kind, str(error))
        return _route(inputs, link.path, link.provider, [], model, None, trouble)
    return _route(inputs, link.path, link.provider, [], model, found, None)


def _route(
    inputs: SettingInputs,
    path: str,
    asked: Text,
    others: list[Text],
    model: ResolvedValue,
    found: RequestSettings | None,
    trouble: RouteProblem | None,
) -> Route:
    said: Any = ResolvedValue(str(asked), asked.source, tuple(answer(one) for one in others))
    if found is None:
        return Route(path, said, model, None, None, None, None, trouble)
    url = found.base_url
    return Route(
        path=path,
        requested=said,
        model=model,
        provider=ResolvedValue(found.provider, asked.source),
        base_url=ResolvedValue(str(url), url.source, tuple(answer(one) for one in found.urls)),
        api_mode=ResolvedValue(str(found.api_mode), _mode_source(found.api_mode)),
        key=key_of(inputs.release, found.key, found.keys),
    )


def _mode_source(mode: str) -> Source:
    told = Source(DEFAULT, "guessed from the provider and the address")
    return mode.source if isinstance(mode, Text) else told


def answer(value: Text) -> ResolvedValue:
    """Return a value that is not a secret as an answer."""
    return ResolvedValue(str(value), value.source)


def _task(inputs: SettingInputs, task: auxiliary.Task) -> SideTask:
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


def _trouble(inputs: SettingInputs, task: auxiliary.Task) -> RouteProblem | None:
    if task.provider in ("auto", "main", "custom") or task.base_url:
        return None
    try:
        found = request_route.resolve(inputs, task.provider)
    except Unresolved as error:
        return RouteProblem(error.kind, str(error))
    return None if found.key.strip() else RouteProblem("key", "its key is not set")
