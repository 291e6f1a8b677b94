"""The routes to a model as checks need them: where each is set and how much depends on it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hermes_doctor.core import redaction
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Finding, Severity, Skip
from hermes_doctor.core.system.files import list_folder
from hermes_doctor.hermes.settings import builtin_providers, custom_providers, urls
from hermes_doctor.hermes.settings.config_yaml import NO_MAPPING
from hermes_doctor.hermes.settings.credential_pool import Credential, key_of
from hermes_doctor.hermes.settings.custom_providers import ProviderEntry
from hermes_doctor.hermes.settings.document import CONFIG, DEFAULT, Key, Path, Source, Text
from hermes_doctor.hermes.settings.inputs import section
from hermes_doctor.hermes.settings.resolved import Resolved, Route
from hermes_doctor.hermes.supervisors.find import CONTAINER_TRACES

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.probes.probes import Probes

_LONGEST = 80
_PLUGINS = "plugins/model-providers"
RELAY_KEY = "OPENAI_API_KEY"
"""The variable with the key that belongs to the address in OPENAI_BASE_URL."""


class ConfiguredRoute(NamedTuple):
    """A route in config.yaml: the main model or an entry of the fallback chain."""

    route: Route
    path: Path
    """Its path in config.yaml: `model`, or an entry of the chain."""
    own: ProviderEntry | None
    """The custom provider that it uses."""
    provider: Path
    """The path of its provider setting, even if it is not set."""
    severity: Severity
    """How bad it is if this route does not work."""

    @property
    def is_main(self) -> bool:
        """Whether this is the route that config.yaml asks for first."""
        return self.route.path == "model"

    @property
    def model(self) -> Path | None:
        """The path of its model setting; None if it is not set in config.yaml."""
        source = self.route.model.source
        if source.kind != CONFIG or not self.route.model.value:
            return None
        return (*self.path, "model") if not self.is_main else tuple(source.name.split("."))


def resolved_or_skip(probes: Probes) -> Resolved:
    """Return what the next message would use; Skip if config.yaml cannot be parsed."""
    resolved = probes.settings.resolved()
    fault = resolved.world.document.fault
    if fault and fault.what.endswith(NO_MAPPING):
        raise Skip("config.yaml contains no settings")
    if fault:
        raise Skip("config.yaml does not parse")
    trouble = resolved.main.trouble
    if trouble and trouble.kind == "unknown" and _plugins(probes):
        raise Skip("a plugin of this home may define the provider ({folder})", folder=_PLUGINS)
    return resolved


def _plugins(probes: Probes) -> list[str]:
    """Return the model providers that plugins add to Hermes."""
    try:
        return [name for name in list_folder(probes.home / _PLUGINS) if name[:1] not in "._"]
    except (CouldNotLook, FileNotFoundError):
        return []


def routes(resolved: Resolved) -> list[ConfiguredRoute]:
    """Return all routes, the main one first."""
    raw = resolved.world.raw
    at_top = not section(raw, "model").get("provider") and raw.get("provider")
    stands_in = resolved.used is not None and resolved.used is not resolved.main
    return [
        ConfiguredRoute(
            resolved.main,
            ("model",),
            custom_providers.provider_entry(resolved.world, resolved.main.requested.value or ""),
            ("provider",) if at_top else ("model", "provider"),
            Severity.WARNING if stands_in else Severity.ERROR,
        ),
        *(_link(resolved, route) for route in resolved.fallback),
    ]


def _link(resolved: Resolved, route: Route) -> ConfiguredRoute:
    place = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", route.path)
    path: Path = (route.path,)
    if place and place[2]:
        path = (place[1], int(place[2]))
    needed = resolved.used is not None and resolved.used.path == route.path
    entry = custom_providers.provider_entry(resolved.world, route.requested.value or "")
    severity = Severity.ERROR if needed else Severity.WARNING
    return ConfiguredRoute(route, path, entry, (*path, "provider"), severity)


def severity_if_broken(resolved: Resolved, entry: ProviderEntry) -> Severity:
    """Return how bad it is if a custom provider does not work; INFO if nothing uses it."""
    able = [way.severity for way in routes(resolved) if way.own and way.own.path == entry.path]
    for task in resolved.tasks:
        provider_entry = custom_providers.provider_entry(resolved.world, task.provider.value or "")
        if provider_entry and provider_entry.path == entry.path:
            able.append(Severity.WARNING)
    return min(able, key=lambda one: one.rank, default=Severity.INFO)


def ignored_relay(resolved: Resolved) -> Text | None:
    """Return the address in OPENAI_BASE_URL if messages go to OpenRouter instead.

    Only if nothing shows that the operator wants OpenRouter: no provider is set, or OpenRouter gets
    the key that belongs to this address.
    """
    address, main = resolved.world.getenv("OPENAI_BASE_URL"), resolved.main
    if not address or main.trouble or main.provider is None or main.provider.value != "openrouter":
        return None
    by_key = main.key is not None and main.key.name == RELAY_KEY
    wanted = not by_key and main.requested.value != "auto"
    return None if wanted or urls.belongs(address, "openrouter.ai") else address


def each_once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings without those that say the same of the same place as an earlier one.

    Two routes may use one key, which then has one mistake. That of the main model comes first.
    """
    seen = set()
    for finding in findings:
        told = (finding.code, str(finding.title), finding.evidence)
        if told not in seen:
            seen.add(told)
            yield finding


