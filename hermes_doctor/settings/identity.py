"""Validate user ids by platform.

Ids from logs and from files that strangers can influence are added to allowlists. A text that could
be read there as two ids, as a wildcard or as anything else is rejected.
"""

from __future__ import annotations

from hermes_doctor.lazy import pattern

_NUMBER = r"\+?\d{5,20}"
_SHAPES = {
    "discord": r"\d{1,21}",
    "email": r"[\w.+%-]{1,64}@[A-Za-z0-9.-]{1,190}",
    "matrix": r"@[A-Za-z0-9._=/+-]{1,200}:[A-Za-z0-9.:-]{1,200}",
    "signal": rf"{_NUMBER}|[0-9a-fA-F]{{8}}(-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}",
    "slack": r"[A-Z][A-Z0-9]{2,20}",
    "sms": _NUMBER,
    "telegram": r"\d{1,16}",
    "whatsapp": rf"{_NUMBER}(:\d{{1,4}})?(@(s\.whatsapp\.net|lid|c\.us))?",
    "whatsapp_cloud": _NUMBER,
}
_ANY = r"[A-Za-z0-9][A-Za-z0-9@._:+=/-]{0,127}"
_FORMS = {name: pattern(shape) for name, shape in _SHAPES.items()}
_FORM = pattern(_ANY)


def is_id(platform: str, user: str) -> bool:
    """Tell whether this is a valid user id on the platform."""
    return user.isascii() and _FORMS.get(platform, _FORM).fullmatch(user) is not None


def normalise_id(platform: str, user: str, release: tuple[int, ...]) -> str:
    """Return an id in the form in which that release stores it when pairing."""
    if release < (0, 15):
        return user
    bare = user.strip()
    if platform != "whatsapp":
        return bare
    return bare.replace("+", "", 1).partition(":")[0].partition("@")[0] or bare
