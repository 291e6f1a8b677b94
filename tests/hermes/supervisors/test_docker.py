"""Which machine the engine is on that `docker` talks to."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from hermes_doctor.hermes.supervisors import docker
from tests.helpers import support

ROOTLESS, FAR = "unix:///run/user/1000/docker.sock", "ssh://root@elsewhere"


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Docker's own folder, with two contexts."""
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    for name, host in (("rootless", ROOTLESS), ("far", FAR)):
        folder = tmp_path / "contexts/meta" / hashlib.sha256(name.encode()).hexdigest()
        support.put(folder / "meta.json", json.dumps({"Endpoints": {"docker": {"Host": host}}}))
    return tmp_path


@pytest.mark.parametrize(
    ("variables", "current", "expected"),
    [
        ({}, None, ""),
        ({}, "default", ""),
        ({}, "rootless", ROOTLESS),
        ({}, "far", FAR),
        ({}, "gone", docker.UNKNOWN_ADDRESS),
        ({"DOCKER_CONTEXT": "far"}, "rootless", FAR),
        ({"DOCKER_CONTEXT": "default"}, "far", ""),
        ({"DOCKER_HOST": "tcp://10.0.0.1:2375"}, "rootless", "tcp://10.0.0.1:2375"),
        ({"DOCKER_HOST": "unix:///x", "DOCKER_CONTEXT": "far"}, None, "unix:///x"),
        ({"DOCKER_HOST": "10.0.0.1"}, None, docker.UNKNOWN_ADDRESS),
    ],
)
def test_address(
    settings: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    current: str | None,
    expected: str,
) -> None:
    """As Docker itself chooses; only an engine of this machine is asked about a home of it."""
    if current:
        support.put(settings / "config.json", json.dumps({"currentContext": current}))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    support.put(settings / "bin/docker", "#!/bin/sh\n", 0o755)
    monkeypatch.setenv("PATH", str(settings / "bin"))

    assert docker.engine_address() == expected
    if expected:
        assert docker.engine() == ("docker" if expected.startswith("unix:") else None)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"currentContext": 7}'])
def test_settings_in_pieces(settings: Path, text: str) -> None:
    """What cannot be read names no engine."""
    support.put(settings / "config.json", text)
    assert docker.engine_address() in ("", docker.UNKNOWN_ADDRESS)