def redact_for_display(text: Any) -> str:
    """Shorten and redact a name or an address from a file for display."""
    bare = str(text or "")
    shown = (
        redaction.redact_address(bare)
        if "://" in bare or "@" in bare
        else redaction.redact_words(bare)
    )
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def redact_variable_name(resolved: Resolved, name: str) -> str:
    """Return the name of a variable for display; only its length if it may be a key."""
    known = name in resolved.world.variables and not redaction.looks_like_secret(name)
    return name if known else redaction.redact_unless_variable(name)


def credential_pool(resolved: Resolved, route: Route) -> tuple[str, list[Credential]]:
    """Return the provider's name in auth.json and the credentials stored there for a route."""
    world, asked = resolved.world, (route.requested.value or "").lower()
    entry = custom_providers.provider_entry(world, asked)
    url = route.base_url.value if route.base_url else None
    if entry is not None or (route.provider and route.provider.value == "custom"):
        pool = custom_providers.pool_for(world, url, entry.name if entry else None) if url else None
    else:
        name = route.provider.value if route.provider else world.release.provider(asked)
        pool = builtin_providers.pool(world, name) if name else None
    if pool is None:
        return "", []
    return pool.provider, [credential for credential in pool.entries if credential.raw]


def variable(resolved: Resolved, name: str) -> Key:
    """Return a variable as a key: its state and its place, never its value."""
    world = resolved.world
    unset = Text("", Source(DEFAULT, name))
    return key_of(world.release, world.dotenv_first(name) or world.variables.get(name, unset))


def likely_variable(resolved: Resolved, entry: ProviderEntry | None) -> str | None:
    """Return a variable that is named after an entry without a key and that contains one."""
    if entry is None or any(entry.block.get(key) for key in ("key_env", "api_key", "api_key_env")):
        return None
    word = "".join(char if char.isalnum() else "_" for char in entry.name).upper()
    names = (f"{word}_API_KEY", f"{word}_KEY", f"{word}_TOKEN")
    return next((name for name in names if variable(resolved, name).state == "usable"), None)


def is_unset(probes: Probes, *names: str) -> bool | None:
    """Tell whether none of these variables is set for the gateway; None if unsure.

    Asked only if something is wrong, because supervisors answer slowly. If a password vault or an
    administrator may set more variables, they do not count as unset. Without a gateway, they are
    unset if nothing exists that could set them: no service, no container, no shell that runs us.
    """
    resolved = probes.settings.resolved()
    if any(resolved.world.variables.get(name) for name in names):
        return False
    if any(doubt.endswith(("may set more variables", "counts first")) for doubt in resolved.doubts):
        return False
    try:
        if probes.gateway.running():
            return (
                True
                if probes.machine.vitals(probes.gateway.running()[0].pid).environment is not None
                else None
            )
        owner = probes.gateway.supervision().owner
        if owner is None:
            return True if _nothing_else_sets(probes, names) else None
    except CouldNotLook:
        return None
    if not owner.environment:
        return None
    return not any(owner.environment.get(name) for name in names)


def _nothing_else_sets(probes: Probes, names: Iterable[str]) -> bool:
    """Whether no process, service or container was seen that could set variables of this home."""
    supervision = probes.gateway.supervision()
    runtime = probes.gateway.runtime()
    return not (
        supervision.units
        or supervision.unsure
        or runtime.unseen
        or probes.gateway.served_by()
        or any(os.path.lexists(probes.home / name) for name in CONTAINER_TRACES)
        or any(os.environ.get(name) for name in names)  # a gateway started from here gets it
    )
