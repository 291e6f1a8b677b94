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
    "taken back",
    "given back",
    "has it that",
    "asked about first",
    "gains a subject",
    "error or worse",
    "as far as (?:its|the) files show",
    r"for good(?! \w)",
    r"of (?:its|their|your) own(?! \w)",
)
"""Regular expressions; `(?! \\w)` lets `for good reasons` and `files of its own gateway` pass."""
_PATTERN = re.compile(rf"\b(?:{'|'.join(REFUSED)})\b(?! longer)", re.IGNORECASE)
_SINCE = re.compile(
    r"\b(?:is|are|gets?|works?|runs?|fails?|waits?|receives?)\b"
    r"(?:(?!\bha(?:s|ve)\b)[^.;,:(]){0,40} since\b",
    re.IGNORECASE,
)
"""What has lasted until now needs the perfect: "has not been working since", not "is not …"."""
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
    plain = _CODE.sub("", text)
    return [*_PATTERN.findall(plain), *_SINCE.findall(plain)]
