"""The words that no text for people may contain."""

from __future__ import annotations

import re

REFUSED = (
    "anew",
    "in vain",
    "of before",
    "of now",
    "stands in",
    "lies in",
    "is no",
    "are no",
    "is none",
    "at all",
    "nobody said",
    "for want of",
    "does not come to",
    "in its words",
    "gives back",
    "mere",
    "by half",
    "said to be",
)
_PATTERN = re.compile(rf"\b(?:{'|'.join(REFUSED)})\b(?! longer)", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`")


_SILENT = re.compile(r"\bnobody\b[^.]{0,40}\bgets? an answer\b|\bget no answer", re.IGNORECASE)
_HEDGED = re.compile(
    r"\b(?:may|might|if|unless|could not|not show|probably|some|in time|programs|other)\b",
    re.IGNORECASE,
)


def understated(severity: str, text: str) -> bool:
    """Whether a text says that people get no answer, and its severity is less than an error.

    A warning may say so if it also says that this is not certain.
    """
    if severity in ("critical", "error") or not _SILENT.search(text):
        return False
    return severity == "info" or not _HEDGED.search(text)


def refused_words(text: str) -> list[str]:
    """The refused words in a text; code and quoted log lines may say what they like."""
    return _PATTERN.findall(_CODE.sub("", text))
