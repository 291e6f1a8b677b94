"""Determines the provider to switch to: built-in, already configured, or new; and its model.

Which models a provider serves is known only in part without asking it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from hermes_doctor.core import redaction
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import Trouble
from hermes_doctor.hermes.settings import custom_providers, misspellings, urls
from hermes_doctor.hermes.settings.edits import ConfigEdit, Drop, Put, Rename
from hermes_doctor.hermes.settings.inputs import SettingInputs, references
from hermes_doctor.hermes.settings.resolved import Resolved

Path = tuple[str | int, ...]
_RESERVED = ("auto", "custom", "moa", "main", "")
_ENTRY = ("base_url", "url", "api")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*(?:KEY|TOKEN|SECRET)")
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+(?:/[^\s?#@]*)?")


class SwitchRequest(NamedTuple):
    """The options that the operator gave."""

    name: str
    base_url: str | None = None
    key_env: str | None = None
    model: str | None = None
    api_mode: str | None = None
    fallback: bool = True


class TargetProvider(NamedTuple):
    """The target provider, and the edits and key that it needs."""

    name: str
    edits: tuple[ConfigEdit, ...] = ()
    base_url: str | None = None
    """The address it must resolve to; None for a built-in provider, which has its own."""
    variable: str | None = None
    """The variable with its key; None if the key is elsewhere or none is needed."""
    model: str | None = None
    """The model that its entry names."""
    api_mode: str | None = None
    """The protocol to put into `model:` because there is no entry for it."""
    in_config: bool = False
    """Whether config.yaml contains the key as `${NAME}`."""


def find_target(inputs: SettingInputs, request: SwitchRequest) -> TargetProvider:
    """Find the provider, and what has to be written for it."""
    _refuse_nonsense(inputs, request)
    wanted = custom_providers.slug(request.name)
    known = inputs.release.provider(wanted)
    configured = next(_entries(inputs, wanted), None)
    if known == wanted:  # an entry in config.yaml cannot override a built-in provider
        return _builtin(inputs, request, known)
    if configured:
        aim = _configured(request, *configured)
        # Refuse an entry with a key where a variable's name belongs; the key is not shown.
        name = aim.variable
        if name is not None and name not in inputs.variables and not redaction.is_variable(name):
            raise Trouble(
                "The entry {name} in config.yaml has a {value} "
                "instead of the name of a variable. Add --key-env {variable}",
                name=aim.name,
                value=redaction.redact_unless_variable(name)[1:-1],
                variable=usual_variable(aim.name),
            )
        return _for_its_host(inputs, request, aim)
    if known not in (None, "custom") and not request.base_url:
        return _builtin(inputs, request, known)
    return _for_its_host(inputs, request, _new(inputs, request, wanted))


def _for_its_host(
    inputs: SettingInputs, request: SwitchRequest, aim: TargetProvider
) -> TargetProvider:
    """The aim; raise Trouble if a vendor's key would go to another host without being named."""
    if not request.base_url or request.key_env or aim.variable is None:
        return aim
    owners = [url for variable, url in _vendors(inputs) if variable == aim.variable]
    stranger = owners and not any(urls.belongs(request.base_url, _domain(url)) for url in owners)
    if stranger and inputs.release.is_usable(inputs.getenv(aim.variable)):
        raise Trouble(
            "{variable} contains a key for {domain}, and would be sent to {host}. "
            "If you want that, add --key-env {variable}; otherwise --key-env with "
            "another name.",
            variable=aim.variable,
            domain=_domain(owners[0]),
            host=urls.host(request.base_url),
        )
    return aim


def _vendors(inputs: SettingInputs) -> Iterator[tuple[str, str]]:
    """The key variables of well-known vendors, each with an address of the vendor."""
    for facts in inputs.release.registry.values():
        if urls.is_public(facts["base_url"]):
            yield from ((key, facts["base_url"]) for key in facts["keys"])
    yield from ((usual_variable(name), url) for name, url in misspellings.OTHER_PROVIDERS.items())
    yield "OPENROUTER_API_KEY", "https://openrouter.ai"
    yield "OPENAI_API_KEY", "https://api.openai.com"


def _domain(url: str) -> str:
    return ".".join(urls.host(url).split(".")[-2:])


