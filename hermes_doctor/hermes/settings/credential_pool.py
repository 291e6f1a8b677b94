"""Keys: their place and state without their value, and the pool of them in auth.json."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.lazy import EMPTY, NamedTuple, pattern
from hermes_doctor.hermes.knowledge.releases import Release
from hermes_doctor.hermes.settings.document import DEFAULT, POOL, Key, Source, Text, text
from hermes_doctor.hermes.settings.inputs import SettingInputs

if TYPE_CHECKING:
    from hermes_doctor.hermes.settings.inputs import SettingInputs


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
            from datetime import UTC, datetime

            try:
                at = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
            except ValueError:
                return None
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    if not isinstance(value, int | float) or value <= 0:
        return None
    return value / 1000 if value > 1e12 else float(value)


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


_UNRESOLVED = pattern(r"\$\{[^}]*\}|^\$[A-Za-z_]")
_MASKED = pattern(r"\*{3}|•{3}|…|\.\.\.|‹|\[redacted|\(\d+-character \w+\)", re.IGNORECASE)
_EXAMPLE = pattern(
    r"your[-_ ].*|<.*>|\[.*\]|(?:sk|pk|gsk|xai)[-_]your\b.*|.*[-_ ]your[-_ ].*key|paste[-_ ].*|"
    r"x{3,}|.*[-_]x{4,}|todo|fixme|replace.*|change[-_ ]?me|insert.*|.*[-_ ]here|"
    r"sk-(?:or-)?(?:v1-)?(?:x+|\.+)|abc123|test|secret|api[-_]?key|token",
    re.IGNORECASE,
)
_BEGINS = ("your", "<", "[", "x", "replace", "insert", "change", "paste", "sk-your", "sk_your")
_ENDS = ("x", "_here", ".", "-here", " here", "key")

_VENDORS = {
    "sk-or-": "openrouter.ai",
    "sk-proj-": "openai.com",
    "sk-svcacct-": "openai.com",
    "sk-ant-": "anthropic.com",
    "gsk_": "groq.com",
    "xai-": "x.ai",
}
_COMMENT = pattern(r"(?<=\S)\s+#.*$")
_BEARER = pattern(r"bearer\s+", re.IGNORECASE)
_LINE = pattern(r"(?:export\s+)?[A-Z][A-Z0-9_]+_(?:KEY|TOKEN)\s*=\s*")
_QUOTES = "\"'`“”‘’«»"
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))


def key_of(release: Release | None, value: Text, overridden: Iterable[Text] = ()) -> Key:
    """Describe a key, with the keys that it overrides."""
    source = value.source
    return Key(
        name=(source.via or source).name,
        source=source,
        state=state(release, value),
        fingerprint=fingerprint(value),
        shadows=tuple(key_of(release, one) for one in _different(value, overridden)),
        faults=tuple(faults(value)) if value.source.kind != DEFAULT else (),
        vendor=next((_VENDORS[begin] for begin in _VENDORS if value.startswith(begin)), None),
        length=len(value.strip()),
    )


def _different(value: Text, others: Iterable[Text]) -> list[Text]:
    found = {other.source: other for other in others if other and other.source != value.source}
    return list(found.values())


def state(release: Release | None, value: Text) -> str:
    """Return the state of a key, such as `usable` or `placeholder`."""
    bare = value.strip()
    if value.source.kind == DEFAULT and bare:
        return "missing" if value.source.via else "not needed"
    if not bare:
        return "missing"
    if "$" in bare and _UNRESOLVED.search(bare):
        return "unresolved"
    if _MASKED.search(bare):
        return "masked"
    listed = release is not None and len(bare) >= 4 and not release.is_usable(bare)
    return "placeholder" if listed or _is_example(bare) else "usable"


def _is_example(bare: str) -> bool:
    """Tell whether it is an example key; unlikely ones skip the slow pattern."""
    word = bare.lower()
    likely = len(word) <= 12 or word.startswith(_BEGINS) or word.endswith(_ENDS)
    return likely and _EXAMPLE.fullmatch(bare) is not None


def faults(value: str) -> Iterator[str]:
    """Yield what a key contains that is not part of it."""
    bare = value.strip()
    if not bare:
        return
    if not bare.isascii():
        yield "letters"
    if "#" in bare and _COMMENT.search(bare):
        yield "comment"
    if bare[0] in _QUOTES or bare[-1] in _QUOTES:
        yield "quotes"
    if " " in bare and _BEARER.match(bare.strip(_QUOTES)):
        yield "bearer"
    if "=" in bare and _LINE.match(bare):
        yield "name"


def strip_faults(value: str) -> str | None:
    """Return the key without these parts; None if that is not certain."""
    bare = "".join(char for char in value.strip() if char.isprintable() or char == "\t")
    bare = _COMMENT.sub("", _LINE.sub("", bare.translate(_INVISIBLE).strip()))
    bare = _BEARER.sub("", bare.strip().strip(_QUOTES).strip()).strip()
    plain = len(bare) >= 8 and bare.isascii() and not any(char.isspace() for char in bare)
    return bare if plain and not any(faults(bare)) else None


def fingerprint(value: str) -> str | None:
    """Return a value that is equal for equal keys in one run, and useless outside of it."""
    return f"{hash(str(value)) & (2**64 - 1):016x}" if value.strip() else None


_SECRET = pattern(
    r"(?i)(^|_)(api_?key|token|secret|password|passwd|private_key|auth_key|signing_key|"
    r"app_secret|client_secret|access_key)$"
)
_NOT = frozenset(("max_tokens", "key_env", "api_key_env", "token_env", "public_key"))
_DEEPEST, _MOST, _SHORTEST = 8, 2000, 8

Path = tuple[str | int, ...]


class PlainSecret(NamedTuple):
    """The place of a plain secret, without its value."""

    path: str
    source: Source


def find_plain_secrets(inputs: SettingInputs) -> Iterator[PlainSecret]:
    """Yield every value that is a usable key or token according to its name."""
    for path, value in suspected_secrets(inputs.raw):
        source = inputs.document.source(*path)
        if state(inputs.release, Text(value, source)) == "usable":
            yield PlainSecret(source.name, source)


def suspected_secrets(values: Mapping[Any, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the texts whose names are those of secrets, including secrets."""
    for path, value in _all_texts(values):
        name = str(path[-1])
        if len(value) >= _SHORTEST and name not in _NOT and _SECRET.search(name):
            yield path, value


def _all_texts(values: Mapping[Any, Any]) -> Iterator[tuple[Path, str]]:
    """Yield every text of a configuration with its path, within generous limits."""
    left: list[tuple[Path, Any]] = [((), values)]
    for path, value in left:  # the list grows while it is iterated
        if isinstance(value, str):
            yield path, value
        elif len(path) >= _DEEPEST or len(left) > _MOST:
            continue
        elif isinstance(value, dict):
            left += [((*path, key), one) for key, one in value.items() if isinstance(key, str)]
        elif isinstance(value, list):
            left += [((*path, number), one) for number, one in enumerate(value)]
