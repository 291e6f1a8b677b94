"""Match a log entry against the lines of all log rules."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.diagnosis.plugins.log_rules.rule import LEVELS, LinePattern, Rule
from hermes_doctor.hermes.logs.entry import LogEntry

MOST = 4000
"""Characters of a message that are searched, so that a pattern cannot run forever on a long one."""
MOST_KNOWN = 500
"""Texts whose matches are remembered, for each logger and set of rules with open incidents."""
OLD = 6 * 3600.0
"""Seconds after which an entry is tried only with rules of a longer window; most have this one."""
MOST_SEARCHES = 8
"""For each logger, how many sets of rules with open incidents have remembered matches."""
_RANKS = {level: rank for rank, level in enumerate(LEVELS)}
_FRAME = pattern(r' {1,8}File "([^"]{1,400})", line (\d+)')
_OWN = pattern(
    r".*[/\\]((?:gateway|agent|hermes_cli|cron|plugins|providers|tools)[/\\](?!.*site-packages).+"
    r"|(?:run_agent|model_tools|utils|cli|hermes_\w+)\.py)"
)
"""Files of Hermes itself, named from its top folder."""
MATCH, FOLLOW, CLEAR = "match", "follow", "clear"
GIVEN_UP, ANSWERED = "given up", "answered"


class Match(NamedTuple):
    """A log entry that matched a line of a rule."""

    rule: Rule
    role: str
    """match: the rule's own line; follow: its `followed_by`; clear: its `cleared_by`; given up and
    answered: its `given_up_by` and `answered_by`."""
    entry: LogEntry
    fields: Mapping[str, str]
    quote: str
    """The part of the line that may be shown; nothing else of it may be."""


class _Seen(NamedTuple):
    rule: Rule
    role: str
    fields: Mapping[str, str]
    quote: str


class _Candidate(NamedTuple):
    rule: Rule
    role: str
    line: LinePattern


class _Search:
    """The lines to try while certain incidents are open, and what they matched."""

    def __init__(self, tried: list[_Candidate]) -> None:
        self.tried = tried
        self.literals: dict[str, list[int]] = {}
        """The lines by the literals of which one must be there; rules have many in common."""
        for number, candidate in enumerate(tried):
            for literal in candidate.line.literals or ("",):
                self.literals.setdefault(literal, []).append(number)
        self.known: dict[tuple[str, tuple[str, ...]], list[_Seen]] = {}
        """Matches of texts seen before, because logs repeat themselves."""

    def matches(self, text: str, more: tuple[str, ...]) -> list[_Seen]:
        """Return which lines an entry matches."""
        key = text, more
        seen = self.known.get(key)
        if seen is None:
            # A pattern is tried if one of its literals occurs anywhere in the entry.
            whole = "\n".join((text, *more)) if more else text
            likely = [same for literal, same in self.literals.items() if literal in whole]
            tried = [self.tried[number] for number in sorted({*chain(*likely)})] if likely else []
            seen = _matches(text, more, tried) if tried else []
            if len(self.known) > MOST_KNOWN:
                self.known.clear()
            self.known[key] = seen
        return seen


class _Candidates:
    """The lines that entries of one kind, level and logger could match."""

    def __init__(self, found: list[_Candidate], lasting: _Candidates | None = None) -> None:
        """`lasting`: those which old entries could match, if they are fewer."""
        self.lasting = lasting
        self.first = [candidate for candidate in found if candidate.role == MATCH]
        """The rules' own lines."""
        self.after = [one for one in found if one.role != MATCH]
        """Lines that follow them or clear them."""
        self._ids = {one.rule.id for one in self.after}
        self._searches: dict[frozenset[str], _Search] = {}
        """By the rules with open incidents, because the same ones open and close all day."""
        self._search = self._made(frozenset())
        self._turn = 0

    def search(self, open_incidents: Mapping[str, int], turn: int) -> _Search:
        """Return the lines to try; followers and clearing lines only for open incidents."""
        if turn != self._turn and self.after:
            ids = frozenset(self._ids & open_incidents.keys())
            self._search = self._searches.get(ids) or self._made(ids)
        self._turn = turn
        return self._search

    def _made(self, ids: frozenset[str]) -> _Search:
        if len(self._searches) >= MOST_SEARCHES:
            self._searches.clear()
        tried = self.first + [candidate for candidate in self.after if candidate.rule.id in ids]
        self._searches[ids] = search = _Search(tried)
        return search


