"""Shorten and redact what a model or a provider said, before it is shown or stored."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING

from hermes_doctor.logs.secrets import redact_log_text
from hermes_doctor.message import shorten
from hermes_doctor.redaction import describe_hidden, redact_words

if TYPE_CHECKING:
    from hermes_doctor.settings.resolved import Resolved

LONG = 160
"""Characters: about two lines of a terminal."""
MOST = 20_000
"""Characters that are looked at, so that a huge answer takes no time."""
_STYLES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_NAMES = re.compile(r"(?i)key|token|secret|passw")
_SHORTEST = 6


def first_words(said: str, secrets: Iterable[str]) -> str:
    """Return the first words without secrets, line breaks and control characters."""
    plain = " ".join(_STYLES.sub("", said[:MOST]).split())
    known = sorted({one for one in secrets if one}, key=len, reverse=True)
    parts = re.split(f"({'|'.join(map(re.escape, known))})", plain) if known else [plain]
    return shorten("".join(_redacted(part, known) for part in parts), LONG)


def _redacted(part: str, secrets: Container[str]) -> str:
    if part in secrets:
        return describe_hidden(part, kind="key")
    return redact_words(redact_log_text(part))


def secrets_of(found: Resolved, *more: str) -> list[str]:
    """Return the values that must not be shown: the keys of the home, and those that are sent."""
    return [one for one in {*more, *_variables(found)} if len(one) >= _SHORTEST]


def _variables(found: Resolved) -> Iterator[str]:
    from hermes_doctor.settings.plain_secrets import suspects

    for name, value in found.world.variables.items():
        if _NAMES.search(name):
            yield str(value).strip()
    for _, written in suspects(found.world.raw):
        yield written.strip()
