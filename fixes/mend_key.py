"""Remove what does not belong to an API key: comments, quotes, `Bearer`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    Assign,
    CannotFix,
    Finding,
    Mend,
    Probes,
    Put,
    Safety,
    fix,
    mended,
    pattern,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Step

_WHY = "keep only the key"
_HEAD = pattern(r"(?P<margin>\s*)(?:export\s+)?(?P<name>[^=\s]+)\s*=\s*")
_COMMENT = pattern(r"\s(#.*)$")


@fix(id="mend-key", codes=["CRED-SHAPE"], safety=Safety.SAFE)
def mend_key(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Remove quotes, comments or `Bearer` from a key."""
    from hermes_doctor.api import edit_config, edit_env, reload

    world = probes.resolved().world
    name, kind = finding.data.get("name", ""), finding.data.get("kind")
    if kind == "config":
        path, value = world.document.text(name)
        yield from edit_config(probes, _WHY, Put(path, _key(value)))
    else:
        written = world.readings.own.values.get(name)
        if written is None or written.source.line is None:
            raise CannotFix(text("{name} was removed from .env. Run the check again.", name=name))
        if name in world.readings.dotenv.values:
            yield from edit_env(probes, _WHY, Assign(name, _key(written)))
        else:
            env = probes.env()
            old = env.line(written.source.line) if env else ""
            new = _line(name, old, _key(written))
            yield from edit_env(probes, _WHY, Mend(written.source.line, old, new))
    yield from reload(probes, "key")


def _line(name: str, old: str, key: str) -> str:
    """Return the line with the bare key; a comment behind it moves to a line above."""
    head = _HEAD.match(old)
    if head is None or head["name"] != name:
        raise CannotFix(
            text("The line of {name} in .env has an unusual form. Correct it by hand.", name=name)
        )
    comment = _COMMENT.search(old[head.end() :].partition(key)[2])
    above = f"{head['margin']}{comment[1]}\n" if comment else ""
    return f"{above}{head[0]}{key}"


def _key(value: str | None) -> str:
    found = mended(value or "")
    if found is None:
        raise CannotFix("It is not clear which part is the key. Copy the key again.")
    return found
