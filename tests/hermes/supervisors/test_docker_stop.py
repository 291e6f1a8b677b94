"""Was a container stopped on purpose? tests/real/test_stopped_on_purpose.py asks a real engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.system import commands
from hermes_doctor.hermes.supervisors import docker
from hermes_doctor.repair.gateway.docker import Container
from tests.helpers import support

STOP, CRASH = "kill 15\ndie <no value>\n", "die <no value>\n"
RELOAD = "kill 1\ndie <no value>\n"


def inspected(
    home: Path,
    patch: pytest.MonkeyPatch,
    policy: str = "no",
    record: dict[str, Any] | None = None,
    events: str = "",
    engine: str = "docker",
    **state: Any,
) -> str:
    """Return what is known about the stop of a container with this policy, record and events."""
    file = home.parent / "containers/1/hostname"
    if record is not None:
        support.put(file.with_name("config.v2.json"), json.dumps(record))
    told = {
        "Id": "1",
        "Name": "/bot",
        "State": {"Status": "exited", "ExitCode": 1, "StartedAt": "2026-11-18T19:50:05Z"} | state,
        "HostConfig": {"RestartPolicy": {"Name": policy}},
        "HostnamePath": str(file),
    }

    def ask(*command: str, **options: Any) -> commands.CommandOutput:
        out = json.dumps([told]) if command[1] == "inspect" else events
        return commands.CommandOutput(0, out, "")

    patch.setattr(commands, "ask", ask)
    found = docker.inspect(engine, "bot", home)
    assert found is not None
    assert found.was_stopped is (found.settings["Stopped"] == "yes")
    if engine == "docker":
        control = Container(Home(home), "bot")
        assert control.was_stopped_on_purpose() is (found.settings["Stopped"] != "no")
    return found.settings["Stopped"]


@pytest.mark.parametrize("policy", ["always", "unless-stopped"])
def test_by_its_policy(home: Path, monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    """Docker restarts such a container unless it was stopped; Podman may not have, after a boot."""
    assert inspected(home, monkeypatch, policy) == "yes"
    assert inspected(home, monkeypatch, policy, Status="running") == "no"
    assert inspected(home, monkeypatch, policy, Status="restarting") == "no"
    assert inspected(home, monkeypatch, policy, Error="no such file") == "no"
    assert inspected(home, monkeypatch, policy, engine="podman") == ""
    assert inspected(home, monkeypatch, policy, engine="podman", StoppedByUser=True) == "yes"


@pytest.mark.parametrize("policy", ["no", "on-failure"])
def test_without_a_policy(home: Path, monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    """Docker's own record decides for root, else its recent events; without both it is unknown."""
    assert inspected(home, monkeypatch, policy) == ""
    assert inspected(home, monkeypatch, policy, events=STOP) == "yes"
    assert inspected(home, monkeypatch, policy, events=CRASH) == "no"
    assert inspected(home, monkeypatch, policy, events=RELOAD) == "no"
    for stopped, known in ((True, "yes"), (False, "no")):
        record = {"HasBeenManuallyStopped": stopped}
        assert inspected(home, monkeypatch, policy, record, CRASH) == known
