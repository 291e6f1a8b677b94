"""Check the model and the providers that config.yaml and .env name."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.edits import Drop, Edit, Put, Rename, Unset
from hermes_doctor.api.providers import (
    ConfiguredRoute,
    Resolved,
    SideTask,
    ignored_relay,
    is_seller,
    provider_entry,
    redact_for_display,
    resolved_or_skip,
    routes,
    to_plain_types,
)
from hermes_doctor.api.settings import WrongShape, provider_mistakes, urls
from hermes_doctor.api.tools import listed, sentences

_TEXT_ONLY = ("deepseek-chat", "deepseek-reasoner", "deepseek-v3", "deepseek-r1")
"""The beginnings of models that never take images, whatever provider serves them."""
_LOGINS = ("anthropic", "copilot", "copilot-acp", "lmstudio", "bedrock", "vertex", "azure-foundry")
"""Providers whose login may be outside the home, or that need no key."""


@check(id="side-models", group="configuration", codes=["CFG-MODEL-AUX"], by_release=True)
def side_models(probes: Probes) -> Iterator[Finding]:
    """Can the model of every side task do its task?"""
    tasks = [
        side_task for side_task in resolved_or_skip(probes).tasks if side_task.provider.source.file
    ]
    if not tasks:
        raise Skip("no side task has its own settings")
    for task in tasks:
        model = (task.model.value or "" if task.model else "").rpartition("/")[2].lower()
        if task.trouble and task.provider.value not in _LOGINS:
            yield _unusable(task, task.trouble.kind)
        elif task.name == "vision" and model.startswith(_TEXT_ONLY):
            yield Finding(
                code="CFG-MODEL-AUX",
                severity=Severity.WARNING,
                title=text("the model for pictures takes only text: {model}", model=model[:17]),
                subject="auxiliary.vision",
                detail="The bot answers text, but every picture fails.",
                evidence=(
                    Evidence(
                        task.provider.source.place,
                        text("model: {model}", model=redact_for_display(model)),
                    ),
                ),
                next="Set auxiliary.vision.model in config.yaml to a model that takes images.",
            )


def _unusable(task: SideTask, kind: str) -> Finding:
    provider = task.provider.value or ""
    return Finding(
        code="CFG-MODEL-AUX",
        severity=Severity.WARNING,
        title=(
            text("unknown provider for the side task {task}", task=redact_for_display(task.name))
            if kind in ("unknown", "disabled")
            else text(
                "the side task {task} has no usable login", task=redact_for_display(task.name)
            )
        ),
        subject=f"auxiliary.{task.name}",
        detail=(
            "The bot answers, but this task fails or uses another provider. A service that "
            "hermes-doctor cannot read may set the key."
        ),
        evidence=(
            Evidence(
                task.provider.source.place,
                f"{redact_for_display(task.name)}.provider: {redact_for_display(provider)}",
            ),
        ),
        next=text(
            "Set the key of the provider in .env, or another auxiliary.{task}.provider.",
            task=redact_for_display(task.name),
        ),
    )


_MODELS = ("LLM_MODEL", "HERMES_MODEL", "OPENAI_MODEL")


@check(id="model-variables", group="configuration", codes=["ENV-IGNORED"], by_release=True)
def model_variables(probes: Probes) -> Iterator[Finding]:
    """Do variables for the model have an effect?"""
    resolved = resolved_or_skip(probes)
    model, url = resolved.main.model.value, resolved.main.base_url
    for name in _MODELS:
        value = resolved.world.getenv(name)
        if value and value.strip() != (model or "").strip():
            yield _finding(
                resolved, name, "Hermes reads the model from `model.default` in config.yaml."
            )
    address = resolved.world.getenv("OPENAI_BASE_URL")
    uses = resolved.main.provider and resolved.main.provider.value == "openai-api"
    ignored = address and not uses and not ignored_relay(resolved)
    if ignored and url and address.rstrip("/") != (url.value or "").rstrip("/"):
        yield _finding(
            resolved,
            "OPENAI_BASE_URL",
            text(
                "Messages go to {host}: Hermes reads the address from `model.base_url` in "
                "config.yaml.",
                host=redact_for_display(urls.host(url.value or "")),
            ),
        )._replace(fix=None)
    for other in resolved.main.requested.shadows:
        if other.value != resolved.main.requested.value:
            yield _provider(resolved, other.source.name)


def _finding(resolved: Resolved, name: str, detail: str) -> Finding:
    source = resolved.world.getenv(name).source
    return Finding(
        code="ENV-IGNORED",
        severity=Severity.INFO,
        title=text("Hermes ignores {variable}", variable=name),
        subject=name,
        detail=detail,
        evidence=(Evidence(source.place, f"{name} is set"),),
        fix="drop-variable" if source.kind == "env" else None,
        data={"edits": (Unset(name),)},
        next=text("Remove {variable} if no other program needs it.", variable=name),
    )


def _provider(resolved: Resolved, name: str) -> Finding:
    """Report a second place that names a provider; the precedence changed with 0.15."""
    asked = resolved.main.requested
    by_variable = asked.source.kind in ("env", "process")
    return Finding(
        code="ENV-IGNORED",
        severity=Severity.WARNING if by_variable else Severity.INFO,
        title=text("Hermes ignores the provider in {setting}", setting=redact_for_display(name)),
        subject=name,
        detail=(
            text(
                "In this release {variable} overrides config.yaml.",
                variable=redact_for_display(asked.source.name),
            )
            if by_variable
            else "config.yaml overrides the variable."
        ),
        evidence=(
            Evidence(
                asked.source.place,
                f"{redact_for_display(asked.source.name)}: {redact_for_display(asked.value)}",
            ),
        ),
        fix="drop-variable"
        if "HERMES_INFERENCE_PROVIDER" in resolved.world.readings.dotenv.values
        else None,
        data={"edits": (Unset("HERMES_INFERENCE_PROVIDER"),)},
        next="Remove the variable HERMES_INFERENCE_PROVIDER if config.yaml is right.",
    )


_LATER = "api_key_env"


@check(id="provider-entries", group="configuration", codes=["CFG-PROVIDERS-SHAPE"], by_release=True)
def provider_entries(probes: Probes) -> Iterator[Finding]:
    """Can Hermes read your own provider entries?"""
    resolved = resolved_or_skip(probes)
    for shape in provider_mistakes.misshapen_providers(resolved.world):
        edits = _edits(resolved, shape)
        name = ".".join(map(str, shape.path))
        wanted = _wanted(resolved) & {each.lower() for each in shape.names}
        yield Finding(
            code="CFG-PROVIDERS-SHAPE",
            severity=_severity(resolved, bool(wanted)),
            title=text("Hermes cannot read the providers in {setting}", setting=name),
            subject=name,
            detail=(
                text(
                    "Every message fails, because Hermes does not find {providers}."
                    if _severity(resolved, bool(wanted)) is Severity.ERROR
                    else "Hermes does not find {providers}, which your settings use.",
                    providers=listed([redact_for_display(each) for each in sorted(wanted)]),
                )
                if wanted
                else "Your settings do not use these providers."
            ),
            evidence=(
                Evidence(
                    resolved.world.document.source(*shape.path).place,
                    f"{name} {shape.what}",
                ),
            ),
            fix="rewrite-setting" if edits else None,
            data={"edits": edits},
            next=""
            if edits
            else "Write each provider as a key under `providers:`, with its settings below it.",
        )


def _wanted(resolved: Resolved) -> set[str]:
    """Return the names of all providers that are used."""
    routes = (resolved.main, *resolved.fallback)
    asked = [route.requested.value for route in routes] + [
        task.provider.value for task in resolved.tasks
    ]
    return {str(word).lower().removeprefix("custom:") for word in asked if word}


def _severity(resolved: Resolved, wanted: bool) -> Severity:
    if not wanted:
        return Severity.INFO
    broken = resolved.main.trouble is not None and resolved.used is None
    return Severity.ERROR if broken else Severity.WARNING


def _edits(resolved: Resolved, wrong_shape: WrongShape) -> tuple[Edit, ...]:
    """Return the edits that move the block to the right key or rewrite it in the right form."""
    if wrong_shape.value is not None:
        return (Put(wrong_shape.path, to_plain_types(wrong_shape.value)),)
    if wrong_shape.moved is None:
        return ()
    if len(wrong_shape.path) == 1:
        inside: tuple[Edit, ...] = ()
        if wrong_shape.moved == ("providers",):  # `api_key_env` is ignored there
            block = resolved.world.raw[wrong_shape.path[0]]
            inside = tuple(
                Rename((*wrong_shape.path, name, _LATER), "key_env")
                for name, entry in block.items()
                if entry.get(_LATER) and not entry.get("key_env")
            )
        return (*inside, Rename(wrong_shape.path, str(wrong_shape.moved[0])))
    value = to_plain_types(resolved.world.raw["model"][wrong_shape.path[1]])
    return (Put(wrong_shape.moved, value), Drop(wrong_shape.path))


_SELLERS = ("openrouter", "nous", "kilocode", "ai-gateway", "custom")


@check(
    id="provider-choice",
    group="configuration",
    codes=["CFG-PROVIDER-LEFT", "CFG-MODEL-PREFIX"],
    by_release=True,
)
def provider_choice(probes: Probes) -> Iterator[Finding]:
    """Do the provider and the model belong together?"""
    resolved = resolved_or_skip(probes)
    for way in routes(resolved):
        prefix, slash, bare = (way.route.model.value or "").strip().partition("/")
        entry = provider_entry(resolved.world, prefix) if slash and bare and way.model else None
        if entry is None:
            continue
        if way.own and way.own.path == entry.path:
            yield from _prefix(way, bare, is_seller(resolved.world, prefix.lower()))
        else:
            yield from _left(resolved, way, prefix, bare)


def _prefix(way: ConfiguredRoute, bare: str, sold: bool) -> Iterator[Finding]:
    """Report a model name that still has the right provider's name in front."""
    assert way.own is not None and way.model is not None
    model = str(way.route.model.value).strip()
    listed = way.own.models()
    if model in listed or way.own.block.get("default_model") == model:
        return
    sure = bare in listed or way.own.model() == bare
    yield Finding(
        code="CFG-MODEL-PREFIX",
        severity=way.severity if sure else Severity.INFO if sold else Severity.WARNING,
        title=text(
            'the model name starts with "{provider}/"', provider=redact_for_display(way.own.name)
        ),
        subject=way.route.path,
        detail=text(
            "Hermes sends the name unchanged, so the provider does not know the model. Did you "
            "mean {model}?",
            model=redact_for_display(bare),
        )
        if sure
        else text(
            "Hermes sends the name unchanged. Did you mean {model}?",
            model=redact_for_display(bare),
        ),
        evidence=(Evidence(way.route.model.source.place, f"model: {redact_for_display(model)}"),),
        fix="strip-prefix",
        data={"edits": (Put(way.model, bare),)},
    )


