"""Find lines of .env that Hermes does not read as the writer meant them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.hermes.knowledge.releases import Release, load_knowledge
from hermes_doctor.hermes.settings import custom_providers, env_file, inputs
from hermes_doctor.hermes.settings.document import Source
from hermes_doctor.hermes.settings.env_file import EnvFile
from hermes_doctor.hermes.settings.inputs import SettingInputs
from hermes_doctor.hermes.settings.resolved import Resolved

COLON, SPACE, QUOTE, JOINED = "colon", "space", "quote", "joined"
LOWER, VALUELESS = "lower", "valueless"
_ROUTER = ("OPENROUTER_API_KEY", "OPENAI_API_KEY")
"""Keys that Hermes uses for OpenRouter and for an unnamed custom provider."""
_BREAK = pattern(r"\r\n|\r|\n")
_COLON = pattern(r"(\s*(?:export\s+)?)([A-Z][A-Z0-9_]{2,})\s*:\s*(\S.*)")
_SPACE = pattern(r"(\s*(?:export\s+)?)([A-Z][A-Z0-9_]{2,})[ \t]+(\S{8,})[ \t]*")
"""A shorter word after a name is rather a part of a remark."""
_SET = pattern(r"(\s*(?:export\s+)?)([A-Za-z_][A-Za-z0-9_]*)(\s*=\s*)(.*)")
_NEXT = pattern(r"^\s*(?:export\s+)?[A-Za-z_][A-Za-z0-9_]*\s*=", 8)
_WITHIN = pattern(r"\s+(?:export\s+)?([A-Z][A-Z0-9_]{3,})=")


class OddLine(NamedTuple):
    """A line that is probably a mistake. `old` and `new` contain secrets."""

    number: int
    kind: str
    name: str
    """The variable that was meant."""
    other: str
    """The second variable on the line, if there is one."""
    old: str
    new: str | None
    """The corrected line; None if that is unclear."""
    known: bool
    """Whether Hermes knows the variable."""
    mended: bool = False
    """Whether Hermes reads the line as meant anyway."""


def odd_lines(file: EnvFile, world: SettingInputs) -> Iterator[OddLine]:
    """Yield the lines that are probably mistakes, in order; none if the encoding is wrong."""
    text = file.text
    if file.mark is not None or text is None or "\0" in text:
        return
    known = known_variables(world.release)
    lines = _BREAK.split(text)
    inside = 0
    for number, line in enumerate(lines, 1):
        if number <= inside or not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _SET.fullmatch(line)
        if match is None:
            yield from _without_sign(number, line, known, world)
            continue
        quote = match[4][:1]
        if quote in ("'", '"') and not _closes(match[4][1:], quote):
            end = _end(lines, number, quote)
            if end:
                inside = end
                continue
            whole = f"{line.rstrip()}{quote}"
            yield OddLine(number, QUOTE, match[2], "", line, whole, match[2] in known)
        yield from _joined(number, line, match[2], match[4], known, world.release)
        yield from _lower(number, line, match, known, world)


def _without_sign(
    number: int, line: str, known: frozenset[str], world: SettingInputs
) -> Iterator[OddLine]:
    match = _COLON.fullmatch(line)
    if match:
        new = f"{match[1]}{match[2]}={match[3]}"
        yield OddLine(number, COLON, match[2], "", line, new, match[2] in known)
        return
    match = _SPACE.fullmatch(line)
    if match and match[2] in known and match[2] not in world.variables:
        new = f"{match[1]}{match[2]}={match[3]}"
        yield OddLine(number, SPACE, match[2], "", line, new, True)
    elif line.strip() in known and line.strip() not in world.variables:
        yield OddLine(number, VALUELESS, line.strip(), "", line, None, True)


def _closes(rest: str, quote: str) -> bool:
    """Tell whether a quote is closed on its own line."""
    return quote in rest.replace("\\\\", "").replace(f"\\{quote}", "")


def _end(lines: list[str], number: int, quote: str) -> int:
    """Return the line on which a multi-line value ends; 0 if it never does or swallows others."""
    for later in range(number, len(lines)):
        if _NEXT.match(lines[later]):
            return 0
        if _closes(lines[later], quote):
            return later + 1
    return 0


def _joined(
    number: int, line: str, name: str, value: str, known: frozenset[str], release: Release
) -> Iterator[OddLine]:
    parts = env_file.split_line(line.strip(), release) if "=" in value else []
    if len(parts) > 1:
        other = parts[1].partition("=")[0]
        yield OddLine(number, JOINED, name, other, line, "\n".join(parts), True, True)
        return
    second = _WITHIN.search(value) if value[:1] not in ("'", '"') else None
    if second and second[1] in known and "#" not in value[: second.start()]:
        first = line[: len(line) - len(value) + second.start()]
        new = f"{first}\n{value[second.start() :].strip()}"
        yield OddLine(number, JOINED, name, second[1], line, new, True)


def _lower(
    number: int, line: str, found: Any, known: frozenset[str], world: SettingInputs
) -> Iterator[OddLine]:
    name = found[2]
    meant = name.upper()
    if name == meant or meant not in known or name.lower().endswith("_proxy"):
        return
    if meant in world.variables or not found[4].strip():
        return
    new = f"{found[1]}{meant}{found[3]}{found[4]}"
    yield OddLine(number, LOWER, meant, "", line, new, True)


@cache
def _of_platforms() -> frozenset[str]:
    found: set[str] = set()
    for one in load_knowledge("platforms")["platforms"].values():
        found |= {*one["variables"], *one.get("listens", {}).get("port_variables", ())}
    for forms in load_knowledge("access").values():
        for form in forms:
            found |= {*form["variables"].values(), form["users"], form["everyone"]} - {None}
    return frozenset(found)


def known_variables(release: Release) -> frozenset[str]:
    """Return every variable that this release or one of its platforms knows."""
    keys = {key for one in release.registry.values() for key in one["keys"]}
    return release.names | keys | _of_platforms()


def is_needed(resolved: Resolved, name: str) -> bool:
    """Tell whether the bot gives no answers, or a platform none, while this variable is lost."""
    for platform, one in load_knowledge("platforms")["platforms"].items():
        if name in one["variables"]:
            return True
        if any(form["users"] == name for form in load_knowledge("access").get(platform, ())):
            return any(own.name == platform for own in resolved.platforms)
    world, asked = resolved.world, (resolved.main.requested.value or "").lower()
    entry = custom_providers.provider_entry(world, asked)
    if entry is not None:
        values = {str(entry.block.get(key)) for key in ("key_env", "api_key_env", "api_key")}
        return bool(values & {name, f"${{{name}}}"})
    key = resolved.used.key if resolved.used else None
    if key is not None and key.state == "usable":
        return False
    registry, provider = world.release.registry, world.release.provider(asked)
    if provider is not None and provider in registry:
        return name in registry[provider]["keys"]
    if name in _ROUTER:
        return True
    return provider is None and any(name in one["keys"] for one in registry.values())


class DifferingKey(NamedTuple):
    """A key that Hermes' two parsers read differently. `value` is a secret."""

    name: str
    line: int
    cause: str
    """`comment`, `reference` or `quotes`."""
    value: str
    """The value that was meant."""


