"""Take the texts that can name a cause out of a log entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hermes_doctor.lazy import NamedTuple, pattern

MOST = 2000
"""Characters of one text that are read."""
MOST_LINES, MOST_EXCEPTIONS = 10, 20
TRACEBACK = "Traceback (most recent call last):"
_MARGIN = pattern(r"^ {0,12}\| ?")
_FUNCTION = pattern(r", in (.{1,80})")
_BETWEEN = pattern(
    r"(?:\+ )?(?:Exception Group )?Traceback \(|During handling of the above exception"
    r"|The above exception was the direct cause|\[Previous line repeated"
)
_WRAPPERS = (", in map_exceptions", ", in map_httpcore_exceptions", ", in __exit__")
"""Functions that only turn one exception into another."""
_OTHERS = pattern(
    r"(?:\[[^\]]{0,60}\] )?(?:Tool [\w.-]{1,80} returned error|inbound message|response ready"
    r"|Unauthorized (?:user|sender)|Dropp(?:ed|ing) |Ignor(?:ed|ing) (?:message|\w+ from)"
    r"|Denied |Blocked (?:dangerous|command)|Model declined|shell hook stdout"
    r"|Reasoning-only response|Auto voice reply: |Unrecognized slash command"
    r"|Suppressing hidden-reasoning)"
)
"""The starts of lines whose rest was written by people, tools or models."""
_SAID = pattern(
    r"\b(?:msg|text|prompt|query|input|preview|payload|user_message|command|[Dd]escription)"
    r"(?:=|: )(?:'(?:[^'\\]|\\.){0,1500}'?|\"(?:[^\"\\]|\\.){0,1500}\"?)"
)
"""What somebody said, in quotes after a name for it."""
_NAME = pattern(r"\b([Jj]ob|[Tt]ask|[Ss]kill|[Bb]oard|[Cc]hat|[Tt]itle|[Pp]rofile) '[^'\n]{0,200}'")
"""What people called something."""
_TAG = pattern(r"(?:\W{0,4}\[(?!Errno|WinError|SSL)[^\]]{0,80}\]:? ?){0,3}")
_NAMED = pattern(r"\b[\w.]{0,80}[a-z](?:Error|Exception|Timeout)[:(]")
_ALONE = pattern(
    r"(?:\w{1,40}\.){1,5}[A-Z]\w{2,60}: "
    r"|[A-Z]\w{0,60}(?:Error|Exception|Timeout|TimedOut|Closed|ClosedError|ClosedOK|File|Failure): "
)
"""A name such as `telegram.error.TimedOut: `."""
_ERROR_WORD = pattern(r"\b[Ee]rror: ")
_ERROR_NUMBER = pattern(
    r"\[(?:Errno|WinError|SSL)\b|\bHTTP [45]\d\d\b|[Ww]eb ?[Ss]ocket closed\b|\([45]\d\d\)"
)
"""What says more before the colon than the words behind it."""


class Parts(NamedTuple):
    """The texts of an entry that can name a cause, from the innermost to the outermost."""

    exceptions: Sequence[str]
    """The exceptions of the traceback, each with the function that raised it; first the root."""
    message: str
    """The whole message, without words of people and models."""
    start: int
    """Where the error begins in the message."""


def parts_of(text: str, more: Sequence[str] = ()) -> Parts:
    """Split an entry; a message of people, tools or models gives nothing."""
    exceptions: list[str] = []
    message = text[: 2 * MOST]
    if more:
        start = next((n for n, line in enumerate(more) if TRACEBACK in line), len(more))
        message = "\n".join((message, *more[: min(start, MOST_LINES)]))
        exceptions = [*_exceptions(more[start:])]
    if _OTHERS.match(message):
        return Parts(exceptions, "", 0)
    if '="' in message or "='" in message or ": '" in message or ': "' in message:
        message = _SAID.sub("", message)
    if " '" in message:
        message = _NAME.sub(r"\1", message)
    message = message[:MOST]
    return Parts(exceptions, message, _error_start(message))


def _error_start(message: str) -> int:
    """Return where the error begins.

    That is behind the first colon, unless a number of it is before; or at the first exception.
    """
    tag = _TAG.match(message)
    start = tag.end() if tag else 0
    colon = message.find(": ", start)
    if colon < 0:
        return len(message)
    if _ERROR_NUMBER.search(message, start, colon) or _ALONE.match(message, start):
        return start
    if "(Caused by " in message[start:colon]:
        return start
    inner = [one.end() for one in _ERROR_WORD.finditer(message, colon)]
    named = _NAMED.search(message, start)
    return named.start() if named else max([colon + 2, *inner])


def _exceptions(lines: Sequence[str]) -> Iterator[str]:
    """Yield each exception of a traceback in one line, with the innermost function behind it."""
    frame = found = ""
    count = length = 0
    for line in (*lines, TRACEBACK):
        start = line[:12]
        if "|" in start:
            line = _MARGIN.sub("", line)  # of a group of exceptions
        elif not found and start[:4] == "    " and "+-" not in start:
            continue
        if (
            "+-" in start
            or line.startswith('  File "')
            or (line[:1] in "TD[+E" and _BETWEEN.match(line))
        ):
            if found:
                function = _FUNCTION.search(frame)
                yield f"{found.rstrip()} (in {function[1] if function else '?'})"[: 2 * MOST]
                count, length = count + 1, length + len(found)
            if count == MOST_EXCEPTIONS or length > 3 * MOST:
                return
            if found or not line.endswith(_WRAPPERS):
                frame = line
            found = ""
        elif found:
            if len(found) < MOST:
                found += f"\n{line[:400]}"
        elif frame and line[:1] not in ("", " ", "\t"):
            found = line[:MOST]