def _left(resolved: Resolved, way: ConfiguredRoute, prefix: str, bare: str) -> Iterator[Finding]:
    """Report a model name with one provider's prefix while messages go to another provider."""
    route, world = way.route, resolved.world
    goes_to = route.provider.value if route.provider else None
    if goes_to in _SELLERS and is_seller(world, prefix.lower()):
        return  # resold models may have the prefix of a custom provider
    entry = provider_entry(world, prefix)
    assert entry is not None and way.model is not None
    asked = route.requested
    chosen = asked.source.kind in ("env", "process")
    word = entry.word(world)
    relayed = way.own is not None or goes_to == "custom"
    severity = Severity.INFO if relayed else way.severity  # relays may use such names themselves
    where = asked.source if asked.value != "auto" else world.document.source(*way.provider)
    setting = (
        "no provider is set"
        if asked.value == "auto"
        else f"provider: {redact_for_display(asked.value)}"
    )
    needed = text(
        "It needs `provider: {provider}` and the model `{model}`.",
        provider=redact_for_display(word),
        model=redact_for_display(bare),
    )
    elsewhere = (
        text("Messages go to {address}.", address=redact_for_display(route.base_url.value))
        if route.base_url
        else "Messages do not go there."
    )
    decides = (
        text("In this release {variable} decides.", variable=asked.source.name) if chosen else ""
    )
    edits: tuple[Edit, ...] = (Put(way.provider, word), Put(way.model, bare))
    if way.model == ("model",):
        edits = (Put(("model",), {"default": bare, "provider": word}),)
    yield Finding(
        code="CFG-PROVIDER-LEFT",
        severity=severity,
        title=text(
            "the model of {provider} is set, but messages go elsewhere",
            provider=redact_for_display(entry.name),
        ),
        subject=route.path,
        detail=sentences(elsewhere, needed, decides),
        evidence=(
            Evidence(where.place, setting),
            Evidence(route.model.source.place, f"model: {redact_for_display(route.model.value)}"),
            Evidence(
                world.document.source(*entry.path).place,
                f"{redact_for_display(entry.name)} is set up",
            ),
        ),
        fix=None if chosen or relayed else "use-own-provider",
        data={"edits": edits},
        next=text("Change {variable}.", variable=asked.source.name)
        if chosen
        else "Change both settings if you mean this provider."
        if relayed
        else "",
    )