def _refuse_nonsense(inputs: SettingInputs, request: SwitchRequest) -> None:
    wanted = custom_providers.slug(request.name)
    if wanted in _RESERVED or not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", wanted):
        raise Trouble("{request!r} cannot be the name of a provider.", request=request.name)
    url = request.base_url
    if url is not None and (not _ADDRESS.fullmatch(url) or urls.fault(url)):
        raise Trouble(
            "--base-url needs an address such as https://relay.example/v1, without a password."
        )
    if request.key_env is not None and not _VARIABLE.fullmatch(request.key_env):
        raise Trouble(
            "--key-env needs the name of a variable that ends with KEY, TOKEN or SECRET; "
            "you are asked for the key itself."
        )
    modes = sorted(inputs.release.api_modes)
    if request.api_mode is not None and request.api_mode not in modes:
        raise Trouble(
            "Unknown --api-mode {api_mode!r}. Use {modes}.",
            modes=", ".join(modes),
            api_mode=request.api_mode,
        )


def _builtin(inputs: SettingInputs, request: SwitchRequest, name: str) -> TargetProvider:
    if request.base_url:
        raise Trouble(
            "{name} is built into Hermes and has its own address. Choose another "
            "name for your provider.",
            name=name,
        )
    facts = inputs.release.registry.get(name)
    keys = facts["keys"] if facts else ["OPENROUTER_API_KEY"]
    if facts and (facts["kind"] != "api_key" or name in ("copilot", "azure-foundry")):
        raise Trouble("{name} needs more than a key. Set it up with: hermes model", name=name)
    if request.key_env and request.key_env not in keys:
        raise Trouble(
            "{name} reads its key from {keys}, not from {key_env}.",
            name=name,
            keys=" or ".join(keys),
            key_env=request.key_env,
        )
    able = [key for key in keys if inputs.release.is_usable(inputs.dotenv_first(key))]
    return TargetProvider(
        name=name, variable=request.key_env or next(iter(able), keys[0]), api_mode=request.api_mode
    )


def _entries(inputs: SettingInputs, wanted: str) -> Iterator[tuple[Path, dict[Any, Any]]]:
    """The entries of config.yaml with that name, disabled ones included."""
    providers = inputs.raw.get("providers")
    for name, block in providers.items() if isinstance(providers, dict) else ():
        if isinstance(name, str) and isinstance(block, dict) and _is_called(wanted, name, block):
            yield ("providers", str(name)), block
    older = inputs.raw.get("custom_providers")
    for number, block in enumerate(older if isinstance(older, list) else ()):
        if isinstance(block, dict) and _is_called(wanted, "", block):
            yield ("custom_providers", number), block


def _is_called(wanted: str, key: str, block: dict[Any, Any]) -> bool:
    names = (key, block.get("name"))
    return wanted in [
        custom_providers.slug(name) for name in names if isinstance(name, str) and name
    ]


def _configured(request: SwitchRequest, path: Path, block: dict[Any, Any]) -> TargetProvider:
    """Use the existing entry, with as few changes as possible."""
    listed = isinstance(path[-1], int)
    edits: list[ConfigEdit] = []
    places = _ENTRY if listed else tuple(reversed(_ENTRY))
    place = next((key for key in places if block.get(key)), "base_url")
    url = request.base_url or (block[place] if isinstance(block.get(place), str) else None)
    if not url:
        raise Trouble(
            "{request} has no address in config.yaml. Add --base-url.", request=request.name
        )
    if request.base_url:
        edits.append(Put((*path, place), request.base_url))
    if request.api_mode:
        word = "transport" if block.get("transport") and not block.get("api_mode") else "api_mode"
        edits.append(Put((*path, word), request.api_mode))
    if "enabled" in block and block["enabled"] is not True:
        edits.append(Put((*path, "enabled"), True))
    variable, keys = _key(request, path, block, listed=listed, url=url)
    model = next((block[k] for k in ("default_model", "model") if _is_text(block.get(k))), None)
    name = custom_providers.slug(str(block.get("name") if listed else path[-1]))
    return TargetProvider(
        name=name,
        edits=(*edits, *keys),
        base_url=str(url).rstrip("/"),
        variable=variable,
        model=model and str(model),
        in_config=_is_text(block.get("api_key")) and not request.key_env,
    )


def _key(
    request: SwitchRequest, path: Path, block: dict[Any, Any], *, listed: bool, url: str
) -> tuple[str | None, list[ConfigEdit]]:
    """The variable with the key of an entry, and the edits that set it."""
    inline, named = block.get("api_key"), block.get("key_env")
    other = block.get("api_key_env")
    if request.key_env:
        edits: list[ConfigEdit] = [Put((*path, "key_env"), request.key_env)]
        edits += [Drop((*path, k)) for k in ("api_key", "api_key_env") if k in block]
        return request.key_env, edits
    if _is_text(inline):
        variables = references(str(inline))
        return (variables[0], []) if len(variables) == 1 else (None, [])
    if _is_text(named):
        return str(named), []
    if _is_text(other):  # Hermes reads it only in the older list
        spelt: list[ConfigEdit] = [] if listed else [Rename((*path, "api_key_env"), "key_env")]
        return str(other), spelt
    if urls.is_loopback(url):
        return None, []
    variable = usual_variable(request.name)
    return variable, [Put((*path, "key_env"), variable)]