_candidates: dict[int, tuple[_Candidate, ...]] = {}
"""By rule; each candidate keeps its rule, so that no other one gets its number."""


def candidates_of(rule: Rule) -> tuple[_Candidate, ...]:
    """Return the lines of a rule; a watch makes them once, for all of its rounds."""
    candidates = _candidates.get(id(rule))
    if candidates is None:
        if len(_candidates) > _MOST_RULES:
            _candidates.clear()
        lines = [(MATCH, rule.line), *([(FOLLOW, rule.followed_by)] if rule.followed_by else ())]
        lines += [(GIVEN_UP, line) for line in rule.given_up_by]
        # Before the next: an answer by another clears nothing.
        lines += [(ANSWERED, line) for line in rule.answered_by]
        lines += [(CLEAR, line) for line in rule.cleared_by]
        candidates = tuple(_Candidate(rule, role, line) for role, line in lines)
        _candidates[id(rule)] = candidates
    return candidates


_MOST_RULES = 5000


class Matcher:
    """All rules, indexed for matching; a pattern is compiled when one of its literals occurs."""

    def __init__(
        self, rules: Iterable[Rule], now: float = 0.0, compared: Collection[str] = ()
    ) -> None:
        """`compared`: the ids of rules for which lines before their window matter, too."""
        self._old = now - OLD
        self._compared = compared
        self.lines: dict[tuple[str, str], list[_Candidate]] = {}
        """By the kind of source and the logger's name; an empty name means any logger."""
        for rule in rules:
            for candidate in candidates_of(rule):
                for name in candidate.line.loggers or ("",):
                    for kind in rule.kinds:
                        self.lines.setdefault((kind, name), []).append(candidate)
        self.known: dict[tuple[str, str, str], _Candidates] = {}
        self.begun: dict[str, int] = {}
        """The number of open incidents for each rule id."""
        self.turn = 0
        """Counts how often a rule got its first open incident or lost its last one."""

    def incident_opened(self, rule: Rule) -> None:
        """Note a new open incident: the rule's followers and clearing lines matter from now on."""
        self.turn += rule.id not in self.begun
        self.begun[rule.id] = self.begun.get(rule.id, 0) + 1

    def incident_closed(self, rule: Rule) -> None:
        """Note that the rule has one open incident less."""
        self.begun[rule.id] -= 1
        if not self.begun[rule.id]:
            del self.begun[rule.id]
            self.turn += 1

    def candidates(self, kind: str, level: str, logger: str) -> _Candidates:
        """Return the lines that entries of this kind, level and logger could match."""
        key = (kind, level, logger)
        candidates = self.known.get(key)
        if candidates is None:
            lines = self._candidates(kind, level, logger)
            candidates = _Candidates(lines, self._lasting(level, lines))
            if len(self.known) < 10_000:  # a log may contain any number of logger names
                self.known[key] = candidates
        return candidates

    def _candidates(self, kind: str, level: str, logger: str) -> list[_Candidate]:
        rank = _RANKS.get(level, len(_RANKS))
        failure = list(self.lines.get((kind, ""), ()))
        name = logger
        while name:
            failure += self.lines.get((kind, name), ())
            name = name.rpartition(".")[0]
        return [candidate for candidate in failure if _RANKS[candidate.line.level] <= rank]

    def _lasting(self, level: str, found: list[_Candidate]) -> _Candidates | None:
        """Return the lines of rules whose window is so long that old entries count.

        Most lines of a log are older than the windows of most rules. That a warning is described by
        a rule matters even then.
        """
        if level not in ("DEBUG", "INFO") or any(one.rule.otherwise for one in found):
            return None
        kept = [one for one in found if one.rule.window > OLD or one.rule.id in self._compared]
        return _Candidates(kept) if len(kept) < len(found) else None

    def wanted(self, level: str, logger: str) -> bool:
        """Tell whether log file entries of this level and logger could match a rule."""
        candidates = self.candidates("log", level, logger)
        return bool(candidates.first or candidates.after)

    def may_begin(self, level: str, logger: str) -> bool:
        """Tell whether log file entries of this level and logger could do more than clear."""
        candidates = self.candidates("log", level, logger)
        after = candidates.after
        return bool(candidates.first) or any(one.role in (FOLLOW, GIVEN_UP) for one in after)

    def ask(self, entry: LogEntry) -> list[Match]:
        """Return a match for every line of every rule that the entry matches.

        Followers and clearing lines are tried only while the rule has an open incident, because
        most lines of a log would clear something that never happened.
        """
        candidates = self.candidates(entry.kind, entry.level, entry.logger)
        if candidates.lasting is not None and entry.at < self._old:
            candidates = candidates.lasting
        search = candidates.search(self.begun, self.turn)
        if not search.tried:
            return []
        seen = search.matches(entry.text, entry.more)
        return [Match(rule, role, entry, fields, quote) for rule, role, fields, quote in seen]


