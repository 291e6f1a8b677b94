"""Settings for a container; with a real engine in tests/real/test_container_settings.py."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes_doctor.backup.records.journal import MachineActionRecord
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.hermes.processes import lineage
from hermes_doctor.repair.steps.machine import action_from_record
from hermes_doctor.repair.steps.restart_actions import SetRestartPolicy
from tests.checks.test_container_settings import ZONE, found, jobs, limit
from tests.helpers import compose_homes, support
from tests.helpers.compose_homes import InContainer, container, override, project
from tests.helpers.fake_engine import Engine
from tests.helpers.fix_contract import ProvedBy
from tests.helpers.planned_steps import finding, plan
from tests.scenarios.test_steps import apply, item, undo

FOUND = finding("DOCKER-NO-RESTART", "configure-container", wanted={"restart": "unless-stopped"})
PLAIN = {f"com.docker.compose.{name}": "" for name in ("service", "project")}


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine whose one container has the home as its volume."""
    made = Engine(tmp_path, mounts=[{"Source": str(tmp_path / "data"), "Destination": "/opt/data"}])
    monkeypatch.setenv("PATH", f"{made.bin}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    monkeypatch.setattr(lineage, "_MARKS", ())
    return made


def policy(engine: Engine) -> str:
    """The restart policy of the container."""
    host = engine.held["containers"][0].get("HostConfig") or {}
    return str((host.get("RestartPolicy") or {}).get("Name", "no"))


def test_compose(tmp_path: Path, engine: Engine) -> None:
    """The file and the running container get it; undo restores the bytes and the policy."""
    file = project(tmp_path)
    before = file.read_bytes()
    probes = InContainer(tmp_path / "data", container(tmp_path))
    edit, update = plan(probes, FOUND)
    assert list(edit.lines()) == ["+    restart: unless-stopped"]
    assert update.sentence().endswith(
        f"docker update --restart unless-stopped {compose_homes.NAME}"
    )

    done = apply(tmp_path / "data", item(edit, update))
    assert done.state == "done", done.note
    assert file.read_bytes().replace(b"    restart: unless-stopped\n", b"") == before
    assert policy(engine) == "unless-stopped"
    again = InContainer(tmp_path / "data", container(tmp_path))
    with pytest.raises(CannotFix, match="has this already"):
        plan(again, FOUND)
    undone = undo(tmp_path / "data", done)
    assert undone.state == "done", undone.note
    assert (file.read_bytes(), policy(engine)) == (before, "no")


SERVER = "API_SERVER_ENABLED=true\nAPI_SERVER_KEY=0123456789abcdef0123\nAPI_SERVER_PORT=8700\n"
LIMITED = """\
    ulimits:
      nofile:
        soft: 65536
        hard: 65536
"""


@pytest.mark.parametrize(
    ("code", "changes", "files", "expected"),
    [
        ("DOCKER-TZ", {}, 1 << 20, "      TZ: Asia/Shanghai\n"),
        ("DOCKER-LIMITS", {"State": {"OOMKilled": True}}, 1 << 20, "    mem_limit: 512m\n"),
        ("DOCKER-LIMITS", {}, 1024, LIMITED),
        ("DOCKER-NO-HEALTHCHECK", {"Config__Healthcheck": None}, 1 << 20, None),
    ],
)
def test_a_setting_that_needs_a_new_container(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    changes: dict[str, Any],
    files: int,
    expected: str | None,
) -> None:
    """Added once; then only the command is left to run; undo restores the bytes."""
    file, data = project(tmp_path), tmp_path / "data"
    before = file.read_bytes()
    limit(monkeypatch, files)
    told: dict[str, Any] = {"memory": 1 << 30}
    if code == "DOCKER-TZ":
        told |= {"zone": "Asia/Shanghai", "files": (ZONE,)}
        jobs(tmp_path)
    support.put(data / ".env", support.ENV + SERVER)
    [problem] = found(tmp_path, told, **changes)[1]
    assert (problem.code, problem.fix) == (code, "configure-container")
    probes = InContainer(data, container(tmp_path, **changes), **told)
    [step] = plan(probes, problem)
    block = "".join(f"{line[1:]}\n" for line in step.lines())
    assert expected in (None, block)
    done = apply(data, item(step))

    assert done.state == "done", done.note
    [note] = done.items[0].notes
    assert f"cd {tmp_path} && docker compose up -d gateway" in note
    after = file.read_text()
    assert block and after.replace(block, "", 1).encode() == before
    service = yaml.safe_load(after)["services"]["gateway"]
    for key, value in problem.data["wanted"].items():
        assert value == service[key] or value.items() <= service[key].items()
    [pending] = found(tmp_path, told, **changes)[1]
    assert pending.fix is None and pending.subject != problem.subject
    with pytest.raises(CannotFix, match="has this already"):
        plan(InContainer(data, container(tmp_path, **changes), **told), problem)
    undone = undo(data, done)
    assert undone.state == "done", undone.note
    assert file.read_bytes() == before


def test_a_policy_in_an_override_file(tmp_path: Path, engine: Engine) -> None:
    """It decides, so it is the file that is edited."""
    first = project(tmp_path)
    before = first.read_bytes()
    labels = override(tmp_path, '    restart: "no"\n')
    last = tmp_path / "compose.override.yaml"
    held = last.read_bytes()
    probes = InContainer(tmp_path / "data", container(tmp_path, Config__Labels=labels))
    done = apply(tmp_path / "data", item(*plan(probes, FOUND)))

    assert done.state == "done", done.note
    assert last.read_bytes() == held.replace(b"no", b"unless-stopped")
    assert undo(tmp_path / "data", done).state == "done"
    assert (first.read_bytes(), last.read_bytes()) == (before, held)


def test_without_compose(tmp_path: Path, engine: Engine) -> None:
    """Docker alone keeps the policy."""
    project(tmp_path)
    probes = InContainer(tmp_path / "data", container(tmp_path, Config__Labels=PLAIN))
    [update] = plan(probes, FOUND)
    assert isinstance(update, SetRestartPolicy)
    update.do()
    update.do()
    assert policy(engine) == "unless-stopped"
    asked = [words for words in engine.held["asked"] if words[0] == "update"]
    assert asked == [["update", "--restart", "unless-stopped", "chat-gateway-0"]]


def test_a_policy_that_somebody_chose_meanwhile_stays(tmp_path: Path, engine: Engine) -> None:
    """Undo takes back only what the fix has set."""
    project(tmp_path)
    act = action_from_record(Home(tmp_path / "data"), MachineActionRecord(SetRestartPolicy.kind))
    assert act is not None
    act.do()
    held = engine.held
    held["containers"][0]["HostConfig"]["RestartPolicy"]["Name"] = "always"
    engine.file.write_text(json.dumps(held))
    act.revert()
    assert policy(engine) == "always"


def test_refused(tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """No container has the home, or the engine is not Docker."""
    project(tmp_path)
    other = SetRestartPolicy(Home(tmp_path))
    with pytest.raises(CannotFix, match="no container with this home"):
        other.refuse()
    (engine.bin / "docker").rename(engine.bin / "podman")
    monkeypatch.setenv("PATH", str(engine.bin))
    with pytest.raises(CannotFix, match=r"Only Docker can change .* Recreate it with `--restart"):
        SetRestartPolicy(Home(tmp_path / "data")).refuse()


PROVED_BY = ProvedBy(
    "fixes/test_configure_container.py::test_compose",
    why="It needs a container engine.",
)
