"""Determines the provider to switch to: built-in, already configured, or new."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hermes_doctor import redaction
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import Trouble
from hermes_doctor.settings import custom_providers, spelling, urls
from hermes_doctor.settings.edit.edits import ConfigEdit, Drop, Put, Rename
from hermes_doctor.settings.inputs import SettingInputs, references

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
        _refuse_pasted_key(inputs, aim)
        return _for_its_host(inputs, request, aim)
    if known not in (None, "custom") and not request.base_url:
        return _builtin(inputs, request, known)
    return _for_its_host(inputs, request, _new(inputs, request, wanted))


def _refuse_pasted_key(inputs: SettingInputs, aim: TargetProvider) -> None:
    """Refuse an entry with a key where a variable's name belongs; the key is not shown."""
    name = aim.variable
    if name is None or name in inputs.variables or redaction.is_variable(name):
        return
    raise Trouble(
        text(
            "The entry {name} in config.yaml has a {value} "
            "instead of the name of a variable. Add --key-env {variable}",
            name=aim.name,
            value=redaction.redact_unless_variable(name)[1:-1],
            variable=usual_variable(aim.name),
        )
    )


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
            text(
                "{variable} contains a key for {domain}, and would be sent to {host}. "
                "If you want that, add --key-env {variable}; otherwise --key-env with "
                "another name.",
                variable=aim.variable,
                domain=_domain(owners[0]),
                host=urls.host(request.base_url),
            )
        )
    return aim


def _vendors(inputs: SettingInputs) -> Iterator[tuple[str, str]]:
    """The key variables of well-known vendors, each with an address of the vendor."""
    for facts in inputs.release.registry.values():
        if urls.is_public(facts["base_url"]):
            yield from ((key, facts["base_url"]) for key in facts["keys"])
    yield from ((usual_variable(name), url) for name, url in spelling.ADDRESSES.items())
    yield "OPENROUTER_API_KEY", "https://openrouter.ai"
    yield "OPENAI_API_KEY", "https://api.openai.com"


def _domain(url: str) -> str:
    return ".".join(urls.host(url).split(".")[-2:])


def _refuse_nonsense(inputs: SettingInputs, request: SwitchRequest) -> None:
    wanted = custom_providers.slug(request.name)
    if wanted in _RESERVED or not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", wanted):
        raise Trouble(text("{request!r} cannot be the name of a provider.", request=request.name))
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
            text(
                "Unknown --api-mode {api_mode!r}. Use {modes}.",
                modes=", ".join(modes),
                api_mode=request.api_mode,
            )
        )


def _builtin(inputs: SettingInputs, request: SwitchRequest, name: str) -> TargetProvider:
    if request.base_url:
        raise Trouble(
            text(
                "{name} is built into Hermes and has its own address. Choose another "
                "name for your provider.",
                name=name,
            )
        )
    facts = inputs.release.registry.get(name)
    keys = facts["keys"] if facts else ["OPENROUTER_API_KEY"]
    if facts and (facts["kind"] != "api_key" or name in ("copilot", "azure-foundry")):
        raise Trouble(text("{name} needs more than a key. Set it up with: hermes model", name=name))
    if request.key_env and request.key_env not in keys:
        raise Trouble(
            text(
                "{name} reads its key from {keys}, not from {key_env}.",
                name=name,
                keys=" or ".join(keys),
                key_env=request.key_env,
            )
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
    return wanted in [custom_providers.slug(one) for one in names if isinstance(one, str) and one]


def _configured(request: SwitchRequest, path: Path, block: dict[Any, Any]) -> TargetProvider:
    """Use the existing entry, with as few changes as possible."""
    listed = isinstance(path[-1], int)
    edits: list[ConfigEdit] = []
    places = _ENTRY if listed else tuple(reversed(_ENTRY))
    place = next((key for key in places if block.get(key)), "base_url")
    url = request.base_url or (block[place] if isinstance(block.get(place), str) else None)
    if not url:
        raise Trouble(
            text("{request} has no address in config.yaml. Add --base-url.", request=request.name)
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
        found = references(str(inline))
        return (found[0], []) if len(found) == 1 else (None, [])
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
    meant = own_api or spelling.meant(inputs, wanted)
    if meant:
        return Trouble(
            text("Unknown provider {request!r}. Did you mean {meant!r}?", request=name, meant=meant)
        )
    if address := spelling.ADDRESSES.get(wanted):
        return Trouble(
            text(
                "Hermes has no entry for {request!r}. Add its address: --base-url {address}",
                request=name,
                address=address,
            )
        )
    return Trouble(
        text(
            "Unknown provider {request!r}: neither Hermes nor config.yaml has it. "
            "For a new one, add --base-url.",
            request=name,
        )
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
