"""A home in a container of Docker Compose, as the engine describes it; no engine runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Gateway
from hermes_doctor.hermes.supervisors import docker
from hermes_doctor.hermes.supervisors.find import Supervision
from hermes_doctor.hermes.supervisors.units import Unit
from tests.helpers import support
from tests.helpers.given_answers import GivenAnswers

NAME = "bots-gateway-1"
PLAIN = """\
# My bots. Do not touch on Fridays.
services:
  gateway:   # the only one
    image: nousresearch/hermes-agent:latest
    volumes:
      - ./data:/opt/data
    environment:
      HERMES_UID: "1000"   # me
      API_KEY: sk-canary-0123456789

  database:
    image: postgres

# the end
"""


def inspected(folder: Path, **changes: Any) -> str:
    """What `docker inspect` prints, recorded from Docker 26 and cut to what matters here."""
    labels = {
        "com.docker.compose.project": "bots",
        "com.docker.compose.service": "gateway",
        "com.docker.compose.project.working_dir": str(folder),
        "com.docker.compose.project.config_files": str(folder / "compose.yaml"),
    }
    one: dict[str, Any] = {
        "Id": "c0ffee" * 10,
        "Name": f"/{NAME}",
        "RestartCount": 0,
        "State": {"Status": "running", "Pid": os.getpid(), "OOMKilled": False, "ExitCode": 0},
        "HostConfig": {"RestartPolicy": {"Name": "no", "MaximumRetryCount": 0}, "Memory": 0},
        "Mounts": [{"Source": str(folder / "data"), "Destination": "/opt/data", "RW": True}],
        "Config": {
            "Labels": labels,
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "HERMES_UID=1000"],
            "Healthcheck": {"Test": ["CMD", "true"]},
        },
    }
    for path, value in changes.items():
        *above, last = path.split("__")
        place = one
        for part in above:
            place = place[part]
        if isinstance(value, Mapping) and isinstance(place.get(last), dict):
            place[last] |= value
        else:
            place[last] = value
    return json.dumps([one])


def container(folder: Path, **changes: Any) -> Unit:
    """The container, as the supervisor search finds it."""
    found = docker.read_inspect(inspected(folder, **changes), folder / "data")
    assert found is not None
    return found


class InContainer(GivenAnswers):
    """Probes of a home that this container runs on."""

    def __init__(self, home: Path, unit: Unit, **told: Any) -> None:
        super().__init__(Home(home))
        self.unit, self.answers = unit, told

    def gateway_supervision(self) -> Supervision:
        return Supervision(self.unit, (self.unit,), False, "as told", (), None)

    def gateway_running(self) -> list[Gateway]:
        return [Gateway(os.getpid(), datetime.now(UTC))]

    def machine_time_zone(self) -> str:
        return str(self.answers.get("zone", "Etc/UTC"))

    def machine_memory(self) -> int:
        return int(self.answers.get("memory", 8 << 30))

    def machine_container_zone(self, pid: int) -> str | None:
        return "Etc/UTC"

    def machine_container_has(self, pid: int, path: str) -> bool | None:
        known: tuple[str, ...] = self.answers.get("files", ())
        return path in known

    def machine_command_lines(self) -> list[tuple[int, list[str], bool]]:
        return [(os.getpid(), ["/opt/hermes/.venv/bin/python", "hermes", "gateway", "run"], True)]


def override(folder: Path, text: str) -> dict[str, str]:
    """Write a second Compose file; return the labels of a container that both files describe."""
    more = support.put(folder / "compose.override.yaml", f"services:\n  gateway:\n{text}")
    return {"com.docker.compose.project.config_files": f"{folder / 'compose.yaml'},{more}"}


def project(folder: Path, text: str = PLAIN) -> Path:
    """Write the Compose file; return its path. The home is the folder `data` beside it."""
    support.healthy(folder / "data")
    return support.put(folder / "compose.yaml", text)
