"""Not running: how it ended, since when, and whether anybody wanted that."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook, Finding, Severity, Status
from hermes_doctor.diagnosis.probes import port_test
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes import oom_kills, process_stat
from hermes_doctor.hermes.processes.oom_kills import Kill
from hermes_doctor.hermes.supervisors.find import Supervision
from hermes_doctor.hermes.supervisors.units import DOCKER, SYSTEMD_USER, Unit
from tests.diagnosis.probes.test_probes import pretender
from tests.helpers import fake_gateway, fake_supervision, support
from tests.helpers.fake_managers import until
from tests.helpers.one_check import ask
from tests.helpers.real.gateways import end
from tests.helpers.unit_ends import CRASHED, NEVER, STOPPED

Tags = tuple[tuple[str, dict[str, object]], ...]
CLEAN: Tags = (
    ("asyncio.run.returned", {"success": True}),
    ("gateway.exit_clean", {}),
    ("atexit.hook", {}),
)
FAILED: Tags = (("asyncio.run.returned", {"success": False}), ("gateway.exit_nonzero", {}))


def look(home: Path) -> dict[str, Finding]:
    """The findings by their code."""
    result, findings = ask("gateway-running", home)
    assert findings or result.status is Status.OK, result
    return {finding.code: finding for finding in findings}


def test_healthy(home: Path) -> None:
    """A home without any gateway is not asked, one with a running gateway is fine."""
    assert ask("gateway-running", home)[0].status is Status.SKIPPED
    with fake_gateway.gateway(home):
        result, findings = ask("gateway-running", home)
    assert (result.status, findings) == (Status.OK, [])


def test_killed(home: Path) -> None:
    """Its diary has no last word: dead since it was last heard of, and to be started."""
    end = fake_gateway.ended(home)

    found = look(home)

    assert set(found) == {"GW-DIED", "GW-DOWN"}
    assert found["GW-DIED"].since == found["GW-DOWN"].since == end
    assert (found["GW-DOWN"].severity, found["GW-DOWN"].fix) == (Severity.ERROR, "start-gateway")
    assert found["GW-DOWN"].caused_by == "GW-DIED"
    assert found["GW-DOWN"].data["ran"] is True


def test_stopped_on_purpose(home: Path) -> None:
    """An orderly stop that the state file agrees with is information."""
    end = fake_gateway.ended(home, *CLEAN, gateway_state="stopped")

    found = look(home)

    assert set(found) == {"GW-DOWN"}
    assert (found["GW-DOWN"].severity, found["GW-DOWN"].since) == (Severity.INFO, end)
    assert found["GW-DOWN"].data["ran"] is False


@pytest.mark.parametrize(("words", "calm"), [(["stopped"], False), (["stopped", "started"], True)])
def test_left_down_by_a_repair(home: Path, words: list[str], calm: bool) -> None:
    """A stop that this tool announced and did not follow up is nobody's purpose."""
    end = fake_gateway.ended(home, *CLEAN, gateway_state="stopped")
    for n, word in enumerate(words):
        told = {"gateway": word, "ended_at": (end + timedelta(minutes=n)).isoformat()}
        place = home / "backups" / "doctor" / "runs" / f"20260101-00000{n}-abc"
        support.put(place / "run.json", json.dumps({**told, "state": "rolled-back"}))

    found = look(home)

    assert set(found) == {"GW-DOWN"}
    assert found["GW-DOWN"].severity is (Severity.INFO if calm else Severity.ERROR)
    assert ("could not start it again" in found["GW-DOWN"].detail) is not calm


@pytest.mark.parametrize(
    ("down", "severity", "ran"),
    [
        ("", Severity.ERROR, True),
        ("not-wanted", Severity.ERROR, False),
        ("on-purpose", Severity.INFO, False),
    ],
)
def test_left_down_by_an_undo(home: Path, down: str, severity: Severity, ran: bool) -> None:
    """It was down before the repair, and counts as it did then."""
    end = fake_gateway.ended(home, *CLEAN, gateway_state="stopped")
    undo = "20260101-000001-abc"
    ended = {"ended_at": end.isoformat()}
    fix = {"gateway": "started", "undone_by": undo, "items": [{"down": down}], **ended}
    runs = home / "backups" / "doctor" / "runs"
    support.put(runs / "20260101-000000-abc" / "run.json", json.dumps(fix))
    support.put(runs / undo / "run.json", json.dumps({"gateway": "left-stopped", **ended}))

    found = look(home)["GW-DOWN"]

    assert (found.severity, found.data["ran"]) == (severity, ran)
    assert ("undid a repair" in found.detail) is (severity is Severity.ERROR)


