"""Remember what the adapter of each platform said last, as the reason of a failure."""

from __future__ import annotations

from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.logs.entry import LogEntry

_LOGGER = pattern(
    r"(?:gateway\.platforms\.(\w+?)(?:_adapter)?|hermes_plugins\.(\w+?)_platform"
    r"|plugins\.platforms\.(\w+))(?:\.|$)"
)
_PREFIXES = ("gateway.platforms.", "hermes_plugins.", "plugins.platforms.")
_NOT_PLATFORMS = ("base", "helpers", "utils")
_SERIOUS = ("WARNING", "ERROR", "CRITICAL")
_REASON = pattern(
    r"(?i)\b(?:(?:dis|re)?connect\w*|log ?in|logged out|auth\w*|tokens?|credentials?|secrets?|keys?"
    r"|start\w*|refus\w*|denied|timed? ?out|required|missing"
    r"|not (?:set|found|installed|configured|registered)|invalid|expired|exit\w*|https?|errors?"
    r"|fail\w*|ports?|bridge|npm|dns|resolv\w*|ssl|certificate|proxy|intents?|permissions?)\b"
)
_PREFIX = pattern(r"\[[^\]]{0,60}\] ?")
_OTHERS = pattern(
    r"(?:\[[^\]]{0,60}\] )?(?:Unauthorized|Rejected|Dropping|Dropped|Ignoring|Ignored|Denied"
    r"|Blocked|File too large|Unsupported document|Document too large|API FAIL"
    r"|Failed to (?:cache|parse|send|download)|Send |send |response_|inbound"
    r"|Error (?:handling|processing|sending))"
)
"""The starts of lines that may contain words of strangers, or are about single messages."""
_BEFORE = 300.0
_LONGEST = 100
"""Characters at the start of a line, up to a colon, that are the adapter's own words."""

_MOST = 1000
"""Characters of a line that are kept; fewer are shown."""
_MOST_NEW = 100
"""The number of entries after which they are judged, needed or not, so that few are kept."""


class LastWords(NamedTuple):
    """An entry of an adapter and the part of it that is shown."""

    entry: LogEntry
    text: str


class Adapters:
    """The last reason that each adapter gave."""

    def __init__(self) -> None:
        self._said: dict[str, LastWords] = {}
        self._new: list[LogEntry] = []
        """Entries that were not judged yet, because most homes never need a reason."""

    def note(self, entry: LogEntry) -> None:
        """Take an entry of an adapter, which may say why its platform does not work."""
        if is_adapter(entry.level, entry.logger):
            self._new.append(entry)
            if len(self._new) >= _MOST_NEW:
                self._judge()

    def reason(self, platform: str, at: float) -> LastWords | None:
        """Return what the adapter of a platform said shortly before then."""
        self._judge()
        said = self._said.get(platform.lower())
        return said if said and -5.0 <= at - said.entry.at <= _BEFORE else None

    def _judge(self) -> None:
        """Keep the last entry of each platform that says why it does not work."""
        for entry in self._new:
            match = _LOGGER.match(entry.logger)
            name = next(filter(None, match.groups()), "") if match else ""
            if not name or name in _NOT_PLATFORMS or _OTHERS.match(entry.text):
                continue
            own = _PREFIX.sub("", entry.text, count=1).partition(": ")[0]
            if _REASON.search(own[:_LONGEST]):
                self._said[name] = LastWords(entry, entry.text.split("\n")[0][:_MOST])
        self._new.clear()


def is_adapter(level: str, logger: str) -> bool:
    """Tell whether entries of this level and logger may be a reason."""
    return level in _SERIOUS and logger.startswith(_PREFIXES)
