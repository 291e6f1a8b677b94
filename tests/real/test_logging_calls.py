"""The lines of a real gateway are found in the catalogue of its release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_doctor.hermes.knowledge.logging_calls import catalogue
from tests.helpers.log_lines import reading
from tests.helpers.real.gateways import gateway
from tests.hermes.knowledge.test_logging_calls import OWN

pytestmark = [pytest.mark.real, pytest.mark.wide]


@pytest.mark.parametrize("version", ["0.13.0", "0.19.0"])
def test_lines_of_a_gateway(hermes_home: Callable[[str], Path], version: str) -> None:
    """Nearly every line of Hermes itself was written by a call that is known."""
    home = hermes_home(version)
    with gateway(version, home):
        pass
    lines = [one for one in reading(home, 0, whole=True) if one.kind == "log"]
    own = [one for one in lines if one.logger.partition(".")[0] in OWN]
    known = catalogue(version)
    missed = [
        (one.logger, one.text)
        for one in own
        if known.match(one.logger, one.level, "\n".join((one.text, *one.more))) is None
    ]

    assert len(own) > 10
    assert len(missed) <= len(own) / 50, missed