def differing_keys(world: SettingInputs) -> Iterator[DifferingKey]:
    """Yield the keys of built-in providers that differ, because Hermes' own parser goes first."""
    keys = {key for one in world.release.registry.values() for key in one["keys"]}
    for name in sorted(keys):
        own, dotenv = world.readings.own.values.get(name), world.readings.dotenv.values.get(name)
        if not own or dotenv is None or own.strip() == dotenv.strip():
            continue
        cause = "comment" if " #" in own or "\t#" in own else "quotes"
        cause = "reference" if "${" in own else cause
        yield DifferingKey(name, own.source.line or 0, cause, str(dotenv))


class RepeatedVariable(NamedTuple):
    """A variable that is set more than once."""

    name: str
    lines: tuple[int, ...]
    """The lines that are overridden."""
    counts: int
    same: bool
    """Whether all values are the same."""
    erased: bool
    """Whether the value that is used is empty and another is not."""


def repeated_variables(file: EnvFile, world: SettingInputs) -> Iterator[RepeatedVariable]:
    """Yield all repeated variables."""
    if not world.readings.dotenv.again:
        return
    text = file.text
    lines = _BREAK.split(file.data.decode("latin-1") if text is None else text)  # as Hermes does
    for name, numbers in world.readings.dotenv.again.items():
        value = world.readings.dotenv.values[name]
        last = value.source.line or 0
        said = {
            inputs.parse_variables(lines[number - 1]).get(name)
            for number in (*numbers, last)
            if number <= len(lines)
        }
        same = len(said) == 1
        yield RepeatedVariable(name, numbers, last, same, erased=not same and not value.strip())


class OddPort(NamedTuple):
    """An invalid port number of a platform that would start."""

    name: str
    platform: str
    source: Source
    fatal: bool
    """Whether this release then ignores all settings."""


def odd_ports(resolved: Resolved) -> Iterator[OddPort]:
    """Yield all invalid ports, wherever they are set."""
    fatal = resolved.world.release.key_topic("numbers")
    known = load_knowledge("platforms")["platforms"]
    for own in resolved.platforms:
        for name in known[own.name].get("listens", {}).get("port_variables", ()):
            value = resolved.world.getenv(name)
            if value and not (value.isdecimal() and 0 < int(value) < 65536):
                yield OddPort(name, own.label, value.source, name in fatal)


def lines_of(file: EnvFile, world: SettingInputs, name: str) -> list[tuple[int, str]] | None:
    """Return the lines that set a variable; None if one is multi-line, including secrets."""
    values, again = world.readings.dotenv.values, world.readings.dotenv.again
    lines = _BREAK.split(file.text or "")
    last = values[name].source.line if name in values else None
    numbers = sorted({*again.get(name, ()), *([last] if last else ())})
    found = [(number, lines[number - 1]) for number in numbers if number <= len(lines)]
    for _, line in found:
        match = _SET.fullmatch(line)
        quote = match[4][:1] if match else ""
        if match is None or (quote in ("'", '"') and not _closes(match[4][1:], quote)):
            return None
    return found
