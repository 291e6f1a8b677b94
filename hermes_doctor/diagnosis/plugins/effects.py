"""Read `effects.txt`: what each problem does to the bot."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.core.model import PARTS, CouldNotLook, Effect
from hermes_doctor.core.system.files import MEGABYTE, read_if_there

NAME = "effects.txt"


def read_effects(folder: Path) -> dict[str, Effect]:
    """The effects by code; a line that is not `CODE PART WORDS` is ignored."""
    try:
        if_there = read_if_there(folder / NAME, MEGABYTE)
    except (CouldNotLook, OSError):
        return {}
    effects = {}
    data = if_there[0] if if_there else b""
    for line in data.decode("utf-8", "replace").splitlines():
        words = line.split(None, 2)
        if len(words) == 3 and not line.startswith("#") and words[1] in PARTS:
            effects[words[0]] = Effect(words[1], words[2])
    return effects
