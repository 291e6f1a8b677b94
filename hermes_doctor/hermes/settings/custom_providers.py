"""Resolve the custom providers in config.yaml: `providers:` and the older `custom_providers:`.

A `CustomProvider` is what Hermes makes of an entry, a `ProviderEntry` is the entry as written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlparse

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.settings.credential_pool import Credential, Pool, seed_entry
from hermes_doctor.hermes.settings.document import Path, Text, dotted_path, stripped_text, text
from hermes_doctor.hermes.settings.inputs import ABSENT, SettingInputs, section

_CAMEL = {
    "apiKey": "api_key",
    "baseUrl": "base_url",
    "apiMode": "api_mode",
    "keyEnv": "key_env",
    "apiKeyEnv": "key_env",
    "defaultModel": "default_model",
}
PREFIX = "custom:"


class CustomProvider(NamedTuple):
    """A custom provider."""

    name: str
    key: str
    """Its key in `providers:`; empty in the older list."""
    base_url: Text
    api_key: Text
    key_env: Text
    """The name of the variable that contains the key."""
    api_mode: Text | None
    path: str
    """Where it is defined."""
    other_urls: tuple[Text, ...] = ()


class Malformed(Exception):
    """A value of a type that Hermes cannot handle: every message fails."""


def require_text(value: Any, what: str) -> Text:
    """Return a stripped text; raise Malformed for anything that Hermes would fail on."""
    if value and not isinstance(value, str):
        raise Malformed(f"{what} must be text, not {type(value).__name__}")
    return stripped_text(value)


def slug(name: str) -> str:
    """Normalise a name as Hermes does for comparisons."""
    return name.strip().lower().replace(" ", "-")


def is_enabled(block: Any, inputs: SettingInputs) -> bool:
    """Tell whether a provider is not disabled by `enabled: false`; only new releases read it."""
    if not inputs.release.since(0, 19) or not isinstance(block, dict):
        return True
    flag = block.get("enabled", True)
    if isinstance(flag, str):
        return flag.strip().lower() not in ("false", "0", "no", "off")
    return bool(flag)


def find(inputs: SettingInputs, requested: str) -> CustomProvider | None:
    """Return the custom provider of this name; a built-in one of exactly this name comes first."""
    wanted = slug(requested)
    if not wanted or wanted == "auto" or (wanted == "custom" and not inputs.release.since(0, 17)):
        return None
    is_bare = wanted != "custom" and not wanted.startswith(PREFIX)
    if is_bare and inputs.release.provider(wanted) == wanted:
        return None
    for name, block in section(inputs.config, "providers").items():
        if not isinstance(block, dict) or not is_enabled(block, inputs):
            continue
        if not isinstance(name, str):
            raise Malformed(f"providers.{name} has a name that is not text")
        shown = block.get("name") or ""
        if not isinstance(shown, str):
            raise Malformed(f"providers.{name}.name is not text")
        for one in (name, shown):
            if one and wanted in (one, slug(one), PREFIX + slug(one)):
                custom_provider = _from_block(inputs, name, block, one)
                if custom_provider:
                    return custom_provider
    if isinstance(inputs.config.get("custom_providers"), dict):
        return None
    for custom in all_providers(inputs):
        names = {slug(custom.name), PREFIX + slug(custom.name)}
        if custom.key:
            names |= {slug(custom.key), PREFIX + slug(custom.key)}
        if wanted in names:
            return custom
    return None


def _from_block(
    inputs: SettingInputs, name: str, block: dict[Any, Any], called: str
) -> CustomProvider | None:
    """Read an entry of `providers:`; here `key_env` is used, but `api_key_env` is not."""
    urls = [block[key] for key in ("api", "url", "base_url") if block.get(key)]
    if not urls:
        return None
    url = require_text(urls[0], f"the address of providers.{name}")
    key_env = stripped_text(block.get("key_env"))
    found = inputs.getenv(key_env) if key_env else ABSENT
    inline = stripped_text(block.get("api_key"))
    if found and isinstance(block.get("key_env"), Text):
        found = Text(found, block["key_env"].source._replace(via=found.source))
    shown = block.get("name", name) if called == name else called
    return CustomProvider(
        name=str(shown or ""),
        key=name,
        base_url=url,
        api_key=found or inline,
        key_env=key_env,
        api_mode=api_mode(inputs, block.get("api_mode") or block.get("transport")),
        path=f"providers.{name}",
        other_urls=tuple(text(one) for one in urls[1:]),
    )


def api_mode(inputs: SettingInputs, value: Any) -> Text | None:
    """Return a valid `api_mode`, or None."""
    word = text(value).like(value.strip().lower()) if isinstance(value, str) else ABSENT
    return word if word in inputs.release.api_modes else None


def all_providers(inputs: SettingInputs) -> list[CustomProvider]:
    """Return all custom providers as Hermes lists them: the older list first, no duplicates."""
    custom_providers: list[CustomProvider] = []
    keys: set[str] = set()
    pairs: set[tuple[str, str, str]] = set()
    for custom, model in _every(inputs):
        key = custom.key.strip().lower()
        pair = (custom.name.lower(), custom.base_url.rstrip("/").lower(), model.lower())
        if (key and key in keys) or pair in pairs:
            continue
        custom_providers.append(custom)
        keys |= {key} - {""}
        pairs.add(pair)
    return custom_providers


def _every(inputs: SettingInputs) -> Iterator[tuple[CustomProvider, str]]:
    older = inputs.config.get("custom_providers")
    if older is not None and not isinstance(older, list):
        return
    for number, block in enumerate(older or ()):
        yield from _normal(inputs, block, "", f"custom_providers[{number}]")
    for name, block in section(inputs.config, "providers").items():
        yield from _normal(inputs, block, str(name), f"providers.{name}")


def _normal(
    inputs: SettingInputs, block: Any, key: str, path: str
) -> Iterator[tuple[CustomProvider, str]]:
    """Read an entry in the form of the older list, which accepts more spellings."""
    if not isinstance(block, dict):
        return
    block = dict(block)
    if "api_key_env" in block:
        block.setdefault("key_env", block["api_key_env"])
    for camel, snake in _CAMEL.items():
        if camel in block:
            block.setdefault(snake, block[camel])
    urls = [_text(block.get(key)) for key in URL_KEYS]
    valid = [url for url in urls if url and _is_address(url, inputs)]
    name = _text(block.get("name")) or key.strip()
    if not valid or not name:
        return
    mode = block.get("api_mode") or block.get("transport")
    model = block.get("model") or block.get("default_model")
    yield (
        CustomProvider(
            name=str(name),
            key=key.strip(),
            base_url=valid[0],
            api_key=_text(block.get("api_key")),
            key_env=_text(block.get("key_env")),
            api_mode=api_mode(inputs, mode),
            path=path,
            other_urls=tuple(url for url in urls if url and url is not valid[0]),
        ),
        model.strip() if isinstance(model, str) else "",
    )


def _text(value: Any) -> Text:
    return stripped_text(value) if isinstance(value, str) else ABSENT


def _is_address(url: str, inputs: SettingInputs) -> bool:
    if inputs.release.since(0, 18) and re.search(r"\{[^}]+\}", url):
        return True
    try:
        parsed = urlparse(url)
    except ValueError:
        return False
    return bool(parsed.scheme and parsed.netloc)


def pool_for(inputs: SettingInputs, base_url: str, name: str | None = None) -> Pool | None:
    """Return the pool of an address, found by the provider's name if there is one."""
    known = list(_pooled(inputs))
    chosen = next((one for one in known if name and one[0] == slug(name)), None)
    bare = base_url.strip().rstrip("/")
    if chosen is None:
        chosen = next((one for one in known if bare and one[1].rstrip("/") == bare), None)
    if chosen is None or not base_url:
        return None
    named = next(one for one in known if one[0] == chosen[0])
    return Pool(inputs, PREFIX + chosen[0], list(_seeds(inputs, known, named)))


