"""The credential pool: a provider's entries in auth.json, and which one a request uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.core.lazy import EMPTY
from hermes_doctor.hermes.settings.inputs import SettingInputs
from hermes_doctor.hermes.settings.sourced_text import POOL, Source, Text, text

NAME = "auth.json"
_MANUAL = "manual"
_OAUTH_ORDER = {
    "env:ANTHROPIC_TOKEN": 0,
    "env:CLAUDE_CODE_OAUTH_TOKEN": 1,
    "hermes_pkce": 2,
    "claude_code": 3,
    "env:ANTHROPIC_API_KEY": 4,
}
_HOUR, _MINUTE = 3600, 60


class Credential:
    """One stored credential with its secret token."""

    def __init__(
        self,
        label: str,
        origin: str,
        token: Text,
        base_url: Text,
        *,
        priority: int = 0,
        is_key: bool = True,
        status: str | None = None,
        until: float | None = None,
        uses: int = 0,
        raw: Mapping[str, Any] = EMPTY,
    ) -> None:
        self.label = label
        self.origin = origin
        """`manual…`, `env:NAME`, `config:NAME`, `model_config`, or a login."""
        self.token = token
        self.base_url = base_url
        self.priority = priority
        self.is_key = is_key
        """A plain key, not a login."""
        self.status = status
        self.until = until
        """When it may be used again."""
        self.uses = uses
        self.raw = raw

    @property
    def is_manual(self) -> bool:
        """Whether the user added it by hand."""
        word = self.origin.strip().lower()
        return word == _MANUAL or word.startswith(f"{_MANUAL}:")

    @property
    def is_owned(self) -> bool:
        """Whether the token itself is in auth.json, not in a variable or a setting."""
        borrowed = self.origin.startswith(("env:", "config:")) or self.origin == "model_config"
        return not borrowed


def stored_credentials(inputs: SettingInputs, provider: str) -> list[Credential]:
    """Return a provider's entries in auth.json; a profile without any uses the root home's."""
    for store in (inputs.store, inputs.root_store):
        pool = store.get("credential_pool")
        entries = pool.get(provider) if isinstance(pool, dict) else None
        if isinstance(entries, list) and entries:
            credentials = [_entry(one) for one in entries if isinstance(one, dict)]
            if inputs.release.since(0, 15):  # writes no borrowed tokens and removes older ones
                for entry in credentials:
                    entry.token = entry.token if entry.is_owned else entry.token.like("")
            return credentials
    return []


def _entry(raw: Mapping[str, Any]) -> Credential:
    label = str(raw.get("label") or raw.get("source") or "")
    source = Source(POOL, label, NAME)
    status = raw.get("last_status")
    return Credential(
        label=label,
        origin=str(raw.get("source") or _MANUAL),
        token=text(raw.get("access_token"), source),
        base_url=text(raw.get("base_url"), source),
        priority=raw["priority"] if isinstance(raw.get("priority"), int) else 0,
        is_key=str(raw.get("auth_type") or "api_key") == "api_key",
        status=status if isinstance(status, str) else None,
        until=_until(raw),
        uses=raw["request_count"] if isinstance(raw.get("request_count"), int) else 0,
        raw=raw,
    )


def _until(raw: Mapping[str, Any]) -> float | None:
    """Return when an exhausted entry may be used again."""
    if raw.get("last_status") != "exhausted":
        return None
    reset = parse_time(raw.get("last_error_reset_at"))
    if reset is not None:
        return reset
    at = parse_time(raw.get("last_status_at"))
    wait = 5 * _MINUTE if raw.get("last_error_code") == 401 else _HOUR
    return at + wait if at else None


def parse_time(value: Any) -> float | None:
    """Parse a time in seconds, in milliseconds or as ISO text."""
    if isinstance(value, bool) or value in (None, ""):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return _iso(value)
    if not isinstance(value, int | float) or value <= 0:
        return None
    return value / 1000 if value > 1e12 else float(value)


def _iso(value: str) -> float | None:
    from datetime import UTC, datetime

    try:
        at = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


class Pool:
    """The credentials of one provider, including those from variables and config.yaml."""

    def __init__(self, inputs: SettingInputs, provider: str, seeds: list[Credential]) -> None:
        self.inputs = inputs
        self.provider = provider
        self.entries = stored_credentials(inputs, provider)
        suppressed = inputs.store.get("suppressed_sources")
        hidden = suppressed.get(provider) if isinstance(suppressed, dict) else None
        for seed in seeds:
            if not (isinstance(hidden, list) and seed.origin in hidden):
                self._upsert(seed)
        self._prune({seed.origin for seed in seeds})
        if provider == "anthropic":
            self._rank()
        self.entries.sort(key=lambda entry: entry.priority)

    def _upsert(self, seed: Credential) -> None:
        same = [entry for entry in self.entries if entry.origin == seed.origin]
        if not same:
            seed.priority = max((e.priority for e in self.entries), default=-1) + 1
            self.entries.append(seed)
            return
        same[0].token = seed.token
        same[0].base_url = seed.base_url
        if self.inputs.release.since(0, 19):
            self.entries = [e for e in self.entries if e.origin != seed.origin or e is same[0]]

    def _prune(self, live: set[str]) -> None:
        """Remove entries whose variable, file or setting no longer exists."""
        custom = self.provider.startswith("custom:")

        def goes(entry: Credential) -> bool:
            if entry.is_manual or entry.origin in live:
                return False
            if entry.origin.startswith("env:"):
                return custom or not self.inputs.release.since(0, 18)
            if not self.inputs.release.since(0, 15):
                return entry.origin in ("claude_code", "hermes_pkce")
            return entry.is_key

        self.entries = [entry for entry in self.entries if not goes(entry)]

    def _rank(self) -> None:
        manual = sorted((e for e in self.entries if e.is_manual), key=lambda e: e.priority)
        seeded = sorted(
            (e for e in self.entries if not e.is_manual),
            key=lambda e: (_OAUTH_ORDER.get(e.origin, len(_OAUTH_ORDER)), e.priority, e.label),
        )
        for number, entry in enumerate((*manual, *seeded)):
            entry.priority = number

    def available(self) -> Iterator[Credential]:
        """Yield the entries that may be used now, in order of preference."""
        release = self.inputs.release
        for entry in self.entries:
            if entry.is_key and not entry.token and release.since(0, 19):
                continue
            if entry.status == "dead" and release.since(0, 16):
                continue
            if entry.until is not None and self.inputs.now < entry.until:
                continue
            yield entry

    def select(self) -> Credential | None:
        """Return the entry for the next request; with `random`, one of those possible."""
        able = list(self.available())
        strategies = self.inputs.config.get("credential_pool_strategies")
        chosen = strategies.get(self.provider) if isinstance(strategies, dict) else None
        if str(chosen or "").strip().lower() == "least_used" and len(able) > 1:
            return min(able, key=lambda entry: entry.uses)
        return able[0] if able else None


def seed_entry(origin: str, token: Text, base_url: Text) -> Credential:
    """Return a credential that comes from a variable or from config.yaml."""
    label = origin.partition(":")[2] or origin
    return Credential(label, origin, token, base_url)