def test_stopped_since_a_repair_left_it_down(home: Path) -> None:
    """Somebody has started it since, and stopped it on purpose."""
    end = fake_gateway.ended(home, *CLEAN, gateway_state="stopped")
    told = {"gateway": "stopped", "ended_at": (end - timedelta(days=9)).isoformat()}
    place = home / "backups" / "doctor" / "runs" / "20260101-000000-abc"
    support.put(place / "run.json", json.dumps({**told, "state": "rolled-back"}))
    assert look(home)["GW-DOWN"].severity is Severity.INFO


def test_told_to_end(home: Path) -> None:
    """A SIGTERM of somebody else's: in order, but nobody wanted the gateway to be gone."""
    fake_gateway.ended(home, *FAILED)
    support.put(home / ".clean_shutdown", "")

    found = look(home)

    assert set(found) == {"GW-DOWN"}
    assert found["GW-DOWN"].severity is Severity.ERROR
    assert "SIGTERM" in found["GW-DOWN"].detail
    assert found["GW-DOWN"].data["ran"] is False  # so that a start asks first


def test_told_to_end_while_starting(home: Path) -> None:
    """The same before it was quite up: it ends with 0, and its state still says running."""
    fake_gateway.ended(home, *CLEAN)
    support.put(home / ".clean_shutdown", "")

    assert look(home)["GW-DOWN"].severity is Severity.ERROR


def test_failed(home: Path) -> None:
    """An error of its own, whose kind is named and whose text is not."""
    fake_gateway.ended(
        home, ("asyncio.run.exception", {"exc_type": "OSError", "exc_repr": "s3cret"})
    )

    found = look(home)

    assert set(found) == {"GW-DOWN"}
    assert "(OSError)" in found["GW-DOWN"].detail
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    "how",
    [
        [("asyncio.run.SystemExit", {"code": 75})],
        [*CLEAN, "requested"],
    ],
)
def test_restart_that_never_came(home: Path, how: list[Any]) -> None:
    """It asked for a new start, and nobody gave it."""
    tags = [one for one in how if one != "requested"]
    fake_gateway.ended(home, *tags, gateway_state="stopped", restart_requested="requested" in how)

    found = look(home)

    assert set(found) == {"GW-CLEAN-EXIT-DEAD", "GW-DOWN"}
    assert found["GW-DOWN"].severity is Severity.ERROR


