"""Who is asked to stop and start a gateway, and when nobody is."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_doctor.backup.records.journal import Journal
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix, Gateway
from hermes_doctor.core.system import accounts
from hermes_doctor.diagnosis.probes import port_test
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from hermes_doctor.diagnosis.probes.health_view import HealthView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.probes.pulse import Pulse
from hermes_doctor.hermes.supervisors import docker, systemd
from hermes_doctor.hermes.supervisors.find import Supervision
from hermes_doctor.hermes.supervisors.units import (
    DOCKER,
    LAUNCHD,
    OTHER,
    S6,
    SYSTEMD_SYSTEM,
    SYSTEMD_USER,
    Unit,
)
from hermes_doctor.repair.gateway import control, service_managers
from hermes_doctor.repair.gateway.detached import Detached
from hermes_doctor.repair.gateway.process_handle import ProcessHandle
from hermes_doctor.repair.steps.gateway import GatewayStep
from hermes_doctor.repair.transaction.gateway import GatewayPause, start_stopped_gateway
from tests.helpers import support
from tests.helpers.fake_engine import Engine
from tests.helpers.fake_managers import Straw, straw, until
from tests.helpers.given_answers import GivenAnswers
from tests.helpers.real.gateways import end

NONE = (False, "", (), None)


def unit(kind: str, name: str, state: str = "active", **more: object) -> Unit:
    """One definition that runs a gateway."""
    known = Unit(kind, name, Path("/slot/run"), None, None, state, {}, {}, None)
    return known._replace(**more)  # type: ignore[arg-type]


class Told(GivenAnswers):
    """Probes that are told who runs and who looks after it."""

    def __init__(self, home: Path, pids: list[int], *units: Unit, owner: bool = True) -> None:
        super().__init__(Home(home))
        now = datetime.now(UTC)
        self.pids = [Gateway(pid, now) for pid in pids]
        mine = units[0] if units and owner else None
        self.told = Supervision(mine, units, None, "", (), None)

    def gateway_running(self) -> list[Gateway]:
        return self.pids

    def gateway_supervision(self) -> Supervision:
        return self.told


@pytest.fixture(autouse=True)
def steerable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every manager would let itself be asked."""
    for kind in (service_managers.SystemdUnit, Detached):
        monkeypatch.setattr(kind, "refuse", lambda self: None)
    monkeypatch.setattr(
        "hermes_doctor.repair.gateway.service_managers.Slot.refuse", lambda self: None
    )
    monkeypatch.setattr("hermes_doctor.repair.gateway.docker.Container.refuse", lambda self: None)
    monkeypatch.setattr("hermes_doctor.hermes.processes.lineage.in_container", lambda: False)


@pytest.fixture
def alive() -> Iterator[int]:
    """Some process that could be a gateway."""
    process = subprocess.Popen(["sleep", "100"])
    yield process.pid
    end(process)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (
            SYSTEMD_USER,
            "hermes-gateway.service",
            "with the systemd user service hermes-gateway.service",
        ),
        (
            SYSTEMD_SYSTEM,
            "hermes-gateway.service",
            "with the systemd system service hermes-gateway.serv",
        ),
        (LAUNCHD, "ai.hermes.gateway", "with the launchd job ai.hermes.gateway"),
        (S6, "gateway-default", "with the s6 service gateway-default"),
        (DOCKER, "hermes", "in the container hermes"),
    ],
)
def test_owner(kind: str, name: str, said: str, home: Path, alive: int) -> None:
    """Whatever owns it is asked, by its own name."""
    manager = 0 if kind == SYSTEMD_USER else None
    found = control.gateway_control(Told(home, [alive], unit(kind, name, manager=manager)))
    assert found.describe().startswith(said)


def test_nobody(home: Path, alive: int) -> None:
    """A gateway that nobody owns is a process of its own, with the proxies of a unit beside it."""
    proxy = {"HTTPS_PROXY": "http://proxy", "OTHER": "x"}
    idle = unit(SYSTEMD_USER, "hermes-gateway.service", "inactive", environment=proxy)
    found = control.gateway_control(Told(home, [alive], idle, owner=False))
    assert isinstance(found, Detached)
    made = found.environment(accounts.account(os.geteuid()))
    assert made["HTTPS_PROXY"] == "http://proxy" and "OTHER" not in made
    assert made["HERMES_HOME"] == str(home)


