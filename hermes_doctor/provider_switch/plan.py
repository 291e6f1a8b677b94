"""Plans the edits of a switch, and resolves what Hermes will use after them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, Trouble
from hermes_doctor.planning import setting_edits
from hermes_doctor.provider_switch.model_names import (
    example_model,
    is_known,
    known_models,
    strange_to,
    without_prefix,
)
from hermes_doctor.provider_switch.target import SwitchRequest, TargetProvider, find_target
from hermes_doctor.settings import (
    config_file,
    env_file,
    env_parsers,
    resolved,
    urls,
)
from hermes_doctor.settings.document import Document
from hermes_doctor.settings.edit.edits import Assign, ConfigEdit, Drop, Put
from hermes_doctor.settings.inputs import SettingInputs
from hermes_doctor.settings.resolved import Resolved, Route
from hermes_doctor.settings.sourced_text import CONFIG
from hermes_doctor.steps.base import Step

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes

PLACEHOLDER_KEY = "typed-when-it-is-applied"
"""Placeholder for a key that is not typed yet, while a plan is only shown."""
_OLD = ("base_url", "api_base", "api_key", "api", "api_mode", "key_env", "api_key_env")
"""Settings of `model:` that belong to the previous provider."""
_CHAIN = "fallback_providers"


class SwitchPlan(NamedTuple):
    """The plan of a switch, whose steps alone contain secrets."""

    before: Route
    after: Route
    """What the next message will use."""
    fallback: Route | None
    """The previous provider as it will be used for the fallback."""
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    asked_for: str = ""
    """The variable whose key is typed when the plan is applied."""


def missing_key_variable(probes: Probes, request: SwitchRequest) -> str | None:
    """The variable whose value must be typed; None if it is set or none is needed."""
    found = probes.resolved()
    aim = find_target(found.world, request)
    if aim.variable is None:
        return None
    if aim.base_url is not None:
        value = found.world.getenv(aim.variable)
        return None if found.world.release.is_usable(value) else aim.variable
    edits = _model(found.world, aim, "any")
    key = _after(found.world, _config(probes, edits), None).main.key
    return None if key and key.state == "usable" else aim.variable


def plan(probes: Probes, request: SwitchRequest, key: str | None = None) -> SwitchPlan:
    """The steps of a switch; raise CannotFix if Hermes would then not do what was asked."""
    found = probes.resolved()
    _refuse_pinned(found)
    world = found.world
    aim = find_target(world, request)
    model = _model_name(found, request, aim)
    notes = []
    if model != (request.model or found.main.model.value):
        notes.append(f"The model is named {model} without the prefix of the provider.")
    elif not request.model and not is_known(found, aim, model):
        notes.append(
            f"Could not check whether {aim.name} serves {model}; the test request shows it."
        )
    elif strange := strange_to(found, aim, model):
        notes.append(
            f"{aim.name} probably does not serve {model}: its models have names like {strange}."
        )
    edits = [*aim.edits, *_model(world, aim, model)]
    env = [Assign(aim.variable, key)] if aim.variable and key else []
    chain: list[ConfigEdit] = []
    if request.fallback:
        chain, why = _chain(found, aim.name, model)
        if chain and not _keeps(probes, world, found.main, [*edits, *chain], env):
            chain = []
        if not chain and found.main.requested.value != aim.name:
            notes.append(f"No fallback is added: {why}.")
    late = [setting_edits.FALLBACK] if chain else []
    late += [setting_edits.VARIABLE] if env and aim.in_config else []
    steps = _steps(probes, [*edits, *chain], env, request, late)
    texts = {texts[0]: texts[2] for step in steps if (texts := step.texts())}
    then = _after(world, texts.get(config_file.NAME), texts.get(env_file.NAME))
    _refuse_other(then.main, aim, model, request, key, world)
    old = _kept(then, found.main) if chain else None
    return SwitchPlan(found.main, then.main, old, tuple(steps), tuple(notes))


def switch_steps(probes: Probes, name: str, model: str) -> Iterator[Step]:
    """The steps of a switch to a configured provider whose key is set; else say how to do it."""
    try:
        planned = plan(probes, SwitchRequest(name, model=model, fallback=False))
    except (CannotFix, Trouble) as why:
        raise CannotFix(
            text(
                "Hermes would not use {provider}: {reason}. "
                "Run: hermes-doctor switch-provider {provider} --model {model} --apply",
                provider=name,
                reason=str(why).rstrip("."),
                model=model,
            )
        ) from None
    yield from planned.steps


def _refuse_pinned(found: Resolved) -> None:
    for doubt in found.doubts:
        if "administrator" in doubt:
            raise CannotFix(doubt)
    fault = found.world.document.fault
    if fault is not None:
        raise CannotFix(text("config.yaml {fault}; repair that first", fault=fault.what))


def _model_name(found: Resolved, request: SwitchRequest, aim: TargetProvider) -> str:
    """The model for the new provider; raise Trouble if it may not serve the current one."""
    said = request.model or aim.model
    if said:
        return without_prefix(said, aim)
    old = found.main.model.value or ""
    if not old or "${" in old:
        raise Trouble("No model is set that could be kept. Add --model NAME.")
    model = without_prefix(old, aim)
    known = known_models(found, aim)
    if model in known or found.main.requested.value == aim.name:
        return model
    if known or aim.base_url is None or "/" in model:
        example = example_model(old, aim, known)
        raise Trouble(
            text(
                "{provider} may not serve the current model {model}. Nothing was changed. "
                "Add the model, for example: --model {example}",
                provider=aim.name,
                model=old,
                example=example,
            )
        )
    return model


def _model(world: SettingInputs, aim: TargetProvider, model: str) -> list[ConfigEdit]:
    """Edits that put the new provider into `model:` and drop the settings of the old one."""
    edits: list[ConfigEdit] = []
    block = world.raw.get("model")
    if isinstance(block, dict):
        edits += [Put(("model", "provider"), aim.name), Put(("model", "default"), model)]
        gone = [key for key in _OLD if key in block and not (key == "api_mode" and aim.api_mode)]
        edits += [Drop(("model", key)) for key in gone]
        if aim.api_mode:
            edits.append(Put(("model", "api_mode"), aim.api_mode))
    else:
        made = {"provider": aim.name, "default": model}
        edits.append(Put(("model",), made | ({"api_mode": aim.api_mode} if aim.api_mode else {})))
    return edits + [Drop((key,)) for key in ("base_url", "api_base") if key in world.raw]


def _chain(found: Resolved, name: str, model: str) -> tuple[list[ConfigEdit], str]:
    """The edit that adds the previous provider to the fallback chain, or why there is none."""
    world = found.world
    old = _entry(found)
    if isinstance(old, str):
        return [], old
    if old["provider"] == name:
        return [], "the provider does not change"
    written = world.raw.get(_CHAIN)
    if written in (None, []):
        if world.raw.get("fallback_model") and not world.release.since(0, 15):
            return [], "this Hermes would then ignore fallback_model"
        return [Put((_CHAIN,), [old])], "it would not reach the current provider"
    if not isinstance(written, list):
        return [], f"{_CHAIN} is not a list"
    for number, one in enumerate(written):
        if isinstance(one, dict) and one.get("provider") == name and one.get("model") == model:
            return [Put((_CHAIN, number), old)], "it would not reach the current provider"
    if any(isinstance(one, dict) and {**one, **old} == one for one in written):
        return [], "the current provider is already a fallback"
    return [Put((_CHAIN, len(written)), old)], "it would not reach the current provider"


def _entry(found: Resolved) -> dict[str, Any] | str:
    """The current main route as an entry of the chain; a string says why there is none."""
    main, world = found.main, found.world
    if main.trouble or main.base_url is None or main.key is None or main.provider is None:
        why = main.trouble.why if main.trouble else "it is not set up"
        return f"the current provider does not work ({why})"
    if main.key.state not in ("usable", "not needed") or not main.model.value:
        return "the current provider has no usable key or no model"
    asked = main.requested.value or "auto"
    name = main.provider.value if asked == "auto" else asked
    made: dict[str, Any] = {"provider": name, "model": main.model.value}
    if main.base_url.source.kind == CONFIG and main.base_url.source.name == "model.base_url":
        made["base_url"] = main.base_url.value
        source = main.key.source
        if source.via is not None and world.release.since(0, 15):
            made["key_env"] = source.via.name
        elif source.kind == CONFIG and source.via is None:
            block = world.raw["model"]
            made["api_key"] = str(block.get("api_key") or block.get("api"))
    return made


def _keeps(
    probes: Probes,
    world: SettingInputs,
    old: Route,
    edits: Sequence[ConfigEdit],
    env: Sequence[Assign],
) -> bool:
    """Whether the chain would then really lead to what is used now."""
    try:
        then = _after(world, _config(probes, edits), _env(probes, env))
    except CannotFix:
        return False
    return _kept(then, old) is not None


def _kept(then: Resolved, old: Route) -> Route | None:
    return next((one for one in then.fallback if difference(one, old) is None), None)


def difference(first: Route, second: Route) -> str | None:
    """What differs between two routes, for people; None if they are equal."""
    if first.trouble or second.trouble:
        return (first.trouble or second.trouble).why  # type: ignore[union-attr]
    for field in ("base_url", "api_mode", "model"):
        mine, other = getattr(first, field), getattr(second, field)
        if (mine and mine.value) != (other and other.value):
            return f"{field} is {mine and mine.value}, not {other and other.value}"
    keys = [route.key.fingerprint if route.key else None for route in (first, second)]
    return None if keys[0] == keys[1] else "it uses another key"


def _steps(
    probes: Probes,
    edits: Sequence[ConfigEdit],
    env: Sequence[Assign],
    request: SwitchRequest,
    late: Sequence[str],
) -> list[Step]:
    steps: list[Step] = []
    if env:
        steps += setting_edits.edit_env(probes, f"the key of {request.name}", *env)
    steps += setting_edits.edit_config(probes, f"{request.name} becomes the model provider", *edits)
    return [*steps, *setting_edits.restart_if_running(probes, *late)] if steps else []


def _config(probes: Probes, edits: Sequence[ConfigEdit]) -> bytes | None:
    steps = setting_edits.edit_config(probes, "", *edits)
    return next((texts[2] for step in steps if (texts := step.texts())), None)


def _env(probes: Probes, edits: Sequence[Assign]) -> bytes | None:
    steps = setting_edits.edit_env(probes, "", *edits) if edits else ()
    return next((texts[2] for step in steps if (texts := step.texts())), None)


def _after(world: SettingInputs, config: bytes | None, env: bytes | None) -> Resolved:
    """What a gateway would resolve with these files instead of its own."""
    from pathlib import Path

    from hermes_doctor.system.files import ABSENT

    readings = world.readings
    if env is not None:
        file = env_file.EnvFile(Path(env_file.NAME), env, ABSENT)
        readings = env_parsers.read(file, world.release, world.started_with)
    document = world.document if config is None else Document(config)
    made = SettingInputs(
        *(world.release, document, readings, world.started_with),
        *(world.store, world.root_store, world.now),
    )
    return resolved.of(made)


def _refuse_other(
    main: Route,
    aim: TargetProvider,
    model: str,
    request: SwitchRequest,
    key: str | None,
    world: SettingInputs,
) -> None:
    """Raise if Hermes would not do what was asked for, before anything is changed."""
    from hermes_doctor.settings.key_state import fingerprint

    if main.trouble or main.base_url is None or main.key is None or main.api_mode is None:
        raise CannotFix(
            text(
                "it would not work: {reason}",
                reason=main.trouble.why if main.trouble else "no address",
            )
        )
    if main.requested.value != aim.name:
        by = main.requested.source
        raise CannotFix(
            text(
                "{by} overrides it and asks for {requested}", by=by, requested=main.requested.value
            )
        )
    if main.model.value != model:
        raise CannotFix(text("{source} overrides it with another model", source=main.model.source))
    if aim.base_url is not None and main.base_url.value != aim.base_url:
        raise CannotFix(
            text("{source} overrides it with another address", source=main.base_url.source)
        )
    if request.api_mode and main.api_mode.value != request.api_mode:
        raise CannotFix(
            text(
                "Hermes would use the protocol {used} instead of {wanted}",
                used=main.api_mode.value,
                wanted=request.api_mode,
            )
        )
    named = aim.variable and (key or world.getenv(aim.variable))
    if named and main.key.fingerprint != fingerprint(named):
        raise CannotFix(text("{source} overrides it with another key", source=main.key.source))
    if main.key.state not in ("usable", "not needed"):
        raise CannotFix(text("the key {name} is {state}", name=main.key.name, state=main.key.state))
    if main.key.state == "not needed" and not urls.is_loopback(main.base_url.value or ""):
        raise CannotFix("no key is set for it")
