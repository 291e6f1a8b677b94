"""What may be shown of a file: its shape always, its values only where they cannot be secret."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

HIDDEN = "‹hidden›"
MOST_LINES = 40
_KEY = r"""["']?[A-Za-z_][\w.-]{0,63}["']?"""
_PAIR = re.compile(rf"^(\s*(?:-\s+)?(?:export\s+)?{_KEY}\s*[:=]\s*)(\S.*)$")
_HEADING = re.compile(rf"^(\s*(?:-\s+)?{_KEY}\s*[:=]\s*)$")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_SWITCH = re.compile(r"true|false|yes|no|on|off|null|~", re.IGNORECASE)
_SECRET = re.compile(r"(?i)pass|pwd|secret|token|(?<![a-z])(key|pin|otp|auth|code)(?![a-z])")
_NUMBER = re.compile(r"-?\d{1,7}(?:\.\d{1,4})?")
_TOKEN = re.compile(
    r"(?i)^[\"']?(sk|pk|rk|gh[a-z]|xox[a-z]|eyj|akia|aiza)[-_a-z0-9]|[A-Za-z0-9]{16,}"
)
_SHOWN = frozenset(
    {
        "_config_version",
        "api_mode",
        "backend",
        "context_length",
        "default",
        "enabled",
        "key_env",
        "level",
        "max_tokens",
        "mode",
        "model",
        "port",
        "provider",
        "strategy",
        "timezone",
        "transport",
    }
)
_WORD = re.compile(r"""["']?[\w][\w./:-]{0,39}["']?""")


def clean(text: str) -> str:
    """Text from a file or a file name, safe for a terminal: one line, nothing that steers it."""
    return "".join(
        "�" if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") else char
        for char in text
    )


def line(text: str) -> str:
    """One line of a settings file with everything hidden that could be a secret."""
    text = text.rstrip("\r\n")
    marked = text.startswith("\ufeff")
    text = text.removeprefix("\ufeff")
    return clean(("<BOM>" if marked else "") + _line(text).replace("\t", "<TAB>"))


def _line(text: str) -> str:
    bare = text.lstrip()
    margin = text[: len(text) - len(bare)]
    if not bare or bare in ("---", "..."):
        return text
    if bare.startswith("#"):
        return f"{margin}# {HIDDEN}"
    pair = _PAIR.match(text) or _HEADING.match(text)
    name = _NAME.search(pair[1].strip("- ").removeprefix("export ")) if pair else None
    if not pair or not name or _TOKEN.search(name[0]) or bare.endswith("=="):
        return margin + HIDDEN  # a secret on a line of its own may look like a name
    head, value = pair[1], (pair[2].strip() if pair.re is _PAIR else "")
    if not value or _SWITCH.fullmatch(value):
        return head + value
    short = sum(map(str.isdigit, value)) <= 4 and not _SECRET.search(name[0])
    number = _NUMBER.fullmatch(value) and (short or name[0] in _SHOWN)
    word = name[0] in _SHOWN and _WORD.fullmatch(value) and not _TOKEN.search(value)
    return head + (value if number or word else HIDDEN)


def diff(label: str, before: bytes, after: bytes) -> Iterator[str]:
    """A unified diff of two versions of a settings file, masked line by line."""
    import difflib

    old = before.decode("utf-8", "replace").splitlines()
    new = after.decode("utf-8", "replace").splitlines()
    lines = list(
        difflib.unified_diff(old, new, f"{label} (now)", f"{label} (after)", n=1, lineterm="")
    )
    for number, text in enumerate(lines):
        if number >= MOST_LINES:
            yield f"… {len(lines) - number} more lines"
            return
        if number < 2 or text.startswith("@@"):
            yield clean(text)
        else:
            yield text[:1] + line(text[1:])
