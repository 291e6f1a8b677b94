"""The ladder of liveness: what each rung says, and on which one a gateway stands."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix, Report, Rung, RungState, Status
from hermes_doctor.diagnosis.examination import liveness
from hermes_doctor.diagnosis.examination.liveness import is_answering
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins.declare import Check
from hermes_doctor.diagnosis.probes import log_tails, port_test, pulse
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes import sockets
from hermes_doctor.hermes.supervisors.find import Supervision
from hermes_doctor.render import document
from hermes_doctor.repair.gateway import control
from tests.diagnosis.probes.test_probes import pretender
from tests.helpers import fake_gateway, support
from tests.helpers.fake_gateway import SECRET
from tests.helpers.one_check import PLUGINS, ask

NAMES = (
    "process",
    "lock",
    "supervised",
    "event loop",
    "platforms",
    "messages in",
    "answers out",
)
SERVES = {"api_server": "connected"}


def climb(home: Path) -> dict[str, Rung]:
    """The rungs by their names."""
    return {rung.name: rung for rung in liveness.ladder(Probes(Home(home)))}


def report(*holds: RungState) -> Report:
    """A report with a ladder that holds so."""
    now = datetime(2026, 11, 15, 3, 0, tzinfo=UTC)
    rungs = [Rung(name, hold, "seen", now) for name, hold in zip(NAMES, holds, strict=True)]
    return Report(Path("/home/x"), None, now, 0.0, (), (), ladder=tuple(rungs))


def lines(home: Path, *said: tuple[timedelta, str], shift: timedelta = timedelta()) -> None:
    """A log of the gateway in its own time, so long ago each."""
    now = datetime.now(UTC)
    text = "".join(
        f"{now - ago + shift:%Y-%m-%d %H:%M:%S},123 INFO gateway.run: {what}\n"
        for ago, what in said
    )
    path = support.put(home / "logs" / "gateway.log", text)
    last = (now - said[-1][0]).timestamp()
    os.utime(path, (last, last))


IN = "inbound message: platform=qqbot user=U chat=C msg='hi' reply_to_id=None reply_to_text=''"
OUT = "response ready: platform=qqbot chat=C time=70.5s api_calls=2 response=131 chars"
MINUTE = timedelta(minutes=1)


def test_nothing_runs(home: Path) -> None:
    """Without a process no rung holds, since it ended."""
    end = fake_gateway.ended(home, ("gateway.exit_clean", {}))

    found = climb(home)

    assert tuple(found) == NAMES
    assert {rung.hold for rung in found.values()} == {RungState.FAILED}
    assert {rung.since for rung in found.values()} == {end}


def test_served_by_the_root_home(home: Path) -> None:
    """A profile that the root's gateway works for is not down, and gets no second gateway."""
    coder = support.healthy(home / "profiles" / "coder")
    fake_gateway.ended(coder, ("gateway.exit_clean", {}))
    path = home / "gateway_state.json"
    with fake_gateway.gateway(home) as running:
        alone = climb(coder)
        served = {**json.loads(path.read_text()), "served_profiles": ["default", "coder"]}
        support.put(path, json.dumps(served))
        found = climb(coder)
        result, findings = ask("gateway-running", coder)
        with pytest.raises(CannotFix, match=f"process {running.pid}. serves this profile"):
            control.gateway_control(Probes(Home(coder)))
    gone = climb(coder)

    assert alone["process"].hold is gone["process"].hold is RungState.FAILED
    assert found["process"].hold is RungState.OK
    assert f"process {running.pid}, the gateway of the root home" in found["process"].what
    assert {found[name].hold for name in NAMES[1:]} == {RungState.UNKNOWN}
    assert (result.status, findings) == (Status.SKIPPED, [])
    assert "serves this profile" in (result.reason or "")


@pytest.mark.parametrize("names", [None, "coder", {"coder": 1}, [["coder"]], [1, None]])
def test_odd_lists_of_served_profiles(home: Path, names: object) -> None:
    """What is no list of names serves nobody."""
    coder = support.healthy(home / "profiles" / "coder")
    with fake_gateway.gateway(home):
        path = home / "gateway_state.json"
        said = {**json.loads(path.read_text()), "served_profiles": names}
        support.put(path, json.dumps(said))
        assert Probes(Home(coder)).gateway.served_by() is None