def _unknown(inputs: SettingInputs, name: str) -> Trouble:
    """What to say of a provider that has neither an entry nor an address."""
    wanted = custom_providers.slug(name)
    own_api = wanted == "openai" and inputs.release.provider("openai-api")
    meant = own_api or misspellings.meant_provider(inputs, wanted)
    if meant:
        return Trouble(
            "Unknown provider {request!r}. Did you mean {meant!r}?", request=name, meant=meant
        )
    if address := misspellings.OTHER_PROVIDERS.get(wanted):
        return Trouble(
            "Hermes has no entry for {request!r}. Add its address: --base-url {address}",
            request=name,
            address=address,
        )
    return Trouble(
        "Unknown provider {request!r}: neither Hermes nor config.yaml has it. "
        "For a new one, add --base-url.",
        request=name,
    )


def _new(inputs: SettingInputs, request: SwitchRequest, wanted: str) -> TargetProvider:
    if not request.base_url:
        raise _unknown(inputs, request.name)
    local = urls.is_loopback(request.base_url) and not request.key_env
    variable = None if local else request.key_env or usual_variable(request.name)
    block = {"base_url": request.base_url}
    if variable:
        block["key_env"] = variable
    if request.api_mode:
        block["api_mode"] = request.api_mode
    edit = Put(("providers", wanted), block)
    return TargetProvider(wanted, (edit,), request.base_url.rstrip("/"), variable)


def usual_variable(name: str) -> str:
    """The usual variable of a provider: `openkey` has its key in `OPENKEY_API_KEY`."""
    word = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
    return f"{'_' if word[:1].isdigit() else ''}{word}_API_KEY"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


_FAMILY = pattern(r"[A-Za-z]+")
"""The first word of a model's name, which most vendors use for all their models."""


def example_model(old: str, aim: TargetProvider, known: Sequence[str]) -> str:
    """A model to suggest: the current one as its own vendor calls it, else one that is known."""
    vendor, slash, bare = old.partition(":")[0].rpartition("/")
    if slash and vendor == aim.name and aim.base_url is None:
        return bare.replace(".", "-") if vendor == "anthropic" else bare
    return next(iter(known), bare)


def strange_to(now: Resolved, aim: TargetProvider, model: str) -> str:
    """A model of the provider, if the asked one is named like another vendor's; else empty."""
    known = known_models(now, aim)
    family = _FAMILY.match(model)
    families = [match[0].lower() for known_model in known if (match := _FAMILY.match(known_model))]
    reseller = aim.base_url is not None or any("/" in one for one in known)
    if model in known or reseller or family is None or family[0].lower() in families:
        return ""
    return next(iter(known), "")


def without_prefix(model: str, aim: TargetProvider) -> str:
    """The model without `NAME/`; OpenRouter itself sells models such as `openrouter/auto`."""
    bare = model.removeprefix(f"{aim.name}/")
    return model if aim.name == "openrouter" and "/" not in bare else bare


def is_known(now: Resolved, aim: TargetProvider, model: str) -> bool:
    """Whether the model is the provider's own, known to be served, or already used with it."""
    named = aim.model and without_prefix(aim.model, aim)
    same = now.main.requested.value == aim.name
    return same or model == named or model in known_models(now, aim)


def known_models(now: Resolved, aim: TargetProvider) -> list[str]:
    """Models that the provider serves: as its entry lists, as a fallback uses, as Hermes knows."""
    world = now.world
    entries = custom_providers.provider_entries(world)
    known = [
        model
        for entry in entries
        if aim.base_url is not None and custom_providers.slug(entry.name) == aim.name
        for model in entry.models()
    ]
    chain = [route for route in now.fallback if route.requested.value == aim.name]
    known += [route.model.value for route in chain if route.model.value]
    if aim.base_url is None:
        topics = world.release.topic("models"), world.release.ever("models")
        known += [str(topics[0][aim.name])] if aim.name in topics[0] else []
        known += [str(topics[1][aim.name]["is"])] if aim.name in topics[1] else []
    return [*dict.fromkeys(without_prefix(model, aim) for model in known)]