Pooled = tuple[str, Text, Text, str]
"""The normalised name, the address, the key, and the name as written."""


def _pooled(inputs: SettingInputs) -> Iterator[Pooled]:
    """Yield what the pool uses: the older list as written, or all providers if there is none."""
    older = inputs.config.get("custom_providers")
    if isinstance(older, list):
        for block in older:
            if isinstance(block, dict) and isinstance(block.get("name"), str):
                url, key = stripped_text(block.get("base_url")), stripped_text(block.get("api_key"))
                yield slug(block["name"]), url, key, block["name"].strip()
        return
    for custom in all_providers(inputs):
        yield slug(custom.name), custom.base_url, custom.api_key, custom.name


def _seeds(inputs: SettingInputs, known: list[Pooled], chosen: Pooled) -> Iterator[Credential]:
    name, url, key, written = chosen
    if key:
        yield seed_entry(f"config:{written}", key, url.without_slash())
    model = section(inputs.config, "model")
    address = stripped_text(model.get("base_url"))
    keys = [stripped_text(model[k]) for k in ("api_key", "api") if isinstance(model.get(k), str)]
    own = next((one for one in keys if one), ABSENT)
    if stripped_text(model.get("provider")).lower() == "custom" and address.rstrip("/") and own:
        bare = address.rstrip("/")
        owner = next((one[0] for one in known if one[1].rstrip("/") == bare and bare), None)
        if owner == name:
            yield seed_entry("model_config", own, address.like(bare))


