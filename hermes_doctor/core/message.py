"""Build texts for people from whole-sentence templates with named values.

The result is a plain string that also remembers its template and values, so that texts can be
translated, compared and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hermes_doctor.core.lazy import EMPTY


class Message(str):
    """A finished text that knows the template and the values it was made from."""

    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, values: Mapping[str, object] = EMPTY) -> Message:
        message = super().__new__(cls, template.format_map(values))
        message.template = template
        message.values = values
        return message

    def __reduce__(self) -> tuple[type[Message], tuple[str, dict[str, object]]]:
        """Let copies and other processes get the template and the values, too."""
        return Message, (self.template, dict(self.values))


def text(template: str, /, **values: object) -> Message:
    """Fill a template, such as `text("{platform} rejects the app secret", platform=label)`.

    The template is one or more whole sentences. A brace that is meant literally is doubled.
    """
    return Message(template, values)


def sentences(*parts: str) -> Message:
    """Join whole sentences to one text; empty ones are left out.

    A value whose name an earlier sentence already uses for something else gets a number.
    """
    templates: list[str] = []
    values: dict[str, object] = {}
    for part in filter(None, parts):
        template, own = _parts(part)
        for name, value in own.items():
            free = name
            number = 2
            while free in values and values[free] != value:
                free = f"{name}_{number}"
                number += 1
            if free != name:
                template = _renamed(template, name, free)
            values[free] = value
        templates.append(template)
    return Message(" ".join(templates), values)


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: `0 messages`, `1 message`, `1,234 messages`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def ordinal(number: int) -> str:
    """A place in an order: `1st`, `2nd`, `3rd`, `4th`, `11th`."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{'th' if number % 100 in (11, 12, 13) else ending}"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names as a list for people: `a, b and c`, or `a, b and 7 more`."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most:,} more")
    first = ", ".join(shown[:-1])
    return f"{first} and {shown[-1]}" if first else "".join(shown)


def ranges(numbers: Sequence[int]) -> str:
    """Numbers for people: `1-3, 5`."""
    from itertools import groupby

    parts = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        parts.append(str(found[0]) if len(found) == 1 else f"{found[0]}-{found[-1]}")
    return ", ".join(parts)


def shorten(said: str, most: int) -> str:
    """Cut a quoted text at the end of a word, with an ellipsis."""
    if len(said) <= most:
        return said
    cut = said[: most - 1]
    at_word = cut.rpartition(" ")[0] if said[most - 1].strip() else cut
    whole = at_word if len(at_word) > most // 2 else cut  # texts without spaces, such as Chinese
    return whole.rstrip(" ,;:([{—-") + "…"


def duration(seconds: float) -> str:
    """A length of time in at most two units: `42 s`, `1 h 42 min`, `3 d 4 h`."""
    left = max(0, int(seconds + 0.5))
    for size, word, smaller, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "min")):
        if left >= size:
            rest = left % size // smaller
            return f"{left // size} {word}" + (f" {rest} {small}" if rest else "")
    return f"{left // 60} min" if left >= 60 else f"{left} s"


def clock(moment: datetime, now: datetime | None = None) -> str:
    """A local time: `04:13` today, `Nov 15 04:13` in the last months, else with the year."""
    try:
        local, today = moment.astimezone(), (now or datetime.now(UTC)).astimezone()
    except (OverflowError, ValueError, OSError):
        return f"{moment:%Y-%m-%d %H:%M}"
    if local.date() == today.date():
        return f"{local:%H:%M}"
    if abs((today - local).days) < 300:
        return f"{local:%b} {local.day} {local:%H:%M}"
    return f"{local:%Y-%m-%d %H:%M}"


def ago(moment: datetime, now: datetime | None = None) -> str:
    """A local time and how long ago it was: `04:13 (1 h 42 min ago)`."""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    return f"{clock(moment, now)} ({duration(seconds)} ago)" if seconds >= 0 else clock(moment, now)


def as_document(said: str) -> dict[str, Any]:
    """The template and the values of a text, as JSON data."""
    template, values = _parts(said)
    plain = (str, int, float, bool, type(None))
    shown = {
        name: value if isinstance(value, plain) else str(value) for name, value in values.items()
    }
    return {"template": template, "values": shown}


def _parts(said: str) -> tuple[str, Mapping[str, object]]:
    """The template and the values; a plain string is its own template."""
    if isinstance(said, Message):
        return said.template, said.values
    return said.replace("{", "{{").replace("}", "}}"), EMPTY


def _renamed(template: str, old: str, new: str) -> str:
    from string import Formatter

    made = ""
    for literal, name, form, conversion in Formatter().parse(template):
        made += literal.replace("{", "{{").replace("}", "}}")
        if name is not None:
            shown = new + name[len(old) :] if name.split(".")[0].split("[")[0] == old else name
            made += "{" + shown + (f"!{conversion}" if conversion else "")
            made += (f":{form}" if form else "") + "}"
    return made