def test_running(home: Path) -> None:
    """Each rung with its evidence; who supervises is unknown unless somebody looked."""
    with fake_gateway.gateway(home, api="answers", platforms=SERVES) as running:
        found = climb(home)

    assert [found[name].hold for name in ("process", "lock", "event loop", "platforms")] == (
        [RungState.OK] * 4
    )
    assert str(running.pid) in found["process"].what
    assert found["process"].since is not None
    assert found["messages in"].hold is found["answers out"].hold is RungState.UNKNOWN


@pytest.mark.parametrize(
    ("revives", "hold"),
    [(True, RungState.OK), (False, RungState.FAILED), (None, RungState.UNKNOWN)],
)
def test_supervised(
    home: Path, revives: bool | None, hold: RungState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the word of whoever looked."""
    told = Supervision(None, (), revives, "nobody would", (), None)
    monkeypatch.setattr(GatewayView, "supervision", lambda _: told)
    with fake_gateway.gateway(home):
        assert climb(home)["supervised"][1:3] == (hold, "nobody would")


def test_stopped(home: Path) -> None:
    """What lies above a loop that stands still does not hold either."""
    with fake_gateway.gateway(home, platforms=SERVES) as running:
        os.kill(running.pid, signal.SIGSTOP)
        found = climb(home)
        os.kill(running.pid, signal.SIGCONT)

    assert found["lock"].hold is RungState.OK
    assert found["event loop"].hold is found["platforms"].hold is RungState.FAILED


def test_lock_of_another(home: Path) -> None:
    """A gateway whose lock file was replaced does not hold it."""
    with fake_gateway.gateway(home):
        (home / "gateway.lock").unlink()
        assert climb(home)["lock"].hold is RungState.FAILED


def test_beginning(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has not got its lock yet has not lost it; what the last one said is not its own."""
    monkeypatch.setattr(pulse, "WATCH", 0.2)
    fake_gateway.ended(home)
    with pretender(tmp_path, {"HERMES_HOME": str(home)}):
        found = climb(home)

    assert found["process"].hold is RungState.OK
    assert found["lock"][1:3] == (RungState.UNKNOWN, "it is still starting")


def test_platforms(home: Path) -> None:
    """One that is not connected breaks the rung; what an earlier life said does not count."""
    with fake_gateway.gateway(home, platforms=SERVES | {"qqbot": "fatal"}):
        found = climb(home)["platforms"]
        state = json.loads((home / "gateway_state.json").read_text())
        state["platforms"]["qqbot"]["updated_at"] = "2020-01-01T00:00:00+00:00"
        support.put(home / "gateway_state.json", json.dumps(state))
        earlier = climb(home)["platforms"]

    assert found[1:3] == (RungState.FAILED, "qqbot fatal")
    assert earlier.hold is RungState.OK


@pytest.mark.parametrize("shift", [timedelta(), timedelta(hours=8), timedelta(hours=-3.5)])
def test_traffic(home: Path, shift: timedelta) -> None:
    """Messages and answers out of the end of the log, in whatever time zone it is written."""
    lines(home, (3 * MINUTE, IN), (2 * MINUTE, OUT), (MINUTE, "Gateway running"), shift=shift)

    found = log_tails.read_traffic(Home(home))

    now = datetime.now(UTC)
    assert found.last_in is not None
    assert found.last_out is not None
    assert found.waits_since is None
    assert abs(now - found.last_in - 3 * MINUTE) < timedelta(seconds=5)
    assert abs(now - found.last_out - 2 * MINUTE) < timedelta(seconds=5)


def test_unanswered(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that waits for more than ten minutes breaks the last rung."""
    early = datetime.now(UTC) - timedelta(hours=1)
    with fake_gateway.gateway(home):
        monkeypatch.setattr(
            liveness,
            "_gateway",
            lambda probes: probes.gateway.running()[0]._replace(started_at=early),
        )
        lines(home, (20 * MINUTE, OUT), (15 * MINUTE, IN), (MINUTE, IN))
        broken = climb(home)
        lines(home, (20 * MINUTE, OUT), (5 * MINUTE, IN))
        patient = climb(home)

    assert broken["messages in"].hold is RungState.OK
    assert broken["answers out"].hold is RungState.FAILED
    assert patient["answers out"].hold is RungState.OK


def test_words_of_a_user_are_no_lines(home: Path) -> None:
    """What stands inside a message is not taken for a line of the gateway."""
    lines(home, (MINUTE, f"Unauthorized user: x {IN} {OUT}"))

    assert log_tails.read_traffic(Home(home))._replace(covers=None) == log_tails.Traffic()


@pytest.mark.parametrize("data", [b"", b"\xff" * 1000, b"2026-13-45 99:99:99,000 INFO a: b\n" * 9])
def test_hostile_log(home: Path, data: bytes) -> None:
    """Any bytes are a log."""
    support.put(home / "logs" / "gateway.log", data)

    assert log_tails.read_traffic(Home(home)) == log_tails.Traffic()


V, X, U = RungState.OK, RungState.FAILED, RungState.UNKNOWN


@pytest.mark.parametrize(
    ("holds", "stands"),
    [
        ((X, X, X, X, X, X, X), None),
        ((V, X, X, X, X, X, X), "process"),
        ((V, V, X, V, V, U, U), "platforms"),
        ((V, V, U, U, U, U, U), "lock"),
        ((V, V, V, X, X, X, X), "supervised"),
        ((V, V, V, V, U, V, V), "answers out"),
        ((V, V, V, V, X, V, V), "event loop"),
    ],
)
def test_stands_on(holds: tuple[RungState, ...], stands: str | None) -> None:
    """The highest that holds with none broken below; only a supervisor may be missing."""
    made = report(*holds)

    assert (made.highest_rung.name if made.highest_rung else None) == stands
    assert document.of_report(made)["liveness"]["stands_on"] == stands


def test_ports() -> None:
    """From the environment, .env and config.yaml, and the usual one; nonsense is passed over."""
    config = {"platforms": {"api_server": {"port": "x", "extra": {"port": 9003}}}}

    found = pulse.ports({"API_SERVER_PORT": "9001"}, "A=1\nexport API_SERVER_PORT='9002'\n", config)

    assert found == {8642, 9001, 9002, 9003}
    assert pulse.ports(None, "", {"platforms": 7}) == {8642}


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://gateway:8642", port_test.HealthUrl("gateway", 8642, False, "")),
        ("http://127.0.0.1:8642/health", port_test.HealthUrl("127.0.0.1", 8642, False, "")),
        ("https://h.example/x/health/detailed", port_test.HealthUrl("h.example", 443, True, "/x")),
        ("http://[::1]:80/", port_test.HealthUrl("::1", 80, False, "")),
        ("http://user:pass@gateway:8642", None),
        ("ftp://gateway", None),
        ("http://gateway:99999", None),
        ("http://a\r\nX: y", None),
        ("", None),
    ],
)
def test_addresses(url: str, place: port_test.HealthUrl | None) -> None:
    """An address with a password in it, or one that is none, is not asked."""
    assert port_test.parse(url) == place


def test_listening(home: Path) -> None:
    """The very port, with the callers that wait."""
    import socket

    with (
        fake_gateway.gateway(home, api="silent") as running,
        socket.create_connection(("127.0.0.1", running.port)),
    ):
        [found] = sockets.listeners(running.pid)

    assert found.local == ("127.0.0.1", running.port)
    assert (found.state, found.unread) == ("LISTEN", 1)


# -- what holds for all of it ----------------------------------------------------------------


def checks() -> list[Check]:
    """The checks of the running gateway and of storage."""
    return [one for one in PLUGINS.checks if one.group in ("gateway", "storage")]


def test_looking_changes_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a byte and not a time of a home whose gateway runs, answers, or does not."""
    monkeypatch.setattr(pulse, "LONG", 0.5)
    for api in (None, "answers", "silent"):
        with fake_gateway.gateway(home, platforms=SERVES, api=api):
            before = support.tree(home)
            climb(home)
            examine(Probes(Home(home)), checks())
            assert support.tree(home) == before


def test_without_proc(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no /proc no check crashes, and the same gateway is found and felt."""
    for name in ("hermes.processes.gateway_processes._PROC", "core.system.open_files._TABLE"):
        monkeypatch.setattr(f"hermes_doctor.{name}", Path("/nowhere"))
    monkeypatch.setattr("hermes_doctor.hermes.processes.process_stat._has_proc", lambda: False)
    with fake_gateway.gateway(home, platforms=SERVES) as running:
        results, _ = examine(Probes(Home(home)), checks())
        statuses = {one.id: one.status for one in results}
        found = climb(home)

    assert Status.CRASHED not in statuses.values(), statuses
    assert statuses["gateway-running"] is statuses["gateway-loop"] is Status.OK
    assert found["process"].what == f"process {running.pid}"
    assert found["event loop"].hold is RungState.OK


def test_no_secret_comes_out(home: Path) -> None:
    """What stands in its environment, its state and its diary is not for a report."""
    with fake_gateway.gateway(home, platforms={"qqbot": "fatal"}, open=70):
        path = home / "gateway_state.json"
        state = json.loads(path.read_text()) | {"exit_reason": SECRET}
        state["platforms"]["qqbot"] |= {"error_message": SECRET, "error_code": SECRET}
        support.put(path, json.dumps(state))
        support.put(home / ".env", f"TELEGRAM_BOT_TOKEN={SECRET}\n")
        os.utime(home / ".env", (time.time() + 99,) * 2)
        running = support.check(home)
    (home / "logs" / "gateway-exit-diag.log").unlink()
    fake_gateway.ended(home, ("asyncio.run.exception", {"exc_type": SECRET, "exc_repr": SECRET}))
    dead = support.check(home)

    assert {"GW-FD-EXHAUST", "GW-STALE-SETTINGS"} <= set(running.codes)
    assert "GW-DOWN" in dead.codes
    assert SECRET not in running.out + running.err + dead.out + dead.err


def busy(home: Path) -> bool:
    return is_answering(Probes(Home(home.resolve())))


def count(home: Path, agents: object) -> None:
    said = json.loads((home / "gateway_state.json").read_bytes())
    support.put(home / "gateway_state.json", json.dumps(said | {"active_agents": agents}))


def log(home: Path, *lines: str) -> None:
    first = datetime.now() + timedelta(seconds=2)
    text = "".join(
        f"{first + timedelta(seconds=n):%Y-%m-%d %H:%M:%S},000 INFO gateway.run: {line}\n"
        for n, line in enumerate(lines)
    )
    support.put(home / "logs" / "gateway.log", text)


RECEIVED = "inbound message: platform=telegram user=x chat=1 msg='hi'"
SENT = "response ready: platform=telegram chat=1 time=1.0s"


def test_by_its_own_count(home: Path) -> None:
    """The gateway's own number, where it is one."""
    with fake_gateway.gateway(home):
        assert not busy(home)
        count(home, 2)
        assert busy(home)
        for none in (0, -1, "many", True, None):
            count(home, none)
            assert not busy(home)
    count(home, 2)
    assert not busy(home), "nobody is there to write one"


def test_by_the_log_where_nobody_counts(home: Path) -> None:
    """By the log where nobody counts."""
    with fake_gateway.gateway(home):
        log(home, RECEIVED, SENT)
        assert not busy(home)
        log(home, RECEIVED, SENT, RECEIVED)
        assert busy(home)


def test_the_count_of_another_process_is_not_its_own(home: Path) -> None:
    """The count of another process is not its own."""
    with fake_gateway.gateway(home):
        count(home, 2)
        said = json.loads((home / "gateway_state.json").read_bytes())
        support.put(home / "gateway_state.json", json.dumps(said | {"pid": fake_gateway.DEAD}))
        assert not busy(home)
