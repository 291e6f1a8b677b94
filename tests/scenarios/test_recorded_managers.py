"""launchd, s6 and containers: what is asked of them, in which order, on a gateway of straw."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.model import CannotFix
from hermes_doctor.repair.gateway import startup_proof
from hermes_doctor.repair.gateway.base import GatewayControl
from hermes_doctor.repair.gateway.docker import Container
from hermes_doctor.repair.gateway.service_managers import LaunchAgent, Slot
from tests.helpers.fake_managers import Straw, asked, command, straw
from tests.helpers.planned_steps import Steady
from tests.helpers.real.gateways import end


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Straw:
    """A gateway of straw, and a PATH whose first folder is the managers'."""
    monkeypatch.setattr(startup_proof, "SETTLE", 0.3)
    monkeypatch.setattr(startup_proof, "CONNECTING", 0.3)
    (tmp_path / "managers").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'managers'}:{os.environ['PATH']}")
    return straw(tmp_path)


@pytest.fixture
def running(made: Straw) -> Iterator[subprocess.Popen[bytes]]:
    """It runs."""
    process = made.start()
    yield process
    end(process)


def starting(made: Straw) -> str:
    """The words of a shell that start it in the background."""
    words = " ".join(made.command)
    return f"HERMES_HOME={made.home.path} setsid {words} >/dev/null 2>&1 </dev/null &"


def round_trip(service: GatewayControl, running: subprocess.Popen[bytes]) -> int:
    """Stopped and started again: another process, of this home."""
    service.refuse()
    assert service.running() == running.pid
    service.stop(20)
    assert running.wait(5) == 0 and service.running() is None
    service.start(30)
    pid = service.running()
    assert pid not in (None, running.pid)
    assert any(f"process {pid} holds the lock" in note for note in service.notes())
    assert any("not connected yet: qqbot" in note for note in service.notes())
    assert pid is not None
    os.kill(pid, 9)
    return pid


def test_launchd(made: Straw, running: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """Booted out, or KeepAlive would bring it back at once; then bootstrapped again."""
    folder = tmp_path / "managers"
    kick = starting(made)
    command(
        folder,
        "launchctl",
        f'case "$1" in bootout) kill {running.pid};; kickstart) {kick}\n;;'
        f" print) test -e {folder}/in;; bootstrap) touch {folder}/in;; esac",
    )
    plist = tmp_path / "ai.hermes.gateway.plist"

    round_trip(LaunchAgent(made.home, "ai.hermes.gateway", plist, "gui/501"), running)

    assert asked(folder) == [
        "launchctl bootout gui/501/ai.hermes.gateway",
        "launchctl print gui/501/ai.hermes.gateway",
        f"launchctl bootstrap gui/501 {plist}",
        "launchctl kickstart gui/501/ai.hermes.gateway",
    ]
    assert json.loads((made.home / "noted").read_text())["target_pid"] == running.pid


def test_launchd_without_its_file(made: Straw) -> None:
    """What could not be started again is not stopped."""
    with pytest.raises(CannotFix, match="cannot be started again"):
        LaunchAgent(made.home, "ai.hermes.gateway", None, "gui/501").refuse()


def test_s6(made: Straw, running: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """Down and up; no note, since an announced stop would outlast the container's next boot."""
    folder = tmp_path / "managers"
    command(
        folder, "s6-svc", f'case "$1" in -d) kill {running.pid};; -u) {starting(made)}\n;; esac'
    )
    slot = tmp_path / "gateway-default"
    (slot / "supervise").mkdir(parents=True)
    os.mkfifo(slot / "supervise" / "control")

    round_trip(Slot(made.home, "gateway-default", slot), running)

    assert asked(folder) == [f"s6-svc -d {slot}", f"s6-svc -u {slot}"]
    assert (made.home / "noted").read_text() == ""


def test_s6_without_the_right(made: Straw, tmp_path: Path) -> None:
    """A slot that cannot be steered is refused before anything is done."""
    with pytest.raises(CannotFix, match="may not control"):
        Slot(made.home, "gateway-default", tmp_path / "nowhere").refuse()


@pytest.mark.sampled
@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_container(
    engine: str, made: Straw, running: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """That very container, with time to drain; started when it has really ended."""
    folder = tmp_path / "managers"
    does = f"inspect) echo 4f1e0c;; stop) kill {running.pid};; start) {starting(made)}\n;;"
    command(folder, engine, f'case "$1" in {does} esac')

    round_trip(Container(made.home, "4f1e0c", engine), running)

    first, *rest = asked(folder)
    assert first == f"{engine} inspect --type container --format {{{{.Id}}}} 4f1e0c"
    assert [one for one in rest if "inspect" not in one and " ps " not in one] == [
        f"{engine} stop --time 300 4f1e0c",
        f"{engine} wait 4f1e0c",
        f"{engine} start 4f1e0c",
    ]


@pytest.mark.parametrize(
    ("told", "forgets"),
    [
        ({"ActiveState": "failed", "NRestarts": "0"}, True),
        ({"ActiveState": "inactive", "NRestarts": "7"}, True),
        ({"ActiveState": "inactive", "NRestarts": "0"}, False),
        ({}, False),
    ],
)
def test_systemd_counts_anew(
    made: Straw, tmp_path: Path, told: dict[str, str], forgets: bool
) -> None:
    """A failure, or the starts of a loop that was stopped, are not held against the new start."""
    unit = Steady(made.home.path, None, tmp_path, **told)
    command(tmp_path / "managers", "systemctl")

    unit.ask_to_start()

    forget = ["systemctl --user reset-failed hermes-gateway.service"] if forgets else []
    start = "systemctl --user start --no-block hermes-gateway.service"
    assert asked(tmp_path / "managers") == [*forget, start]


def test_a_manager_that_fails(made: Straw, tmp_path: Path) -> None:
    """What it says is told, and nothing else happens."""
    command(tmp_path / "managers", "docker", "echo no such container; exit 1")
    with pytest.raises(CannotFix, match=r"failed with exit code 1: no such container"):
        Container(made.home, "4f1e0c").refuse()
    with pytest.raises(CannotFix, match="name of the container is not valid"):
        Container(made.home, "a; rm -rf /")


def test_nothing_comes_up(made: Straw, tmp_path: Path) -> None:
    """A start without a gateway is no start."""
    command(tmp_path / "managers", "docker")
    with pytest.raises(CannotFix, match="did not start in time"):
        Container(made.home, "4f1e0c").start(1.0)