def _matches(text: str, more: tuple[str, ...], candidates: list[_Candidate]) -> list[_Seen]:
    found = []
    for rule, role, line in candidates:
        if match := _first(line, _searched(line, text, more)):
            fields = {name: value for name, value in match.groupdict().items() if value}
            if "reason" in fields:
                fields["reason"] = _reason(match)
            found.append(_Seen(rule, role, fields, _quote(rule, match, fields)))
    if any(one.role == MATCH and not one.rule.otherwise for one in found):
        return [one for one in found if one.role != MATCH or not one.rule.otherwise]
    return found


def _reason(match: re.Match[str]) -> str:
    """The reason; one that was cut in a word ends with the word before it and an ellipsis.

    Half a key would not be redacted.
    """
    reason, rest = match["reason"], match.string[match.end("reason") :]
    if not _IN_A_WORD.match(reason[-1:] + rest):
        return reason
    return (reason[: reason.rindex(" ")] if " " in reason else reason).rstrip(_OPEN) + "…"


def _quote(rule: Rule, match: re.Match[str], fields: Mapping[str, str]) -> str:
    """What the pattern matched, or the reason behind it, if the title does not say that."""
    said = match[0]
    if "reason" in fields:
        if match.start("reason") >= match.end() and "{reason}" not in rule.title:
            return fields["reason"]
        if match.end("reason") == match.end():
            said = said[: match.start("reason") - match.start()] + fields["reason"]
    return said.rstrip(_OPEN) or said


def _searched(line: LinePattern, text: str, more: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts that the pattern is searched in, one after the other."""
    if line.exception:
        return (_with_exception(text, more),)
    return (text, *more) if line.traceback else (text,)


def _with_exception(text: str, more: tuple[str, ...]) -> str:
    """Return the message, the last place in code of Hermes and the exception, a line each."""
    place = exception = ""
    for line in more:
        if frame := _FRAME.match(line):
            exception = ""
            if own := _OWN.fullmatch(frame[1]):
                place = f"{own[1]}:{frame[2]}"
            elif not place:
                place = "/".join(frame[1].replace("\\", "/").split("/")[-2:]) + f":{frame[2]}"
        elif line.startswith("Traceback "):
            place = exception = ""
        elif place and not exception and line[:1].strip():
            exception = line
    return f"{text}\n{place}\n{exception}"


def _first(line: LinePattern, texts: tuple[str, ...]) -> re.Match[str] | None:
    """Search the message, then the lines that follow it, for the pattern."""
    for text in texts:
        if match := _compiled(line.pattern).search(text[:MOST]):
            return match
    return None


_IN_A_WORD = re.compile(r"[\w+/=.:-](?:[\w+/=-]|[.:](?=\S))")
_OPEN = " ,;:([{—-"
"""What does not end a quote."""
_patterns: dict[str, re.Pattern[str]] = {}


def _compiled(pattern: str) -> re.Pattern[str]:
    """Return the compiled pattern; the cache of `re` is too small for all of them."""
    found = _patterns.get(pattern)
    if found is None:
        found = _patterns[pattern] = re.compile(pattern)
    return found


def compiled_patterns() -> list[str]:
    """Return the patterns of rules that were compiled so far."""
    return [*_patterns]


def compile_patterns(wanted: Collection[str], rules: Iterable[Rule]) -> None:
    """Compile those patterns of the rules that are wanted."""
    for rule in rules:
        for line in rule.lines:
            if line.pattern in wanted:
                _compiled(line.pattern)
