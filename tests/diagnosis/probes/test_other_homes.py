"""Find the running gateways of other homes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes import other_homes
from hermes_doctor.hermes.processes import runtime_files
from hermes_doctor.hermes.processes.gateway_processes import command_lines
from tests.helpers import fake_gateway, support


@pytest.mark.parametrize(
    ("state", "release", "blocks"),
    [
        ("running", (0, 19), True),
        ("running", None, True),
        ("running", (0, 16), False),
        ("stopped", (0, 19), False),
    ],
)
def test_named_in_a_copy(
    home: Path, tmp_path: Path, state: str, release: tuple[int, ...] | None, blocks: bool
) -> None:
    """The gateway of the original is found from the copy, and whether Hermes believes the file."""
    other = support.healthy(tmp_path / "other" / "home")
    with fake_gateway.gateway(other) as running:
        said = json.loads((other / "gateway_state.json").read_text())
        support.put(home / "gateway_state.json", json.dumps(said | {"gateway_state": state}))
        found = other_homes.named_in(Home(home), runtime_files.find(Home(home)), release)
        own = other_homes.named_in(Home(other), runtime_files.find(Home(other)), release)
        seen = [one.pid for one in other_homes.running_elsewhere(Home(home), command_lines())]
        beside = [one.pid for one in other_homes.running_elsewhere(Home(other), command_lines())]

    assert found is not None
    assert (found.pid, found.home, found.blocks) == (running.pid, other, blocks)
    assert own is None
    assert running.pid in seen
    assert running.pid not in beside
