"""The logging calls in the source of each release, and which of them wrote a line.

tools/logging_calls.py extracts them. A template is the text of a message with a named slot for each
value, such as `Failed to connect to {platform}`; braces of the text itself are doubled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.knowledge import parse_release
from hermes_doctor.hermes.knowledge.releases import load_knowledge

ANY = ""
"""The level or the logger of a call that the source does not name."""
_SLOT = re.compile(r"(?<!\{)(?:\{\{)*\{([^{}]+)\}")
_LETTER = re.compile(r"[^\W\d_]")
_PROFILE = re.compile(r"__home_[0-9a-f]{12}\Z")


class LoggingCall(NamedTuple):
    """A logging call in the source of a release."""

    file: str
    function: str
    """The qualified name of the function; empty at the top of the module."""
    logger: str
    """Empty if the source does not say which."""
    level: str
    """Empty if the source does not say which."""
    template: str
    error: str = ""
    """The expression of the error that fills a slot or is logged with its traceback."""
    caught: str = ""
    """The exception types that the surrounding handler catches; empty if all or unknown."""
    traceback: bool = False


class Slot(NamedTuple):
    """The part of a message that a value of the call fills."""

    name: str
    start: int
    end: int


class LineMatch(NamedTuple):
    """The call that wrote a message, and what its values are."""

    call: LoggingCall
    slots: tuple[Slot, ...]
    end: int
    """The end of the template's text; a traceback may follow."""

    def is_own(self, start: int, end: int) -> bool:
        """Tell whether this part of the message belongs to the release's own words."""
        return end <= self.end and all(
            end <= slot.start or start >= slot.end for slot in self.slots
        )


def pieces(template: str) -> tuple[list[str], list[str]]:
    """Return the texts around the slots of a template, and the names of its slots."""
    texts, names, at = [], [], 0
    for match in _SLOT.finditer(template):
        texts.append(template[at : match.start(1) - 1])
        names.append(match[1])
        at = match.end()
    texts.append(template[at:])
    return [text.replace("{{", "{").replace("}}", "}") for text in texts], names


def known_releases() -> list[str]:
    """Return the releases whose logging calls are known, oldest first."""
    return list(load_knowledge("logging_calls")["releases"])


def calls_of(release: str) -> list[LoggingCall]:
    """Return the logging calls of a known release."""
    document = load_knowledge("logging_calls")
    if release not in document["releases"]:
        return []
    place = document["releases"].index(release)
    holds = {spans: place in places(spans) for spans in _all_spans(document["calls"])}
    return [
        LoggingCall(
            file, function, _logger(file, logger), level, template, error, caught, bool(traced)
        )
        for file, calls in document["calls"].items()
        for function, level, template, spans, logger, error, caught, traced in calls
        if holds[spans]
    ]


def places(spans: str) -> set[int]:
    """Return the places in the list of releases that a text such as `0-3 5` names."""
    found: set[int] = set()
    for span in spans.split():
        first, _, last = span.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def module_of(file: str) -> str:
    """Return the name of a file's module."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _all_spans(calls: Mapping[str, Iterable[list[str]]]) -> set[str]:
    return {call[3] for listed in calls.values() for call in listed}


def _logger(file: str, named: str | None) -> str:
    return module_of(file) if named is None else named


class Catalogue:
    """The logging calls of one release, indexed for finding the one that wrote a line."""

    def __init__(self, calls: Iterable[LoggingCall], plugins: Mapping[str, str]) -> None:
        self._plugins = plugins
        """The module of each plugin, by the name under which a gateway loads it."""
        self._calls: dict[str, list[LoggingCall]] = {}
        for call in calls:
            self._calls.setdefault(call.logger, []).append(call)
        self._ready: dict[tuple[str, str], list[_Candidate]] = {}

    def match(self, logger: str, level: str, message: str) -> LineMatch | None:
        """Return the call that wrote a message and the values in it, or None.

        The message includes the lines that follow its first. If several calls fit, the one with
        the longest text of its own wins.
        """
        for candidate in self._candidates(self.own_name(logger), level):
            if candidate.longest in message and (found := _spans(candidate.texts, message)):
                spans, end = found
                named = zip(candidate.names, spans, strict=True)
                slots = tuple(Slot(name, start, stop) for name, (start, stop) in named)
                return LineMatch(candidate.call, slots, end)
        return None

    def own_name(self, logger: str) -> str:
        """Return the name of a logger in the source; plugins are loaded under another one."""
        prefix, _, rest = logger.partition(".")
        if prefix != "hermes_plugins":
            return logger
        plugin, dot, inner = rest.partition(".")
        module = self._plugins.get(_PROFILE.sub("", plugin))
        return logger if module is None else f"{module}{dot}{inner}"

    def _candidates(self, logger: str, level: str) -> list[_Candidate]:
        candidates = self._ready.get((logger, level))
        if candidates is None:
            named = self._calls.get(logger, []) + (self._calls.get(ANY, []) if logger else [])
            made = [_candidate(call) for call in named if call.level in (level, ANY)]
            candidates = [fit for fit in made if _LETTER.search("".join(fit.texts))]
            candidates.sort(key=lambda one: -sum(map(len, one.texts)))
            if len(self._ready) < 10_000:  # a log may contain any number of loggers
                self._ready[logger, level] = candidates
        return candidates


class _Candidate(NamedTuple):
    call: LoggingCall
    texts: list[str]
    names: list[str]
    longest: str


def _candidate(call: LoggingCall) -> _Candidate:
    texts, names = pieces(call.template)
    return _Candidate(call, texts, names, max(texts, key=len))


def _spans(texts: list[str], message: str) -> tuple[list[tuple[int, int]], int] | None:
    """Return where the slots between the texts are in a message, and where the last text ends.

    Each text is taken where it occurs first, so that the time is in proportion to the message.
    """
    first, *inner = texts
    if not message.startswith(first):
        return None
    at = len(first)
    if not inner:
        return ([], at) if message[at : at + 1] in ("", "\n") else None
    spans = []
    for text in inner[:-1]:
        found = message.find(text, at)
        if found < 0:
            return None
        spans.append((at, found))
        at = found + len(text)
    last = inner[-1]
    end = len(message) - len(last)
    if end < at or not message.endswith(last):
        end = message.find(f"{last}\n", at)  # a traceback follows
        if end < 0:
            return None
    return [*spans, (at, end)], end + len(last)


@cache
def catalogue(release: str) -> Catalogue:
    """Return the logging calls of a release; of the nearest older one if it is unknown."""
    document = load_knowledge("logging_calls")
    known = known_releases()
    wanted = parse_release(release)
    older = [one for one in known if parse_release(one) <= wanted]
    used = release if release in known else older[-1] if older else known[0]
    plugins = {}
    for folder, name in document["plugins"].items():
        module = folder.replace("/", ".")
        plugins[name.replace("-", "_")] = module
        plugins[folder.removeprefix("plugins/").replace("/", "__").replace("-", "_")] = module
    return Catalogue(calls_of(used), plugins)
