"""Plans the edits of a switch, resolves what Hermes will use then, and verifies that it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hermes_doctor.backup.records.journal import ItemRecord
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system.files import ABSENT
from hermes_doctor.diagnosis.probes.network import provider_trial, request
from hermes_doctor.diagnosis.probes.network.provider_trial import Trial
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import Step
from hermes_doctor.hermes.settings import config_yaml, env_file, resolved, urls
from hermes_doctor.hermes.settings.credential_pool import fingerprint
from hermes_doctor.hermes.settings.document import CONFIG, Document
from hermes_doctor.hermes.settings.edits import Assign, ConfigEdit, Drop, Put
from hermes_doctor.hermes.settings.inputs import SettingInputs, Settings
from hermes_doctor.hermes.settings.resolved import Resolved, Route
from hermes_doctor.operations.provider_switch.target import (
    SwitchRequest,
    TargetProvider,
    example_model,
    find_target,
    is_known,
    known_models,
    strange_to,
    without_prefix,
)
from hermes_doctor.repair.planning import setting_edits

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
    now = probes.settings.resolved()
    aim = find_target(now.world, request)
    if aim.variable is None:
        return None
    if aim.base_url is not None:
        value = now.world.getenv(aim.variable)
        return None if now.world.release.is_usable(value) else aim.variable
    edits = _model(now.world, aim, "any")
    key = _after(now.world, _config(probes, edits), None).main.key
    return None if key and key.state == "usable" else aim.variable


def plan(probes: Probes, request: SwitchRequest, key: str | None = None) -> SwitchPlan:
    """The steps of a switch; raise CannotFix if Hermes would then not do what was asked."""
    now = probes.settings.resolved()
    _refuse_pinned(now)
    world = now.world
    aim = find_target(world, request)
    model = _model_name(now, request, aim)
    notes = []
    if model != (request.model or now.main.model.value):
        notes.append(f"The model is named {model} without the prefix of the provider.")
    elif not request.model and not is_known(now, aim, model):
        notes.append(
            f"Could not check whether {aim.name} serves {model}; the test request shows it."
        )
    elif strange := strange_to(now, aim, model):
        notes.append(
            f"{aim.name} probably does not serve {model}: its models have names like {strange}."
        )
    edits = [*aim.edits, *_model(world, aim, model)]
    env = [Assign(aim.variable, key)] if aim.variable and key else []
    chain: list[ConfigEdit] = []
    if request.fallback:
        chain, why = _chain(now, aim.name, model)
        if chain and not _keeps(probes, world, now.main, [*edits, *chain], env):
            chain = []
        if not chain and now.main.requested.value != aim.name:
            notes.append(f"No fallback is added: {why}.")
    late = [setting_edits.FALLBACK] if chain else []
    late += [setting_edits.VARIABLE] if env and aim.in_config else []
    steps: list[Step] = []
    if env:
        steps += setting_edits.edit_env(probes, f"the key of {request.name}", *env)
    why = f"{request.name} becomes the model provider"
    steps += setting_edits.edit_config(probes, why, *edits, *chain)
    if steps:
        steps += setting_edits.restart_if_running(probes, *late)
    texts = {texts[0]: texts[2] for step in steps if (texts := step.texts())}
    then = _after(world, texts.get(config_yaml.NAME), texts.get(env_file.NAME))
    _refuse_other(then.main, aim, model, request, key, world)
    old = _kept(then, now.main) if chain else None
    return SwitchPlan(now.main, then.main, old, tuple(steps), tuple(notes))


def switch_steps(probes: Probes, name: str, model: str) -> Iterator[Step]:
    """The steps of a switch to a configured provider whose key is set; else say how to do it."""
    try:
        planned = plan(probes, SwitchRequest(name, model=model, fallback=False))
    except (CannotFix, Trouble) as why:
        raise CannotFix(
            "Hermes would not use {provider}: {reason}. "
            "Run: hermes-doctor switch-provider {provider} --model {model} --apply",
            provider=name,
            reason=str(why).rstrip("."),
            model=model,
        ) from None
    yield from planned.steps


def _refuse_pinned(now: Resolved) -> None:
    for doubt in now.doubts:
        if "administrator" in doubt:
            raise CannotFix(doubt)
    fault = now.world.document.fault
    if fault is not None:
        raise CannotFix("config.yaml {fault}; repair that first", fault=fault.what)


def _model_name(now: Resolved, request: SwitchRequest, aim: TargetProvider) -> str:
    """The model for the new provider; raise Trouble if it may not serve the current one."""
    named = request.model or aim.model
    if named:
        return without_prefix(named, aim)
    old = now.main.model.value or ""
    if not old or "${" in old:
        raise Trouble("No model is set that could be kept. Add --model NAME.")
    model = without_prefix(old, aim)
    known = known_models(now, aim)
    if model in known or now.main.requested.value == aim.name:
        return model
    if known or aim.base_url is None or "/" in model:
        example = example_model(old, aim, known)
        raise Trouble(
            "{provider} may not serve the current model {model}. Nothing was changed. "
            "Add the model, for example: --model {example}",
            provider=aim.name,
            model=old,
            example=example,
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
        block_of_model = {"provider": aim.name, "default": model}
        edits.append(
            Put(("model",), block_of_model | ({"api_mode": aim.api_mode} if aim.api_mode else {}))
        )
    return edits + [Drop((key,)) for key in ("base_url", "api_base") if key in world.raw]


def _chain(now: Resolved, name: str, model: str) -> tuple[list[ConfigEdit], str]:
    """The edit that adds the previous provider to the fallback chain, or why there is none."""
    world = now.world
    old = _entry(now)
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
    for number, entry in enumerate(written):
        if (
            isinstance(entry, dict)
            and entry.get("provider") == name
            and entry.get("model") == model
        ):
            return [Put((_CHAIN, number), old)], "it would not reach the current provider"
    if any(isinstance(entry, dict) and {**entry, **old} == entry for entry in written):
        return [], "the current provider is already a fallback"
    return [Put((_CHAIN, len(written)), old)], "it would not reach the current provider"


def _entry(now: Resolved) -> dict[str, Any] | str:
    """The current main route as an entry of the chain; a string says why there is none."""
    main, world = now.main, now.world
    if main.trouble or main.base_url is None or main.key is None or main.provider is None:
        why = main.trouble.why if main.trouble else "it is not set up"
        return f"the current provider does not work ({why})"
    if main.key.state not in ("usable", "not needed") or not main.model.value:
        return "the current provider has no usable key or no model"
    asked = main.requested.value or "auto"
    name = main.provider.value if asked == "auto" else asked
    entry: dict[str, Any] = {"provider": name, "model": main.model.value}
    if main.base_url.source.kind == CONFIG and main.base_url.source.name == "model.base_url":
        entry["base_url"] = main.base_url.value
        source = main.key.source
        if source.via is not None and world.release.since(0, 15):
            entry["key_env"] = source.via.name
        elif source.kind == CONFIG and source.via is None:
            block = world.raw["model"]
            entry["api_key"] = str(block.get("api_key") or block.get("api"))
    return entry


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
    return next((route for route in then.fallback if difference(route, old) is None), None)


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


def _config(probes: Probes, edits: Sequence[ConfigEdit]) -> bytes | None:
    steps = setting_edits.edit_config(probes, "", *edits)
    return next((texts[2] for step in steps if (texts := step.texts())), None)


def _env(probes: Probes, edits: Sequence[Assign]) -> bytes | None:
    steps = setting_edits.edit_env(probes, "", *edits) if edits else ()
    return next((texts[2] for step in steps if (texts := step.texts())), None)


def _after(world: SettingInputs, config: bytes | None, env: bytes | None) -> Resolved:
    """What a gateway would resolve with these files instead of its own."""
    readings = world.readings
    if env is not None:
        file = env_file.EnvFile(Path(env_file.NAME), env, ABSENT)
        readings = env_file.parse_env(file, world.release, world.started_with)
    document = world.document if config is None else Document(config)
    inputs = SettingInputs(
        *(world.release, document, readings, world.started_with),
        *(world.store, world.root_store, world.now),
    )
    return resolved.resolve_settings(inputs)


def _refuse_other(
    main: Route,
    aim: TargetProvider,
    model: str,
    request: SwitchRequest,
    key: str | None,
    world: SettingInputs,
) -> None:
    """Raise if Hermes would not do what was asked for, before anything is changed."""
    if main.trouble or main.base_url is None or main.key is None or main.api_mode is None:
        raise CannotFix(
            "it would not work: {reason}", reason=main.trouble.why if main.trouble else "no address"
        )
    if main.requested.value != aim.name:
        by = main.requested.source
        raise CannotFix(
            "{by} overrides it and asks for {requested}", by=by, requested=main.requested.value
        )
    if main.model.value != model:
        raise CannotFix("{source} overrides it with another model", source=main.model.source)
    if aim.base_url is not None and main.base_url.value != aim.base_url:
        raise CannotFix("{source} overrides it with another address", source=main.base_url.source)
    if request.api_mode and main.api_mode.value != request.api_mode:
        raise CannotFix(
            "Hermes would use the protocol {used} instead of {wanted}",
            used=main.api_mode.value,
            wanted=request.api_mode,
        )
    named = aim.variable and (key or world.getenv(aim.variable))
    if named and main.key.fingerprint != fingerprint(named):
        raise CannotFix("{source} overrides it with another key", source=main.key.source)
    if main.key.state not in ("usable", "not needed"):
        raise CannotFix("the key {name} is {state}", name=main.key.name, state=main.key.state)
    if main.key.state == "not needed" and not urls.is_loopback(main.base_url.value or ""):
        raise CannotFix("no key is set for it")


_SAID = {
    "key": "the provider rejects the key",
    "money": "the account has no credit left",
    "limit": "too many requests",
    "refused": "the provider rejects the request",
    "model": "the provider does not serve the model",
    "address": "no API at this address; most addresses end with /v1",
    "down": "the provider fails",
    "unsure": "could not check whether it works; to switch anyway: add --no-test",
}


class Proof:
    """Verifies one run; `test_result` is the result of the test request."""

    def __init__(
        self, switch: SwitchPlan, make_probes: Callable[[], Probes], *, tested: bool
    ) -> None:
        self.switch = switch
        self.make_probes = make_probes
        self.tested = tested
        self.test_result = "not tested"

    def __call__(self, records: Sequence[ItemRecord]) -> list[str | None]:
        """What is wrong, for each item of the run; a switch has one item."""
        return [self._wrong() for _ in records]

    def _wrong(self) -> str | None:
        try:
            now = self.make_probes().settings.resolved()
        except CouldNotLook as doubt:
            return str(doubt)
        differs = difference(now.main, self.switch.after)
        if differs:
            return f"Hermes would not use the planned settings: {differs}"
        if not self.tested:
            return None
        asked = [question for question in request.requests(now) if question.route.path == "model"]
        if not asked:
            self.test_result = "not tested: the provider needs more than a key"
            return None
        settings = Settings(now.world.variables, frozenset(), now.world.raw, ())
        [answer] = provider_trial.ask_all(asked[:1], settings)
        self.test_result = self._words(answer)
        return None if answer.is_fine else f"the test request failed: {self.test_result}"

    def _words(self, answer: Trial) -> str:
        if answer.verdict is None:
            stage = "" if answer.failed == "answer" else f"{answer.failed}: "
            return f"{stage}{answer.why}"
        if answer.is_fine:
            return f"it answers in {answer.seconds:.1f} s"
        message = f", {answer.verdict.message}" if answer.verdict.message else ""
        return f"{_SAID[answer.verdict.kind]} (HTTP {answer.verdict.status}{message})"
