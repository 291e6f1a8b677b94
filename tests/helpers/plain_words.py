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


def refused_words(text: str) -> list[str]:
    """The refused words in a text; code and quoted log lines may say what they like."""
    return _PATTERN.findall(_CODE.sub("", text))
