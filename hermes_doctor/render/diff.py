"""Shows how a settings file changes, with secrets redacted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

from hermes_doctor.core import redaction, setting_lines
from hermes_doctor.core.message import count

MOST_LINES = 40


def redacted_diff(label: str, before: bytes, after: bytes) -> Iterator[str]:
    """Yield a unified diff of two versions of a settings file, redacted line by line."""
    import difflib

    old = before.decode("utf-8", "replace").splitlines()
    new = after.decode("utf-8", "replace").splitlines()
    old_shown, new_shown = setting_lines.redact_lines(old), setting_lines.redact_lines(new)
    made = [f"--- {label} (now)", f"+++ {label} (after)"]
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(1):
        first, last = group[0], group[-1]
        made.append(
            f"@@ -{first[1] + 1},{last[2] - first[1]} +{first[3] + 1},{last[4] - first[3]} @@"
        )
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                made += [" " + text for text in old_shown[i1:i2]]
            else:
                made += ["-" + text for text in old_shown[i1:i2]]
                made += ["+" + text for text in new_shown[j1:j2]]
    for number, text in enumerate(made if len(made) > 2 else []):
        if number >= MOST_LINES:
            yield f"… {count(len(made) - number, 'more line')}"
            return
        yield redaction.clean(text)


MANY, SHOWN = 15, 5
"""If there are more than `MANY` of a kind, `SHOWN` are shown."""
T = TypeVar("T")


def split(
    things: Sequence[T], kind: Callable[[T], Hashable | None], most: int = MANY
) -> tuple[list[T], list[tuple[T, int]]]:
    """Return what to show, and for each kind that is cut off its first and the number left out.

    A kind of None is always shown.
    """
    numbers = Counter(kind(one) for one in things)
    seen: Counter[Hashable] = Counter()
    first: dict[Hashable, T] = {}
    shown = []
    for thing in things:
        name = kind(thing)
        seen[name] += 1
        if name is None or numbers[name] <= most or seen[name] <= SHOWN:
            shown.append(thing)
        first.setdefault(name, thing)
    cut = [
        (first[name], number - SHOWN)
        for name, number in numbers.items()
        if name is not None and number > most
    ]
    return shown, cut