@pytest.mark.parametrize("unit", ["enabled", "failed"])
def test_clean_end_under_a_unit(home: Path, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit that should run it makes of the same end an error."""
    fake_gateway.ended(home, *CLEAN, gateway_state="stopped")
    settings = {"UnitFileState": "enabled"} if unit == "enabled" else {}
    state = "failed" if unit == "failed" else "inactive"
    one = Unit(SYSTEMD_USER, "hermes-gateway.service", None, home, None, state, settings, {}, None)
    told = Supervision(one, (one,), False, "Restart=on-failure", (), None)
    monkeypatch.setattr(GatewayView, "supervision", lambda _: told)

    found = look(home)

    assert set(found) == {"GW-CLEAN-EXIT-DEAD", "GW-DOWN"}
    assert found["GW-DOWN"].severity is Severity.ERROR
    assert found["GW-DOWN"].evidence[-1].where == "hermes-gateway.service"


@pytest.mark.parametrize("restart", ["always", "on-failure", "no"])
@pytest.mark.parametrize(("how", "calm"), [(STOPPED, True), (STOPPED | CRASHED, False)])
@pytest.mark.parametrize("killed", [False, True])
def test_stopped_through_its_service(
    home: Path,
    how: dict[str, str],
    calm: bool,
    killed: bool,
    restart: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gateway ends with status 1 when systemd stops it, or is killed if it takes too long."""
    fake_gateway.ended(home, *([] if killed else FAILED))
    if not killed:
        support.put(home / ".clean_shutdown", "")
    settings = how | {"UnitFileState": "enabled", "Restart": restart}
    set_unit(monkeypatch, home, settings, "failed")

    found = look(home)["GW-DOWN"]

    assert found.severity is (Severity.INFO if calm else Severity.ERROR)
    assert ("A command stopped hermes-gateway.service" in found.detail) is calm
    assert found.data["ran"] is not calm


def set_unit(
    patch: pytest.MonkeyPatch, home: Path, settings: dict[str, str], state: str = "inactive"
) -> None:
    """Let systemd have this unit for the home."""
    name = "hermes-gateway.service"
    one = Unit(SYSTEMD_USER, name, None, home, None, state, settings, {}, None)
    told = Supervision(one, (one,), False, "a test", (), None)
    patch.setattr(GatewayView, "supervision", lambda _: told)


def test_a_container_that_was_stopped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker leaves it stopped, also if the home says that the gateway should run."""
    fake_gateway.ended(home, *FAILED, desired_state="running")
    one = Unit(DOCKER, "bot", None, home, None, "inactive", {"Stopped": "yes"}, {}, None)
    told = Supervision(one, (one,), False, "a test", (), None)
    monkeypatch.setattr(GatewayView, "supervision", lambda _: told)

    found = look(home)["GW-DOWN"]

    assert found.severity is Severity.INFO
    assert found.detail == "A command stopped the container bot, so Docker leaves it stopped."
    assert found.data["ran"] is False


@pytest.mark.parametrize(
    ("file", "killed", "minutes", "expected"),
    [
        ("disabled", False, 1, ("GW-NOT-ENABLED", True)),
        ("disabled", True, 600, ("GW-NOT-ENABLED", True)),
        ("disabled", False, 600, ("GW-NOT-ENABLED", False)),  # a person may have stopped it
        ("enabled", False, 1, (None, True)),
    ],
)
def test_not_started_after_a_reboot(
    home: Path,
    file: str,
    killed: bool,
    minutes: int,
    expected: tuple[str | None, bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A unit that is not enabled is the cause; nobody stopped it on purpose."""
    ended = fake_gateway.ended(home, *([] if killed else FAILED))
    if not killed:
        support.put(home / ".clean_shutdown", "")
    boot = (ended + timedelta(minutes=minutes)).timestamp()
    monkeypatch.setattr(process_stat, "boot_time", lambda: boot)
    set_unit(monkeypatch, home, NEVER | {"UnitFileState": file, "Restart": "always"})

    found = look(home)

    down = found["GW-DOWN"]
    assert (down.caused_by, down.data["ran"]) == expected
    assert down.severity is Severity.ERROR
    assert "The machine restarted" in down.detail
    if expected[0]:
        cause = found["GW-NOT-ENABLED"]
        assert (cause.severity, cause.fix) == (Severity.ERROR, "enable-service")
        assert cause.title == "hermes-gateway.service is not enabled, so it did not start"


def test_a_unit_that_systemd_has_forgotten(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been stopped between two starts, so a start needs a yes."""
    fake_gateway.ended(home)
    set_unit(monkeypatch, home, NEVER | {"UnitFileState": "disabled", "Restart": "always"})

    found = look(home)["GW-DOWN"]

    assert (found.severity, found.data["ran"]) == (Severity.ERROR, False)


def test_never_ran(home: Path) -> None:
    """A home without a platform needs no gateway; with one, nobody gets an answer."""
    assert ask("gateway-running", home)[0].status is Status.SKIPPED
    support.put(home / ".env", "TELEGRAM_BOT_TOKEN=123456:abcdefghijklmnopqrstuvwxyz\n")

    _, [finding] = ask("gateway-running", home)

    assert (finding.code, finding.severity) == ("GW-DOWN", Severity.ERROR)
    assert finding.title == "the gateway has never run here"
    assert finding.data["never"] is True
    assert "Telegram" in finding.evidence[0].what
    assert "123456" not in str(finding)


@pytest.mark.parametrize("name", ["logs/gateway.log", "gateway_state.json"])
def test_traces_of_a_gateway(home: Path, name: str) -> None:
    """A gateway that left files has run, even if they do not say when or how it ended."""
    support.put(home / ".env", "TELEGRAM_BOT_TOKEN=123456:abcdefghijklmnopqrstuvwxyz\n")
    support.put(home / name, "")

    _, [finding] = ask("gateway-running", home)

    assert (finding.severity, finding.title) == (Severity.ERROR, "the gateway is not running")
    assert finding.data["never"] is False


def test_wanted_by_its_state(home: Path) -> None:
    """In a container desired_state says that it should run."""
    fake_gateway.ended(home, *CLEAN, gateway_state="stopped", desired_state="running")

    assert look(home)["GW-DOWN"].severity is Severity.ERROR


def test_out_of_memory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's word about this very process, and not about an earlier one of its number."""
    fake_gateway.ended(home)
    now = datetime.now(UTC)
    kill = Kill(fake_gateway.DEAD, "hermes", now - timedelta(minutes=4), "the kernel's log")
    monkeypatch.setattr(oom_kills, "from_kernel", lambda: [kill])

    found = look(home)

    assert set(found) == {"GW-OOM", "GW-DOWN"}
    assert found["GW-OOM"].since == kill.at

    older = kill._replace(at=now - timedelta(hours=3))
    other = kill._replace(pid=1)
    monkeypatch.setattr(oom_kills, "from_kernel", lambda: [older, other])
    assert set(look(home)) == {"GW-DIED", "GW-DOWN"}


CGROUP = (
    "Memory cgroup out of memory: Killed process 4242 (hermes) total-vm:2097152kB, "
    "anon-rss:1048576kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:4096kB oom_score_adj:0"
)
MACHINE = "Out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:1kB"


def test_words_of_the_kernel() -> None:
    """As it writes them into its own log, and as the journal keeps them."""
    for text, name in ((CGROUP, "hermes"), (MACHINE, "python3")):
        kill = oom_kills._in_kernel(f"3,1234,5000000,-;{text}\n SUBSYSTEM=memory\n", 1000.0)
        assert kill == Kill(4242, name, datetime.fromtimestamp(1005, UTC), "the kernel's log")
        [kept] = oom_kills._in_journal(
            f"-- Boot 1 --\n1794700000.123456 host kernel: {text}\n"
            "1794700001.1 host kernel: oom_reaper: reaped process 4242 (hermes)\n"
        )
        assert (kept.pid, kept.name, kept.at.timestamp()) == (4242, name, 1794700000)
    assert oom_kills._in_kernel("6,1,2,-;usb 1-1: new device", 0.0) is None


def test_cut_off_while_it_shut_down(home: Path) -> None:
    """Its own watchdog names it: it hung on its way out."""
    fake_gateway.ended(home)
    at = datetime.now(UTC).isoformat()
    fired = {"event": "shutdown_watchdog_fired", "pid": fake_gateway.DEAD, "fired_at": at}
    dump = json.dumps(fired) + "\n--- faulthandler dump (all threads) ---\nThread 0x1\n"
    support.put(home / "logs" / "gateway-shutdown-watchdog.log", dump)

    assert set(look(home)) == {"GW-DRAIN-HANG", "GW-DOWN"}


def test_machine_was_restarted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No hard death then, but a start that did not come."""
    fake_gateway.ended(home)
    monkeypatch.setattr(
        "hermes_doctor.hermes.processes.process_stat.boot_time",
        lambda: datetime.now(UTC).timestamp(),
    )

    found = look(home)

    assert set(found) == {"GW-DOWN"}
    assert "machine restarted" in found["GW-DOWN"].detail


def test_start_that_met_a_running_one(home: Path) -> None:
    """A second start that only found the first running says nothing of how that one ended."""
    fake_gateway.ended(home)
    early = datetime.now(UTC) - timedelta(minutes=50)
    fake_gateway.note(home, 4242, early, "gateway.start")
    fake_gateway.note(home, 4242, early, "gateway.exit_nonzero")

    assert set(look(home)) == {"GW-DIED", "GW-DOWN"}


def test_nothing_but_a_state(home: Path) -> None:
    """Without a diary the state file is all there is."""
    fake_gateway.ended(home)
    (home / "logs" / "gateway-exit-diag.log").unlink()

    found = look(home)

    assert set(found) == {"GW-DOWN"}
    assert found["GW-DOWN"].evidence[0].what == "gateway_state: running"


REJECTED = "telegram: The token was rejected by the server"


def test_failed_start(home: Path) -> None:
    """The reason in the state file is the evidence, and the platform that failed for good."""
    platforms = {"qqbot": {"state": "fatal", "error_code": "qq_x", "error_message": "banned"}}
    fake_gateway.ended(
        home, gateway_state="startup_failed", exit_reason=REJECTED, platforms=platforms
    )
    (home / "logs" / "gateway-exit-diag.log").unlink()

    found = look(home)

    assert set(found) == {"GW-DOWN"}
    down = found["GW-DOWN"]
    assert (down.title, down.severity) == ("the gateway could not start", Severity.ERROR)
    assert [one.what for one in down.evidence] == [
        f"startup_failed: {REJECTED}",
        "qqbot: fatal, banned",
    ]
    assert down.next


def test_failed_start_that_exited_with_0(home: Path) -> None:
    """An exit code of 0 is not called an error."""
    fake_gateway.ended(home, *CLEAN, gateway_state="startup_failed", exit_reason=REJECTED)

    down = look(home)["GW-DOWN"]

    assert down.title == "the gateway could not start"
    assert "error" not in down.detail
    assert down.evidence[0].what == f"startup_failed: {REJECTED}"


def test_pending_restart_without_a_diary(home: Path) -> None:
    """A restart that was asked for and did not happen is not a stop on purpose."""
    fake_gateway.ended(
        home,
        gateway_state="stopped",
        restart_requested=True,
        exit_reason="Gateway restart requested",
    )
    (home / "logs" / "gateway-exit-diag.log").unlink()

    found = look(home)

    assert set(found) == {"GW-CLEAN-EXIT-DEAD", "GW-DOWN"}
    assert found["GW-DOWN"].severity is Severity.ERROR
    assert "restart_requested" in found["GW-CLEAN-EXIT-DEAD"].evidence[0].what


@pytest.mark.parametrize("name", ["agent.log", "errors.log"])
def test_lines_of_a_gateway(home: Path, name: str) -> None:
    """Lines of a gateway in a general log show that one has run."""
    support.put(home / ".env", "TELEGRAM_BOT_TOKEN=123456:abcdefghijklmnopqrstuvwxyz\n")
    line = "2026-11-15 08:00:00,000 ERROR {}: a line\n"
    support.put(home / "logs" / name, line.format("agent.conversation_loop"))
    assert ask("gateway-running", home)[1][0].data["never"] is True
    support.put(home / "logs" / name, line.format("gateway.platforms.telegram"))

    _, [finding] = ask("gateway-running", home)

    assert (finding.title, finding.data["never"]) == ("the gateway is not running", False)


def test_copied_while_the_original_runs(home: Path, tmp_path: Path) -> None:
    """The process in the files runs for another home: it has not died, and blocks a start here."""
    other = support.healthy(tmp_path / "other" / "home")
    with fake_gateway.gateway(other) as running:
        for name in ("gateway_state.json", "gateway.pid", "logs/gateway-exit-diag.log"):
            support.put(home / name, (other / name).read_text())
        found = look(home)
        _, locks = ask("gateway-lock", home)

    assert set(found) == {"GW-DOWN"}
    down = found["GW-DOWN"]
    assert str(running.pid) in down.evidence[0].what
    assert str(other) in down.evidence[0].what
    assert (down.fix, down.since) == (None, None)
    assert "Move gateway_state.json" in down.next
    [stale] = locks
    assert stale.title == "gateway.pid names the running gateway of another home"
    assert "removes" not in stale.detail


def test_a_look_alike_of_the_owner(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that the files name, and that has not got the lock, hides no gateway that is down."""
    # Nothing but the diary says when the gateway lived: longer ago than a new machine runs.
    monkeypatch.setattr("hermes_doctor.hermes.processes.process_stat.boot_time", lambda: 0.0)
    fake_gateway.ended(home)
    with pretender(tmp_path, {"HERMES_HOME": str(home)}) as pid:
        seen = process_stat.stat(pid)
        assert seen is not None
        record = json.dumps({"pid": pid, "start_time": seen.start_time})
        support.put(home / "gateway.pid", record)

        assert set(look(home)) == {"GW-DIED", "GW-DOWN"}
        support.put(home / "gateway_state.json", record)
        assert set(look(home)) == {"GW-DIED", "GW-DOWN"}


def test_draining(home: Path) -> None:
    """Draining is an error after 5 minutes; before that only a request is reported."""
    with fake_gateway.gateway(home, state="draining"):
        assert look(home) == {}
        state = json.loads((home / "gateway_state.json").read_text())
        old = datetime.now(UTC) - timedelta(minutes=9)
        support.put(
            home / "gateway_state.json", json.dumps(state | {"updated_at": old.isoformat()})
        )
        hanging = look(home)
        support.put(home / ".drain_request.json", "{}")
        requested = look(home)
        now = datetime.now(UTC).isoformat()
        support.put(home / "gateway_state.json", json.dumps(state | {"updated_at": now}))
        just_now = look(home)

    assert hanging["GW-DRAIN-HANG"].fix == "restart-gateway"
    assert hanging["GW-DRAIN-HANG"].severity is Severity.ERROR
    assert requested["GW-DRAIN-HANG"].severity is Severity.ERROR
    assert requested["GW-DRAIN-HANG"].fix is None
    assert just_now["GW-DRAIN-HANG"].severity is Severity.WARNING


def test_elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway in another container: asked on loopback, else only with leave to."""
    fake_gateway.ended(home)
    good = b"HTTP/1.1 200 OK\r\n\r\n" + HEALTH
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("GATEWAY_HEALTH_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        threading.Thread(target=_answer, args=(server, good), daemon=True).start()
        answered = ask("gateway-running", home)
    refused = ask("gateway-running", home)
    monkeypatch.setenv("GATEWAY_HEALTH_URL", "http://gateway.example:8642/health")
    off = ask("gateway-running", home)

    assert (answered[0].status, answered[1]) == (Status.SKIPPED, [])
    assert "GW-DOWN" in {finding.code for finding in refused[1]}
    assert off[0].status is Status.UNKNOWN
    assert "--network" in (off[0].reason or "")


LISTENS = """
import fcntl, os, pathlib, socket, sys, time
home = pathlib.Path(os.environ["HERMES_HOME"])
lock = open(home / "gateway.lock", "a+")
fcntl.flock(lock, fcntl.LOCK_EX)
server = socket.create_server(("127.0.0.1", 0))
(home / "new").write_text(str(server.getsockname()[1]))
os.replace(home / "new", home / "port")
while True:
    time.sleep(60)
"""


def test_elsewhere_is_another_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway that answers there works on another home: this one's is down all the same."""
    fake_gateway.ended(home)
    other = support.healthy(home.parent / "other")
    program = support.put(home.parent / "bin" / "hermes", LISTENS, 0o755)
    command = [sys.executable, str(program), "gateway", "run"]
    running = subprocess.Popen(command, env={"HERMES_HOME": str(other)})
    try:
        until(lambda: (other / "port").exists())
        url = f"http://127.0.0.1:{(other / 'port').read_text()}"
        monkeypatch.setenv("GATEWAY_HEALTH_URL", url)
        assert "GW-DOWN" in look(home)
        monkeypatch.delenv("GATEWAY_HEALTH_URL")
        support.put(home / ".env", f"GATEWAY_HEALTH_URL={url}\n")
        assert "GW-DOWN" in look(home)
    finally:
        end(running)


def test_elsewhere_of_one_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among several homes only one's own .env tells whose gateway it is."""
    url = "http://gateway.example:8642"
    monkeypatch.setenv("GATEWAY_HEALTH_URL", url)
    assert "--network" in Probes(Home(home)).health.pulse().what
    with pytest.raises(CouldNotLook, match="no gateway was found among the processes"):
        Probes(Home(home), alone=False).health.pulse()
    support.put(home / ".env", f"export GATEWAY_HEALTH_URL='{url}'\n")
    assert "--network" in Probes(Home(home), alone=False).health.pulse().what


HEALTH = b'{"status": "ok", "platform": "hermes-agent"}'


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 44\r\n\r\n" + HEALTH, Status.SKIPPED),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2c\r\n"
            + HEALTH
            + b"\r\n0\r\n\r\n",
            Status.SKIPPED,
        ),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", Status.PROBLEM),
        (b"HTTP/1.1 503 Later\r\n\r\n" + HEALTH, Status.PROBLEM),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", Status.UNKNOWN),
        (b'HTTP/1.1 200 OK\r\n\r\n{"status": "ok", "platform": "webhook"}', Status.UNKNOWN),
        (b'HTTP/1.1 200 OK\r\n\r\n{"status": "down", "platform": "hermes-agent"}', Status.UNKNOWN),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>It works!</html>", Status.UNKNOWN),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 60_000, Status.UNKNOWN),
        (b"HTTP/1.1 banana\r\n\r\n", Status.UNKNOWN),
        (b"SSH-2.0-OpenSSH\r\n", Status.UNKNOWN),
    ],
)
def test_who_answers(
    home: Path, monkeypatch: pytest.MonkeyPatch, said: bytes, status: Status
) -> None:
    """Only Hermes' own words count: a proxy in front of a dead gateway answers too."""
    fake_gateway.ended(home)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("GATEWAY_HEALTH_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        threading.Thread(target=_answer, args=(server, said), daemon=True).start()
        assert ask("gateway-running", home)[0].status is status


@pytest.mark.parametrize("host", ["127.evil.example", "127.0.0.1.evil.example", "localhost.evil"])
def test_names_like_loopback(home: Path, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """A name is not looked up without leave to, whatever it begins with."""
    fake_gateway.ended(home)
    monkeypatch.setenv("GATEWAY_HEALTH_URL", f"http://{host}:80")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("it was looked up"))
    result = ask("gateway-running", home)[0]
    assert result.status is Status.UNKNOWN
    assert "--network" in (result.reason or "")


@pytest.mark.parametrize(
    ("host", "here"),
    [
        *(("localhost", True), ("127.0.0.1", True), ("127.8.9.1", True), ("[::1]", True)),
        *(("127.1", False), ("10.0.0.1", False), ("[2001:db8::1]", False), ("0.0.0.0", False)),
    ],
)
def test_loopback(host: str, here: bool) -> None:
    """Only an address, or the one name that always means this machine."""
    place = port_test.parse(f"http://{host}:80")
    assert place is not None
    assert place.loopback is here


def _answer(server: socket.socket, said: bytes) -> None:
    with contextlib.suppress(OSError):
        caller, _ = server.accept()
        caller.recv(4096)
        caller.sendall(said)
        caller.close()


def test_hostile_files(home: Path) -> None:
    """Whatever stands in the files, there is an answer and no crash."""
    for data in (b"", b"\0" * 100, b"[" * 100_000, b'{"pid": 1e999}', b'{"pid": true}', b"7", b"{"):
        for name in ("gateway.pid", "gateway.lock", "gateway_state.json", "gateway-starts.log"):
            support.put(home / name, data)
        support.put(home / "state" / "gateway.heartbeat", data)
        support.put(home / "logs" / "gateway-exit-diag.log", data)
        support.put(home / "logs" / "gateway-shutdown-watchdog.log", data)
        assert ask("gateway-running", home)[0].status is not Status.CRASHED


def test_unreadable_diary(home: Path) -> None:
    """A diary that is no file is no reason for a verdict."""
    (home / "logs" / "gateway-exit-diag.log").mkdir()

    with pytest.raises(CouldNotLook):
        Probes(Home(home)).gateway.diary()
    assert ask("gateway-running", home)[0].status is Status.UNKNOWN


def test_between_two_starts(home: Path) -> None:
    """In a loop of its service there is nothing to start: it says when the next try is."""
    settings = {
        "SubState": "auto-restart",
        "RestartUSec": "30s",
        "StateChangeTimestampMonotonic": str(int((time.monotonic() - 5) * 1e6)),
    }
    looping = fake_supervision.unit(home, state="activating", settings=settings)

    _, [finding] = fake_supervision.ask("gateway-running", home, looping, running=False)

    assert (finding.code, finding.severity, finding.fix) == ("GW-DOWN", "error", None)
    assert "systemd restarts it in 2" in finding.detail


@pytest.mark.parametrize(("how", "seconds"), [("clean", 240), ("gone", 240), ("failed", 240)])
def test_since_it_last_worked(home: Path, how: str, seconds: float) -> None:
    """Starts that fail do not move the time forward; a life that worked before them does."""
    now = datetime.now(UTC).replace(microsecond=0)
    ends = {"clean": CLEAN, "failed": FAILED, "gone": []}
    lives = [(900, 2, "failed"), (600, seconds, how), (300, 2, "failed"), (290, 2, "failed")]
    for n, (age, lasted, word) in enumerate(lives):
        began = now - timedelta(seconds=age)
        fake_gateway.note(home, fake_gateway.DEAD - n, began, "gateway.start")
        for tag, more in ends[word]:
            fake_gateway.note(
                home, fake_gateway.DEAD - n, began + timedelta(seconds=lasted), tag, **more
            )

    worked = {"gone": 300}.get(how, 600 - seconds)
    assert look(home)["GW-DOWN"].since == now - timedelta(seconds=worked)
