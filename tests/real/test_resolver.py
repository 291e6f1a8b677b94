"""Our resolver and real Hermes give the same answers to the same questions."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tests.conftest import need_release
from tests.helpers.real import made_homes, resolver_questions
from tests.helpers.real.known_homes import KNOWN
from tests.helpers.real.made_homes import Made
from tools import releases

pytestmark = pytest.mark.real
HOMES = int(os.environ.get("HERMES_DOCTOR_RESOLVER_HOMES", "20"))
"""How many made-up homes each release is asked about, beside those of known mistakes."""
FIRST = int(os.environ.get("HERMES_DOCTOR_RESOLVER_SEED", "0"))


@pytest.mark.wide
@pytest.mark.parametrize("version", releases.ALL)
def test_same_answers(version: str, tmp_path: Path) -> None:
    """At least 99 % of all fields agree, and every one on the homes with known mistakes."""
    need_release(version)
    made: dict[str, Made] = dict(KNOWN)
    made |= {f"seed {n}": made_homes.make(n) for n in range(FIRST, FIRST + HOMES)}
    homes = []
    for number, one in enumerate(made.values()):
        home = tmp_path / str(number) / "home"
        one.write(home)
        homes.append((home, one))
    mine = [
        resolver_questions.ours(resolver_questions.world(home, one, version)) for home, one in homes
    ]
    real = resolver_questions.theirs(version, tmp_path, homes)
    assert len(real) == len(homes)

    fields, differing = 0, []
    for name, ours, theirs in zip(made, mine, real, strict=True):
        count, others = resolver_questions.compare(ours, theirs)
        fields += count
        differing += [f"{name}: {field}: {a!r}, Hermes {b!r}" for field, (a, b) in others.items()]

    told = f"{version}: {fields} fields, {len(differing)} differ"
    logging.getLogger(__name__).info("\n".join([told, *differing]))
    assert len(differing) <= fields // 100, "\n".join(differing)
    assert not [line for line in differing if not line.startswith("seed ")], "\n".join(differing)
