"""What an id of a user looks like, platform by platform.

An id out of a log or a file of strangers goes into a list that lets people in. What could be
read there as two ids, as anybody, or as anything but an id is none.
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
    """Whether this can be the id of a user there."""
    return user.isascii() and _FORMS.get(platform, _FORM).fullmatch(user) is not None


def normalised(platform: str, user: str, release: tuple[int, ...]) -> str:
    """An id as that release writes it down when it pairs somebody."""
    if release < (0, 15):
        return user
    bare = user.strip()
    if platform != "whatsapp":
        return bare
    return bare.replace("+", "", 1).partition(":")[0].partition("@")[0] or bare