PROVIDERS, CUSTOM_PROVIDERS = "providers", "custom_providers"
URL_KEYS = ("base_url", "url", "api")


class ProviderEntry(NamedTuple):
    """An entry of a custom provider, as written."""

    name: str
    path: Path
    block: Mapping[Any, Any]

    def word(self, world: SettingInputs) -> str:
        """Return the `provider` value that selects it and not a built-in one of the same name."""
        plain = slug(self.name)
        if world.release.provider(plain) == plain:
            return PREFIX + plain
        return self.name if self.path[0] == PROVIDERS else plain

    def model(self) -> str | None:
        """Return the only model that it names."""
        named = self.block.get("default_model") or self.block.get("model")
        if isinstance(named, str) and named.strip():
            return str(named).strip()
        models = self.models()
        return models[0] if len(models) == 1 else None

    def models(self) -> list[str]:
        """Return the models that it lists."""
        listed = self.block.get("models")
        names = listed if isinstance(listed, dict | list) else ()
        found = (
            name.get("id") or name.get("name") if isinstance(name, dict) else name for name in names
        )
        return [str(one) for one in found if isinstance(one, str)]


def provider_entries(world: SettingInputs) -> list[ProviderEntry]:
    """Return every entry in a place and form that Hermes reads."""
    found = [
        ProviderEntry(str(name), (PROVIDERS, name), block)
        for name, block in section(world.raw, PROVIDERS).items()
        if isinstance(name, str) and isinstance(block, dict)
    ]
    older = world.raw.get(CUSTOM_PROVIDERS)
    for number, block in enumerate(older if isinstance(older, list) else ()):
        if isinstance(block, dict) and isinstance(block.get("name"), str):
            found.append(ProviderEntry(str(block["name"]), (CUSTOM_PROVIDERS, number), block))
    return found


def provider_entry(world: SettingInputs, name: str) -> ProviderEntry | None:
    """Return the entry that Hermes uses for a name."""
    try:
        custom_provider = find(world, name)
    except Malformed:
        return None
    if custom_provider is None or not custom_provider.base_url:
        return None
    return next(
        (one for one in provider_entries(world) if dotted_path(one.path) == custom_provider.path),
        None,
    )


def entry_with_address(world: SettingInputs, address: str | None) -> ProviderEntry | None:
    """Return the entry that has this address and can be selected by its name; the first of them."""
    wanted = _comparable(address)
    return next(
        (entry for entry in selectable_entries(world) if _address(entry) == wanted),
        None,
    )


def selectable_entries(world: SettingInputs) -> list[ProviderEntry]:
    """Return the entries with an address that `provider: NAME` selects."""
    return [
        one
        for one in provider_entries(world)
        if _address(one) and not world.release.provider(slug(one.name))
    ]


def _address(entry: ProviderEntry) -> str:
    return _comparable(next((entry.block[key] for key in URL_KEYS if entry.block.get(key)), None))


def _comparable(address: Any) -> str:
    return address.strip().rstrip("/").lower() if isinstance(address, str) else ""


def to_plain_types(value: Any) -> Any:
    """Return a value of config.yaml as plain types, to be written again."""
    if isinstance(value, dict):
        return {str(key): to_plain_types(one) for key, one in value.items()}
    if isinstance(value, list):
        return [to_plain_types(one) for one in value]
    return str(value) if isinstance(value, str) else value