def test_a_container_that_left_no_trace(
    home: Path, alive: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where none runs, its container starts it, and no Hermes of the host beside that."""
    engine = Engine(tmp_path, mounts=[{"Source": str(home), "Destination": "/opt/data"}])
    monkeypatch.setenv("PATH", f"{engine.bin}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    assert control.gateway_control(Told(home, [])).describe() == "in the container chat-gateway-0"
    assert isinstance(control.gateway_control(Told(home, [alive])), Detached)

    once = {"Config": {"Image": "x", "Env": [], "Labels": {"com.docker.compose.oneoff": "True"}}}
    for more, said in ((once, "in the container chat-gateway-0"), ({}, None)):
        held = Engine(tmp_path, 2, mounts=[{"Source": str(home), "Destination": "/opt/data"}]).held
        held["containers"][1] |= more
        engine.file.write_text(json.dumps(held))
        if said:
            assert control.gateway_control(Told(home, [])).describe() == said
        else:
            with pytest.raises(CannotFix, match="2 containers have this home"):
                control.gateway_control(Told(home, []))
    Engine(tmp_path, mounts=[{"Source": str(home), "Destination": "/srv"}])
    assert isinstance(control.gateway_control(Told(home, [])), Detached)

    support.put(engine.bin / "docker", "#!/bin/sh\nexit 1\n", 0o755)
    assert isinstance(control.gateway_control(Told(home, [])), Detached)
    monkeypatch.setattr(docker, "PATIENCE", 0.1)
    support.put(engine.bin / "docker", "#!/bin/sh\nexec sleep 1000\n", 0o755)
    with pytest.raises(CannotFix, match="what restarts the gateway: docker did not answer"):
        control.gateway_control(Told(home, []))


@pytest.mark.parametrize("kind", [OTHER, "nobody"])
def test_strange_owners(kind: str, home: Path, alive: int) -> None:
    """A supervisor that this tool knows by name only is not steered."""
    with pytest.raises(CannotFix, match="cannot control"):
        control.gateway_control(Told(home, [alive], unit(kind, "supervisord")))


def test_ambiguous(home: Path, alive: int) -> None:
    """Two gateways, two units at work, or two that would start one: nobody is asked."""
    with pytest.raises(CannotFix, match="2 gateways run"):
        control.gateway_control(Told(home, [alive, 2**22], unit(S6, "gateway-default")))
    two = [unit(SYSTEMD_USER, "hermes.service"), unit(SYSTEMD_SYSTEM, "hermes-gateway.service")]
    with pytest.raises(
        CannotFix, match=r"hermes\.service and hermes-gateway\.service run the gateway of this home"
    ):
        control.gateway_control(Told(home, [alive], *two))
    on = {"UnitFileState": "enabled"}
    idle = [one._replace(state="inactive", settings=on) for one in two]
    with pytest.raises(CannotFix, match="would each start the gateway"):
        control.gateway_control(Told(home, [], *idle))
    by_hand = unit(SYSTEMD_USER, "hermes.service", "activating")
    with pytest.raises(
        CannotFix, match=rf"process {alive} and hermes\.service run the gateway of this home"
    ):
        control.gateway_control(Told(home, [alive], by_hand, owner=False))


def test_not_known(home: Path, alive: int) -> None:
    """Where the owner cannot be told, or cannot be asked, nothing is done."""
    probes = Told(home, [alive])
    probes.told = probes.told._replace(unsure=("its manager does not answer",))
    with pytest.raises(CannotFix, match="what restarts the gateway: its manager does not answer"):
        control.gateway_control(probes)
    mute = unit(DOCKER, "this container", silence="it cannot be seen from inside")
    with pytest.raises(CannotFix, match="this container cannot be controlled"):
        control.gateway_control(Told(home, [alive], mute))


def test_inside(home: Path, alive: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent does not stop what it answers through: by its variables, and by its ancestors."""
    with pytest.raises(CannotFix, match="inside the gateway"):
        control.gateway_control(Told(home, [os.getppid()], unit(S6, "gateway-default")))
    monkeypatch.setenv("_HERMES_GATEWAY", "1")
    with pytest.raises(CannotFix, match="inside the gateway"):
        control.gateway_control(Told(home, [alive], unit(S6, "gateway-default")))


def test_rights(home: Path, alive: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's home and the system's units are for others."""
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(CannotFix, match="Run it as that user or with sudo"):
        control.gateway_control(Told(home, [alive], unit(S6, "gateway-default")))
    with pytest.raises(CannotFix, match="Run it with sudo"):
        service_managers.SystemdManager(None).refuse()
    with pytest.raises(CannotFix, match="Run it as that user"):
        service_managers.SystemdManager(accounts.Account(54321, 1, (), "bob", "/home/bob")).refuse()


@pytest.mark.parametrize("uid", [0, 4321])
def test_folder_of_a_user(uid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login may have put one's own elsewhere; root's HOME may be one that sudo has kept."""
    listed = pwd.struct_passwd(("name", "x", uid, uid, "", "/listed", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: listed)
    monkeypatch.setattr(os, "getgrouplist", lambda *_: [uid])
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setenv("HOME", "/kept")

    scope = systemd.user_scope(uid)

    assert scope is not None
    wanted = "/kept" if uid else "/listed"
    assert [accounts.account(uid).folder, str(scope.user)] == [wanted, wanted]


def test_no_bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager that does not run is not waited for."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(CannotFix, match="systemd does not run for uid"):
        service_managers.SystemdManager(accounts.account(os.geteuid())).refuse()


# -- a process of its own -------------------------------------------------------------------------


@pytest.fixture
def sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often, and wait for little."""
    monkeypatch.setattr("hermes_doctor.repair.gateway.base.LOOK_EVERY", 0.2)


@pytest.fixture
def running(tmp_path: Path, sooner: None) -> Iterator[tuple[Straw, subprocess.Popen[bytes]]]:
    """A gateway of straw that nobody looks after."""
    made = straw(tmp_path)
    process = made.start(SECRET="of the shell", INVOCATION_ID="x", _HERMES_GATEWAY="1", DRAIN="1")
    yield made, process
    end(process)


def test_remembered(running: tuple[Straw, subprocess.Popen[bytes]], tmp_path: Path) -> None:
    """What it was started with outlives it and us, privately, and without what was its owner's."""
    made, process = running
    first = Detached(made.home, None)
    first.remember(tmp_path / "origin.json")
    assert (tmp_path / "origin.json").stat().st_mode & 0o777 == 0o600
    first.stop(20)
    assert process.wait(5) == 0, "it drained"

    later = Detached(made.home, None)
    later.recall(tmp_path / "origin.json")
    environ = later.environment(accounts.account(os.geteuid()))
    assert environ["SECRET"] == "of the shell"
    assert not environ.keys() & {"INVOCATION_ID", "_HERMES_GATEWAY"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"argv": [1], "environment": 3, "uid": "x"}'])
def test_forged_memory(text: str, tmp_path: Path, home: Path) -> None:
    """What was not written by us is not believed."""
    later = Detached(Home(home), None)
    later.recall(support.put(tmp_path / "origin.json", text))
    assert later.origin is None


def test_busy(running: tuple[Straw, subprocess.Popen[bytes]]) -> None:
    """One that takes too long and is not frozen is left alive; asked again, it is waited for."""
    made, process = running
    service = Detached(made.home, None)
    with pytest.raises(CannotFix, match="was not killed"):
        service.stop(0.0)
    assert service.settled(20) is None
    assert process.wait(5) == 0


class Reluctant(Detached):
    """One whose owner does not want to be asked."""

    def ask_to_stop(self, process: ProcessHandle) -> None:
        raise CannotFix("not now")


def test_refused_stop(
    running: tuple[Straw, subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was never asked to stop is not waited for, and was not started by us either."""
    made, process = running
    monkeypatch.setattr("hermes_doctor.repair.gateway.base.DOUBT", 0.5)
    service = Reluctant(made.home, None)
    log = Journal(id="1", kind="fix", home=str(made.home.path), vault="", started_at="", items=[])
    step = GatewayStep(service, restart=True, why="a test")
    log.save()
    gateway = GatewayPause([step], log)
    with pytest.raises(CannotFix, match="not now"):
        gateway.stop()
    begun = time.monotonic()
    gateway.start_after_rollback(changed=True)
    assert time.monotonic() - begun < 10
    assert (process.poll(), log.gateway) == (None, None)


def test_ends_later(tmp_path: Path, sooner: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop that takes effect after we have given up is not forgotten: it is started again."""
    monkeypatch.setattr("hermes_doctor.repair.transaction.gateway.STOP_LIMIT", 1.0)
    monkeypatch.setattr("hermes_doctor.repair.gateway.startup_proof.SETTLE", 0.3)
    monkeypatch.setattr("hermes_doctor.repair.gateway.startup_proof.CONNECTING", 0.3)
    made = straw(tmp_path)
    begun: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(Detached, "ask_to_start", lambda self: begun.append(made.start()))
    monkeypatch.setattr(GatewayView, "supervision", lambda self: Supervision(None, (), *NONE))
    process = made.start(DRAIN="600")
    log = Journal(id="1", kind="fix", home=str(made.home.path), vault="", started_at="", items=[])
    log.save()
    gateway = GatewayPause(
        [GatewayStep(Detached(made.home, None), restart=True, why="a test")], log
    )
    try:
        with pytest.raises(CannotFix, match="did not stop within"):
            gateway.stop()
        gateway.start_after_rollback(changed=True)
        assert (log.gateway, log.asked) == ("asked", process.pid)
        assert f"process {process.pid} stops when its work is done" in (log.note or "")
        assert "has not stopped yet: process" in start_stopped_gateway(log)
        assert log.gateway == "asked"
        process.kill()
        end(process)
        assert "is running again" in start_stopped_gateway(log)
        assert (log.gateway, log.asked) == ("started", None)
    finally:
        for one in (process, *begun):
            one.kill()
            end(one)


def test_wakes_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was held still and goes on when it is told to end may finish its answer."""
    for name in ("GRACE", "WAKING", "LOOK_EVERY"):
        monkeypatch.setattr(f"hermes_doctor.repair.gateway.base.{name}", 0.5)
    made = straw(tmp_path)
    process = made.start(DRAIN="2")
    try:
        process.send_signal(signal.SIGSTOP)
        until(lambda: Probes(made.home).health.pulse().halted)
        Detached(made.home, None).stop(30)
        assert process.wait(5) == 0, "it was not killed"
    finally:
        end(process)


def test_stays_frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not go on is killed, since it would never end."""
    for name in ("GRACE", "WAKING", "LOOK_EVERY"):
        monkeypatch.setattr(f"hermes_doctor.repair.gateway.base.{name}", 0.5)
    monkeypatch.setattr(ProcessHandle, "send", _but_not(signal.SIGCONT))
    made = straw(tmp_path)
    process = made.start()
    try:
        process.send_signal(signal.SIGSTOP)
        until(lambda: Probes(made.home).health.pulse().halted)
        service = Detached(made.home, None)
        service.stop(30)
        assert process.wait(5) == -signal.SIGKILL
        assert "was frozen and was killed" in service.notes()[0]
    finally:
        end(process)


@pytest.mark.parametrize("patience", [0.6, 600.0])
def test_silence_without_a_heartbeat(
    patience: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop whose silence is the only sign is killed after a long silence, not by one look."""
    monkeypatch.setattr("hermes_doctor.repair.gateway.base.SILENCE", patience)
    for name in ("GRACE", "LOOK_EVERY"):
        monkeypatch.setattr(f"hermes_doctor.repair.gateway.base.{name}", 0.2)
    made = straw(tmp_path)
    process = made.start(DRAIN="600")
    mute = Pulse(process.pid, False, "it lets nobody in", answer=port_test.SILENT, waiting=3)
    monkeypatch.setattr(HealthView, "pulse", lambda self: mute)
    monkeypatch.setattr(Detached, "_drains", lambda *_: False)
    service = Detached(made.home, None)
    try:
        if patience < 1:
            service.stop(60)
            assert process.wait(5) == -signal.SIGKILL
            assert "again and again for" in service.notes()[0]
        else:
            with pytest.raises(CannotFix, match="it was not killed"):
                service.stop(1)
            assert process.poll() is None
    finally:
        process.kill()
        end(process)


def _but_not(unwanted: signal.Signals) -> Callable[[ProcessHandle, signal.Signals], None]:
    send = ProcessHandle.send

    def made(process: ProcessHandle, number: signal.Signals) -> None:
        if number != unwanted:
            send(process, number)

    return made


def test_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that ends again is told, with its status and where its last words are."""
    made = straw(tmp_path)
    service = Detached(made.home, None, {"STATUS": "78"})
    monkeypatch.setattr(Detached, "_command", lambda self: made.command)
    with pytest.raises(CannotFix, match=r"did not start: exit code 78; see logs/gateway-back"):
        service.start(20)
